(** S.separable: scores that add a row and a column term make attention factor over the axes.

    Let the score of the key (k₁, k₂) from the query q be f(q, k₁) + g(q, k₂), over all keys of a
    rectangle, and let E take sums to products, as exp does. Then the softmax over the rectangle is
    the softmax of f over the rows times the softmax of g over the columns, and the attended token is
    made in two passes, along the columns and then along the rows. In particular f and g may be those
    of a relative encoding, f(q₁, k₁) = f(k₁ - q₁) and g(q₂, k₂) = g(k₂ - q₂): the row factor is then
    the same for all queries of a row, and the column factor for all of a column. Over any field,
    scores in any additive group, any number of rows and columns.

    The converse is separable_converse. The number of operations is not covered. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Section Products.

Variables (F : fieldType) (Row Column : finType) (u : Row -> F) (v : Column -> F).

(** Softmax of products over a rectangle is the product of the softmaxes. *)
Lemma softmax_product (k : Row * Column) :
  softmax (fun k => u k.1 * v k.2) k = softmax u k.1 * softmax v k.2.
Proof.
rewrite /softmax -(pair_bigA _ (fun y x => u y * v x)) /=.
by rewrite -big_distrlr /= invfM mulrACA.
Qed.

(** Attention that is a product mixes along one axis and then along the other. *)
Lemma attend_product (In : Type) (X : Row * Column -> In -> F) i :
  attend (fun k => u k.1 * v k.2) X i = attend u (fun y => attend v (fun x => X (y, x))) i.
Proof.
rewrite /attend; under [RHS]eq_bigr do rewrite big_distrr.
by rewrite pair_bigA; apply: eq_bigr => -[y x] _ /=; rewrite mulrA.
Qed.

End Products.

Theorem separable (F : fieldType) (Score : zmodType) (E : Score -> F) (Query : Type)
    (Row Column : finType) (f : Query -> Row -> Score) (g : Query -> Column -> Score) :
  (forall a b, E (a + b) = E a * E b) ->
  let attention q := softmax (fun k : Row * Column => E (f q k.1 + g q k.2)) in
  let row_attention q := softmax (fun y => E (f q y)) in
  let column_attention q := softmax (fun x => E (g q x)) in
  (forall q k, attention q k = row_attention q k.1 * column_attention q k.2) /\
  (forall (In : Type) (X : Row * Column -> In -> F) q i,
    attend (attention q) X i =
      attend (row_attention q) (fun y => attend (column_attention q) (fun x => X (y, x))) i).
Proof.
move=> addE attention row_attention column_attention.
have product q k : attention q k = row_attention q k.1 * column_attention q k.2.
  rewrite -softmax_product /attention /softmax addE; congr (_ / _).
  by apply: eq_bigr => k' _; rewrite addE.
split=> // In X q i; rewrite -attend_product.
by apply: eq_bigr => k _; rewrite product.
Qed.
