(** B19.softmax, as printed, fails: with a column-wise softmax no convex combinations.

    Let the scores of two tokens be α = ((0, 1), (0, 0)), let x ≠ 1 be what the exponential makes of
    one, and let A be the softmax of every column of α, over the queries. Then the columns of A sum to
    one, but its rows do not: with both values equal to one, Y = V Aᵀ, which is the sums of the rows,
    is one at neither query. Over any ordered field, for every positive x ≠ 1. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Convattn.foundation Require Import attention.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** The exponentials of ((0, 1), (0, 0)): of the score of query i and key j. *)
Definition two_token_weights (F : fieldType) (x : F) (query key : 'I_2) : F :=
  if (val query == 0%N) && (val key == 1%N) then x else 1.

(** Normalised over the queries. *)
Definition column_softmax (F : fieldType) (Query Key : finType) (w : Query -> Key -> F)
    (query : Query) (key : Key) : F := softmax (fun q => w q key) query.

Theorem softmax_columns (R : realFieldType) (x : R) :
  0 < x -> x != 1 ->
  let A := column_softmax (two_token_weights x) in
  (forall key, \sum_query A query key = 1) /\
  (forall query, attend (A query) (fun _ (_ : 'I_1) => 1) ord0 != 1).
Proof.
move=> x_gt0 x_ne1 A.
have nz1 : 1 + x != 0 by rewrite gt_eqF // addr_gt0 ?ltr01.
have nz2 : 1 + 1 != 0 :> R by rewrite gt_eqF // addr_gt0 ?ltr01.
have nz3 : x - 1 != 0 by rewrite subr_eq0.
split=> [key | query].
  apply: sum_softmax; rewrite !big_ord_recl big_ord0 addr0 /two_token_weights /=.
  by case: (val key == 1%N); rewrite //= addrC.
rewrite /attend /A /column_softmax /softmax !big_ord_recl !big_ord0 /two_token_weights /= !mulr1 !addr0.
rewrite -subr_eq0; case: (val query == 0%N) => /=.
  have -> : 1 / (1 + 1) + x / (x + 1) - 1 = (x - 1) / ((1 + 1) * (1 + x)).
    by field.
  by rewrite mulf_neq0 // invr_eq0 mulf_neq0.
have -> : 1 / (1 + 1) + 1 / (x + 1) - 1 = - ((x - 1) / ((1 + 1) * (1 + x))).
  by field.
by rewrite oppr_eq0 mulf_neq0 // invr_eq0 mulf_neq0.
Qed.
