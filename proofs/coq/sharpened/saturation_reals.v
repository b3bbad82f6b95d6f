(** S.saturation on the real numbers, with figures.

    With e^x of Coq's real numbers, whose axioms this file uses, and in total variation: a quadratic
    head of α > 0 is within 1 - ((1 - x)/(1 + x))², x = e^-α, of the one-hot row of the key nearest to
    its target, on every rectangle of keys and for every target of integer coordinates, as
    θ ≤ (1 + x)/(1 - x); that is less than 4.22·10^-20 at α = 46 and less than 2.8·10^-45 at α = 104. A
    head with the bias M = 40 at its target is at least (N - 1)·4.2·10^-18 from the one-hot row if it
    has N ≤ 10^15 keys, and at most (N - 1)·4.3·10^-18 for every N. *)

From Coq Require Import Reals Lra.
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring zify.
From Convattn.foundation Require Import attention exponential total_variation reals enclosure.
From Convattn.sharpened Require Import saturation.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Section Geometric.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Variables (F : realFieldType) (E : F -> F) (alpha : F).
Hypotheses (E_exp : is_exponential E) (alpha_ge0 : 0 <= alpha) (E_lt1 : E (- alpha) < 1).

Let x := E (- alpha).

Lemma exponential_power n : E (- (alpha * n%:R)) = x ^+ n.
Proof.
elim: n => [|n IH]; first by rewrite mulr0 oppr0 exponential_zero.
by rewrite exprS -IH -exponential_add // -[in LHS]add1n natrD mulrDr mulr1 opprD.
Qed.

(** One step further on both sides. *)
Lemma theta_step L : theta E alpha L.+1 = theta E alpha L + 2%:R * bell E alpha L.+1%:Z.
Proof.
rewrite /theta doubleS big_ord_recl big_ord_recr /=.
have -> : bell E alpha (0%Z - L.+1%:Z) = bell E alpha L.+1%:Z by rewrite /bell sub0r sqrrN.
have -> : (bump 0 L.*2.+1)%:Z - L.+1%:Z = L.+1%:Z by rewrite /bump; lia.
rewrite addrCA mulr_natl mulr2n; congr (_ + _); apply: eq_bigr => i _; congr bell.
by rewrite /bump; lia.
Qed.

(** θ is at most the sum of x^|n|. *)
Lemma theta_le L : theta E alpha L <= (1 + x) / (1 - x).
Proof.
have x_gt0 : 0 < x by exact: exponential_positive.
have gap : 0 < 1 - x by rewrite subr_gt0.
have nz : 1 - x != 0 by rewrite gt_eqF.
suff le_L : theta E alpha L <= 1 + 2%:R * (x * (1 - x ^+ L) / (1 - x)).
  apply: le_trans le_L _; rewrite -subr_ge0.
  have -> : (1 + x) / (1 - x) - (1 + 2%:R * (x * (1 - x ^+ L) / (1 - x))) =
      2%:R * (x * x ^+ L / (1 - x)) by field.
  by rewrite mulr_ge0 ?ler0n // divr_ge0 ?mulr_ge0 ?exprn_ge0 // ltW.
elim: L => [|L IH].
  rewrite /theta big_ord_recl big_ord0 addr0 /bell /= subrr expr0n mulr0z mulr0 oppr0.
  by rewrite exponential_zero // expr0 subrr mulr0 mul0r mulr0 addr0.
rewrite theta_step.
have -> : 1 + 2%:R * (x * (1 - x ^+ L.+1) / (1 - x)) =
    1 + 2%:R * (x * (1 - x ^+ L) / (1 - x)) + 2%:R * x ^+ L.+1 by rewrite exprS; field.
rewrite ler_add // ler_pmul2l ?ltr0n // /bell -exponential_power.
apply: exponential_monotone => //; rewrite ler_opp2 ler_wpmul2l //.
by rewrite pmulrn ler_int expr2 ler_pmulr // ltz_nat.
Qed.

Lemma quadratic_distance_le (rows columns : nat) (t : int * int) (p : 'I_rows * 'I_columns) :
  (forall k : 'I_rows * 'I_columns, squared_distance t p <= squared_distance t k) ->
  total_variation (softmax (distance_weights E alpha t)) (one_hot F (Some p)) <=
    1 - ((1 - x) / (1 + x)) ^+ 2.
