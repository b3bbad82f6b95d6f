(** How far two rows of attention are apart: half the sum of the absolute differences. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Convattn.foundation Require Import attention.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Definition total_variation (R : realFieldType) (Key : finType) (a b : Key -> R) : R :=
  (\sum_k `|a k - b k|) / 2%:R.

Section TotalVariation.

Variables (R : realFieldType) (Key : finType).
Implicit Types a b w y : Key -> R.

Lemma sum_one_hot (t : Key) : \sum_k one_hot R (Some t) k = 1.
Proof.
rewrite (bigD1 t) //= /one_hot eqxx big1 ?addr0 // => k /negbTE nk.
by rewrite (inj_eq Some_inj) nk.
Qed.

(** From a one-hot row, it is what the target lacks. *)
Lemma total_variation_one_hot a (t : Key) :
  (forall k, 0 <= a k) -> \sum_k a k = 1 -> total_variation a (one_hot R (Some t)) = 1 - a t.
Proof.
move=> ge0 sum1; have eq1 := sum1; rewrite (bigD1 t) //= in eq1.
have le1 : a t <= 1 by rewrite -eq1 ler_addl sumr_ge0.
rewrite /total_variation (bigD1 t) //= /one_hot eqxx mulr1n distrC ger0_norm ?subr_ge0 //.
rewrite (eq_bigr a) => [|k /negbTE nk]; last first.
  by rewrite (inj_eq Some_inj) nk subr0 ger0_norm.
have -> : \sum_(k | k != t) a k = 1 - a t by rewrite -eq1 addrC addKr.
by field.
Qed.

Lemma softmax_nonnegative w k : (forall k, 0 <= w k) -> 0 <= softmax w k.
Proof. by move=> ge0; rewrite divr_ge0 // sumr_ge0. Qed.

Lemma sum_positive w (t : Key) : (forall k, 0 < w k) -> 0 < \sum_k w k.
Proof.
move=> gt0; rewrite (bigD1 t) //= ltr_paddr // sumr_ge0 // => k _; exact: ltW.
Qed.

Lemma softmax_sums_to_one w (t : Key) : (forall k, 0 < w k) -> \sum_k softmax w k = 1.
Proof. by move=> gt0; apply: sum_softmax; rewrite gt_eqF // (sum_positive t). Qed.

(** A softmax row is as far from one-hot as its target lacks. *)
Lemma softmax_distance w (t : Key) : (forall k, 0 < w k) ->
  total_variation (softmax w) (one_hot R (Some t)) = 1 - softmax w t.
Proof.
move=> gt0; apply: total_variation_one_hot; last exact: softmax_sums_to_one.
by move=> k; apply: softmax_nonnegative => k'; exact: ltW.
Qed.

(** If all weights together are at most c times the target's, it is within 1 - 1/c. *)
Lemma softmax_distance_le w (t : Key) (c : R) : (forall k, 0 < w k) ->
  \sum_k w k <= c * w t -> total_variation (softmax w) (one_hot R (Some t)) <= 1 - c^-1.
Proof.
move=> gt0 lec; rewrite softmax_distance // ler_add2l ler_opp2 /softmax.
have S_gt0 := sum_positive t gt0.
have c_gt0 : 0 < c by rewrite -(pmulr_lgt0 _ (gt0 t)); exact: lt_le_trans lec.
by rewrite ler_pdivl_mulr // ler_pdivr_mull.
Qed.

(** A bias head that has its target: (N - 1) / (e + N - 1) from one-hot, e = exp M. *)
Lemma bias_distance (e : R) (t : Key) : 0 < e ->
  total_variation (softmax (bias_weights e (Some t))) (one_hot R (Some t)) =
    (#|Key|.-1)%:R / (e + (#|Key|.-1)%:R).
Proof.
move=> e_gt0; have w_gt0 k : 0 < bias_weights e (Some t) k.
  by rewrite /bias_weights; case: ifP => _ //; exact: ltr01.
have N_gt0 : (0 < #|Key|)%N by apply/card_gt0P; exists t.
rewrite softmax_distance // /softmax sum_bias_weights /bias_weights eqxx.
have -> : #|Key|%:R + e - 1 = e + (#|Key|.-1)%:R.
  by rewrite -{1}(prednK N_gt0) -addn1 natrD; ring.
have nz : e + (#|Key|.-1)%:R != 0 by rewrite gt_eqF // ltr_paddr ?ler0n.
by field.
Qed.

(** Two rows with one sum mix a column to within their distance times its spread. *)
Lemma attend_distance (Out : Type) a b (y : Key -> Out -> R) (o : Out) (low high : R) :
  \sum_k a k = \sum_k b k -> (forall k, low <= y k o <= high) ->
  `|attend a y o - attend b y o| <= total_variation a b * (high - low).
Proof.
move=> eqab spread; pose middle := (low + high) / 2%:R.
have -> : attend a y o - attend b y o = \sum_k (a k - b k) * (y k o - middle).
  have mix c : \sum_k c k * (y k o - middle) = attend c y o - (\sum_k c k) * middle.
    by rewrite big_distrl -sumrB; apply: eq_bigr => k _; rewrite mulrBr.
  under [in RHS]eq_bigr do rewrite mulrBl.
  by rewrite sumrB !mix eqab opprB addrA subrK.
apply: le_trans (ler_norm_sum _ _ _) _.
rewrite /total_variation -mulrA big_distrl; apply: ler_sum => k _ /=.
rewrite normrM ler_wpmul2l ?normr_ge0 //.
have /andP[ge_low le_high] := spread k.
rewrite ler_norml; apply/andP; split.
  rewrite -subr_ge0; have -> : y k o - middle - - (2%:R^-1 * (high - low)) = y k o - low.
    by rewrite /middle; field.
  by rewrite subr_ge0.
rewrite -subr_ge0; have -> : 2%:R^-1 * (high - low) - (y k o - middle) = high - y k o.
  by rewrite /middle; field.
by rewrite subr_ge0.
Qed.

End TotalVariation.
