(** S.separable, converse: scores whose attention is a product over the axes are sums, up to the query.

    Let the attention from the query (q₁, q₂) to the key (k₁, k₂) of a rectangle, the softmax of finite scores, be
    u(q₁, k₁) v(q₂, k₂) for all queries and keys. Then the score is f(q₁, k₁) + g(q₂, k₂) + c(q), for some f, g and c.
    Over any field, for any E that takes sums to products, is never zero and takes no value twice, as exp,
    where no denominator of the softmax is zero. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Convattn.foundation Require Import attention common_factor.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Theorem separable_converse (F : fieldType) (E : F -> F) (Query1 Query2 : Type) (Row Column : finType)
    (s : Query1 * Query2 -> Row * Column -> F) (u : Query1 -> Row -> F) (v : Query2 -> Column -> F)
    (q0 : Query1 * Query2) (k0 : Row * Column) :
  exponential_law E -> injective E ->
  (forall q, \sum_k E (s q k) != 0) ->
  (forall q k, softmax (fun k => E (s q k)) k = u q.1 k.1 * v q.2 k.2) ->
  exists (f : Query1 -> Row -> F) (g : Query2 -> Column -> F) (c : Query1 * Query2 -> F),
    forall q k, s q k = f q.1 k.1 + g q.2 k.2 + c q.
Proof.
move=> [add nz] inj nzZ product.
pose Z q := \sum_k E (s q k).
have value q k : E (s q k) = Z q * (u q.1 k.1 * v q.2 k.2).
  by rewrite -product /softmax mulrC divfK // nzZ.
exists (fun q1 k1 => s (q1, q0.2) (k1, k0.2) - s (q1, q0.2) k0).
exists (fun q2 k2 => s (q0.1, q2) (k0.1, k2) - s (q0.1, q2) k0), (fun q => s q k0) => q k.
have equal : s q k + (s (q.1, q0.2) k0 + s (q0.1, q.2) k0) =
    s (q.1, q0.2) (k.1, k0.2) + s (q0.1, q.2) (k0.1, k.2) + s q k0.
  by apply: inj; rewrite !add !value /=; ring.
apply: (addIr (s (q.1, q0.2) k0 + s (q0.1, q.2) k0)); rewrite equal; ring.
Qed.