Proof.
move=> nearest; pose L := (rows + columns)%N.
have le1 : (rows <= L.+1)%N by rewrite /L; lia.
have le2 : (columns <= L.+1)%N by rewrite /L; lia.
apply: le_trans (quadratic_distance E_exp alpha_ge0 le1 le2 nearest) _.
have x_gt0 : 0 < x by exact: exponential_positive.
have gap : 0 < 1 - x by rewrite subr_gt0.
have pos : 0 < 1 + x by rewrite addr_gt0 ?ltr01.
have theta_gt0 : 0 < theta E alpha L.
  by rewrite /theta (sum_positive (ord0 : 'I_L.*2.+1)) // => i; exact: bell_positive.
have q_gt0 : 0 < (1 - x) / (1 + x) by rewrite divr_gt0.
rewrite ler_add2l ler_opp2 -exprVn.
apply: ler_expn2r; rewrite ?nnegrE ?invr_ge0 ?(ltW q_gt0) ?(ltW theta_gt0) //.
by rewrite -invf_div lef_pinv ?posrE ?divr_gt0 // theta_le.
Qed.

End Geometric.

Local Open Scope R_scope.

Lemma divE (a b : R) : b <> 0 -> GRing.mul a (GRing.inv b) = a / b.
Proof.
by move=> /eqP/negbTE ne; rewrite /GRing.inv /= /inv_real ne.
Qed.

(** The exponential of a negative number is less than one. *)
Lemma exp_neg_lt1 (alpha : R) : 0 < alpha -> exp (- alpha) < 1.
Proof. by move=> alpha_gt0; rewrite -exp_0; apply: exp_increasing; lra. Qed.

Theorem saturation_reals :
  (forall (alpha : R) (rows columns : nat) (t : int * int) (p : 'I_rows * 'I_columns),
    0 < alpha ->
    (forall k : 'I_rows * 'I_columns, (squared_distance t p <= squared_distance t k)%O) ->
    let distance := total_variation (softmax (distance_weights exp alpha t)) (one_hot _ (Some p)) in
    distance <= 1 - ((1 - exp (- alpha)) / (1 + exp (- alpha))) ^ 2 /\
    (alpha = 46 -> distance < 4.22e-20) /\ (alpha = 104 -> distance < 2.8e-45)) /\
  (forall (Key : finType) (target : Key),
    let others := INR (#|Key|.-1) in
    let distance :=
      total_variation (softmax (bias_weights (exp 40) (Some target))) (one_hot _ (Some target)) in
    (others <= 1e15 -> others * 4.2e-18 <= distance) /\ distance <= others * 4.3e-18).
Proof.
split=> [alpha rows columns t p alpha_gt0 nearest distance | Key target others distance].
  have bound : distance <= 1 - ((1 - exp (- alpha)) / (1 + exp (- alpha))) ^ 2.
    have alpha_ge0 : (GRing.zero R_zmodType <= alpha)%O by apply/leRP; exact: Rlt_le.
    have lt1 : (exp (- alpha) < GRing.one R_ringType)%O by apply/ltRP; exact: exp_neg_lt1.
    have := quadratic_distance_le exp_is_exponential alpha_ge0 lt1 nearest.
    have nz : 1 + exp (- alpha) <> 0 by have := exp_pos (- alpha); lra.
    by move=> /leRP; rewrite GRing.expr2 /= Rmult_1_r -divE.
  split=> //; split=> eq_alpha; move: bound; rewrite eq_alpha => bound;
    by apply: Rle_lt_trans bound _; interval with (i_prec 200).
have exp40 : 2.35e17 < exp 40 < 2.36e17 by split; interval with (i_prec 40).
have others_ge0 : 0 <= others by exact: pos_INR.
have distanceE : distance = others / (exp 40 + others).
  rewrite /distance bias_distance; last by apply/ltRP; exact: exp_pos.
  have natE n : GRing.natmul (GRing.one R_ringType) n = INR n.
    by elim: n => // n IH; rewrite S_INR -IH GRing.mulrSr.
  have pos : exp 40 + others <> 0 by lra.
  by rewrite natE; exact: (divE others pos).
have total : others / (exp 40 + others) * (exp 40 + others) = others * 1.
  by rewrite /Rdiv Rmult_assoc Rinv_l //; lra.
rewrite distanceE; split=> [le|]; apply: (Rmult_le_reg_r (exp 40 + others)); try lra.
  by rewrite total Rmult_assoc; apply: Rmult_le_compat_l => //; lra.
by rewrite total Rmult_assoc; apply: Rmult_le_compat_l => //; lra.
Qed.
