(** Limits from above at zero, in an ordered field, by ε and η. *)

From mathcomp Require Import all_ssreflect all_algebra.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** g(t) tends to the limit as t > 0 tends to zero. *)
Definition tends_at_zero (R : realFieldType) (g : R -> R) (limit : R) : Prop :=
  forall eps, 0 < eps -> exists2 eta, 0 < eta & forall t, 0 < t < eta -> `|g t - limit| < eps.

Section Limits.

Variable R : realFieldType.
Implicit Types (g : R -> R) (c limit : R).

Lemma eq_tends g g' limit : g =1 g' -> tends_at_zero g limit -> tends_at_zero g' limit.
Proof.
by move=> eqg lim eps /lim[eta eta_gt0 close]; exists eta => // t /close; rewrite eqg.
Qed.

Lemma tends_const c : tends_at_zero (fun=> c) c.
Proof. by move=> eps eps_gt0; exists 1 => [|t _]; rewrite ?ltr01 // subrr normr0. Qed.

Lemma tends_add g g' limit limit' : tends_at_zero g limit -> tends_at_zero g' limit' ->
  tends_at_zero (fun t => g t + g' t) (limit + limit').
Proof.
move=> lim lim' eps eps_gt0; have half_gt0 : 0 < eps / 2%:R by rewrite divr_gt0 ?ltr0n.
have [eta eta_gt0 close] := lim _ half_gt0; have [eta' eta'_gt0 close'] := lim' _ half_gt0.
exists (Num.min eta eta') => [|t]; first by rewrite lt_minr eta_gt0.
rewrite lt_minr => /and3P[t_gt0 lt lt']; rewrite opprD addrACA.
apply: le_lt_trans (ler_norm_add _ _) _; rewrite [eps]splitr.
by rewrite ltr_add ?close ?close' ?t_gt0.
Qed.

Lemma tends_scale g limit c : tends_at_zero g limit -> tends_at_zero (fun t => g t * c) (limit * c).
Proof.
move=> lim eps eps_gt0; have bound_gt0 : 0 < `|c| + 1 by rewrite ltr_paddl ?ltr01.
have [eta eta_gt0 close] := lim _ (divr_gt0 eps_gt0 bound_gt0).
exists eta => // t /close; rewrite ltr_pdivl_mulr // => lt; rewrite -mulrBl normrM.
by apply: le_lt_trans lt; rewrite ler_wpmul2l // ler_addl ler01.
Qed.

Lemma tends_sum (T : finType) (g : T -> R -> R) (limit : T -> R) :
  (forall i, tends_at_zero (g i) (limit i)) ->
  tends_at_zero (fun t => \sum_i g i t) (\sum_i limit i).
Proof.
move=> lim; elim: (index_enum T) => [|i s IH].
  by rewrite big_nil; apply: eq_tends (tends_const 0) => t; rewrite big_nil.
by rewrite big_cons; apply: eq_tends (tends_add (lim i) IH) => t; rewrite big_cons.
Qed.

(** What is a constant over t, and has a limit, is zero. *)
Lemma tends_vanishing g limit c : tends_at_zero g limit ->
  (forall t, 0 < t -> t * g t = c) -> c = 0 /\ limit = 0.
Proof.
move=> lim eqc.
have c0 : c = 0.
  have [eta eta_gt0 close] := lim 1 ltr01.
  have bound_gt0 : 0 < `|limit| + 1 by rewrite ltr_paddl ?ltr01.
  apply/eqP/negPn/negP => c_ne0; have norm_gt0 : 0 < `|c| by rewrite normr_gt0.
  pose t := Num.min eta (`|c| / (`|limit| + 1)) / 2%:R.
  have min_gt0 : 0 < Num.min eta (`|c| / (`|limit| + 1)) by rewrite lt_minr eta_gt0 divr_gt0.
  have t_gt0 : 0 < t by rewrite divr_gt0 ?ltr0n.
  have lt_min : t < Num.min eta (`|c| / (`|limit| + 1)).
    by rewrite /t ltr_pdivr_mulr ?ltr0n // ltr_pmulr // ltr1n.
  move: lt_min; rewrite lt_minr => /andP[lt_eta lt_c].
  have : `|g t| <= `|limit| + 1.
    rewrite -[g t](subrK limit) addrC; apply: le_trans (ler_norm_add _ _) _.
    by rewrite ler_add2l ltW // close // t_gt0.
  rewrite leNgt => /negP; apply.
  move: lt_c; rewrite ltr_pdivl_mulr // -(eqc t t_gt0) normrM (gtr0_norm t_gt0).
  by rewrite ltr_pmul2l.
split=> //; apply/eqP; rewrite -normr_eq0; apply/eqP/le_anti; rewrite normr_ge0 andbT.
rewrite leNgt; apply/negP => norm_gt0; have [eta eta_gt0 close] := lim _ norm_gt0.
have half_gt0 : 0 < eta / 2%:R by rewrite divr_gt0 ?ltr0n.
have := close (eta / 2%:R); rewrite half_gt0 ltr_pdivr_mulr ?ltr0n // ltr_pmulr // ltr1n => /(_ isT).
have /eqP := eqc _ half_gt0; rewrite c0 mulf_eq0 gt_eqF //= => /eqP ->.
by rewrite sub0r normrN ltxx.
Qed.

End Limits.
