(** B19.softmax (amended): attention rows that are softmaxes over the keys make convex combinations.

    Let row i of A be the softmax over the keys of positive weights (the exponentials of its scores).
    Then its entries are positive and sum to one, and y_i = Σ_j A_ij v_j is a convex combination of the
    values: every feature of it, and every linear function of the features, lies between any bounds
    that all values obey. For coefficients without a sign: they reproduce a constant value for all
    queries only if every row sums to one. Over any ordered field, any number of keys, queries,
    features. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention total_variation.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** Convex weights keep every bound. *)
Lemma convex_bound (R : realFieldType) (Key : finType) (a y : Key -> R) (low high : R) :
  (forall k, 0 <= a k) -> \sum_k a k = 1 -> (forall k, low <= y k <= high) ->
  low <= \sum_k a k * y k <= high.
Proof.
move=> a_ge0 sum1 bound; rewrite -[low]mul1r -[high]mul1r -sum1 !big_distrl /=.
by apply/andP; split; apply: ler_sum => k _; rewrite ler_wpmul2l //; case/andP: (bound k).
Qed.

Theorem softmax (R : realFieldType) (Query Key In : finType) (w : Query -> Key -> R) :
  (forall q k, 0 < w q k) -> (0 < #|Key|)%N ->
  let A q := attention.softmax (w q) in
  [/\ forall q k, 0 < A q k,
      forall q, \sum_k A q k = 1,
      forall q (V : Key -> In -> R) (c : In -> R) (low high : R),
        (forall k, low <= \sum_i V k i * c i <= high) ->
        low <= \sum_i attend (A q) V i * c i <= high
    & forall B : Query -> Key -> R,
        (forall q i, attend (B q) (fun (_ : Key) (_ : In) => 1) i = 1) -> (0 < #|In|)%N ->
        forall q, \sum_k B q k = 1].
Proof.
move=> w_gt0 /card_gt0P[k0 _] A.
have sum1 q : \sum_k A q k = 1 by exact: (softmax_sums_to_one k0).
have A_ge0 q k : 0 < A q k by rewrite divr_gt0 // (sum_positive k0).
split=> // [q V c low high bound | B reproduces /card_gt0P[i _] q].
  have -> : \sum_i attend (A q) V i * c i = \sum_k A q k * \sum_i V k i * c i.
    rewrite /attend; under eq_bigr do rewrite big_distrl; rewrite exchange_big /=.
    by apply: eq_bigr => k _; rewrite big_distrr /=; apply: eq_bigr => i _; rewrite mulrA.
  by apply: convex_bound => // k; exact: ltW.
by rewrite -(reproduces q i); apply: eq_bigr => k _; rewrite mulr1.
Qed.
