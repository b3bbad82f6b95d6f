(** L21.lemma2: a relative bias M at one offset attends to one patch, in the limit (amended).

    Let N be the number of patches and E an exponential over an ordered field: positive,
    non-decreasing, from sums to products, exceeding every bound (the real one is such). A row of
    scores with M at one patch and 0 at all others, after softmax,

    1. is E(M) / (E(M) + N - 1) there and 1 / (E(M) + N - 1) elsewhere: eq. 10;
    2. is at the total variation (N - 1) / (E(M) + N - 1) from the one-hot row, exactly, which is
       positive for every M if N > 1;
    3. tends to the one-hot row as M → ∞.
    4. The row of a query whose target is no patch has 0 everywhere and is uniform, 1/N, whatever M
       is, so that there eq. 10 is false and the indicator is not approached. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Convattn.foundation Require Import attention exponential total_variation sharp_limits.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Theorem lemma2 (R : realFieldType) (E : R -> R) (Key : finType) (target : Key) :
  is_exponential E -> unbounded E ->
  let N : R := #|Key|%:R in
  let row M := softmax (bias_weights (E M) (Some target)) in
  [/\ forall M k, row M k = (if k == target then E M else 1) / (E M + N - 1),
      forall M, total_variation (row M) (one_hot R (Some target)) = (N - 1) / (E M + N - 1)
        /\ ((1 < #|Key|)%N -> 0 < (N - 1) / (E M + N - 1)),
      forall k, tends_to (fun M => row M k) (one_hot R (Some target) k)
    & forall M k, softmax (bias_weights (E M) (None : option Key)) k = 1 / N].
Proof.
move=> E_exp E_unbounded N row.
have gt0 M k : 0 < bias_weights (E M) (Some target) k.
  by rewrite /bias_weights; case: ifP => _; rewrite ?ltr01 ?exponential_positive.
have N_ge1 : 0 <= N - 1 by rewrite subr_ge0 ler1n; apply/card_gt0P; exists target.
have Z_gt0 M : 0 < E M + N - 1 by rewrite -addrA ltr_paddr // exponential_positive.
have entry M k : row M k = (if k == target then E M else 1) / (E M + N - 1).
  rewrite /row /softmax sum_bias_weights [N + E M]addrC /bias_weights.
  by rewrite (inj_eq Some_inj).
split=> // [M|k|M k].
- split=> [|many]; last by rewrite divr_gt0 // subr_gt0 ltr1n.
  rewrite softmax_distance // -/(row M target) entry eqxx.
  by field; rewrite gt_eqF.
- exact: bias_tends_to_one_hot.
by rewrite /softmax /bias_weights /= sum_one.
Qed.
