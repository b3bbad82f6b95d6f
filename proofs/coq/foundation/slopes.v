(** Derivatives from above at zero, in an ordered field, and limits of products. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import limits.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Slopes.

Variable R : realFieldType.
Implicit Types (g : R -> R) (a b d limit : R).

(** The derivative from above at zero. *)
Definition has_slope (g : R -> R) (d : R) : Prop := tends_at_zero (fun t => (g t - g 0) / t) d.

Lemma eq_slope g g' d : g =1 g' -> has_slope g d -> has_slope g' d.
Proof. by move=> e; apply: eq_tends => t; rewrite !e. Qed.

Lemma slope_add g g' d d' : has_slope g d -> has_slope g' d' ->
  has_slope (fun t => g t + g' t) (d + d').
Proof.
move=> s s'; apply: eq_tends (tends_add s s') => t.
by rewrite -mulrDl opprD addrACA.
Qed.

Lemma slope_sum (T : finType) (g : T -> R -> R) (d : T -> R) :
  (forall i, has_slope (g i) (d i)) -> has_slope (fun t => \sum_i g i t) (\sum_i d i).
Proof.
move=> s; apply: eq_tends (tends_sum s) => t.
by rewrite -sumrB mulr_suml.
Qed.

(** What has a slope is continuous. *)
Lemma slope_continuous g d : has_slope g d -> tends_at_zero g (g 0).
Proof.
move=> s eps pos; have [eta eta_gt0 close] := s 1 ltr01.
have bound : 0 < `|d| + 1 by rewrite ltr_paddl ?ltr01.
exists (Num.min eta (eps / (`|d| + 1))) => [|t]; first by rewrite lt_minr eta_gt0 divr_gt0.
rewrite lt_minr => /and3P[t_gt0 lt lt_eps].
have near : `|(g t - g 0) / t| <= `|d| + 1.
  rewrite -[X in `|X|](subrK d) addrC; apply: le_trans (ler_norm_add _ _) _.
  by rewrite ler_add2l ltW // close // t_gt0.
rewrite -[g t - g 0](divfK (lt0r_neq0 t_gt0)) normrM (gtr0_norm t_gt0).
apply: le_lt_trans (ler_wpmul2r (ltW t_gt0) near) _.
by rewrite mulrC -ltr_pdivl_mulr.
Qed.

Lemma tends_bounded g limit : tends_at_zero g limit ->
  exists2 eta, 0 < eta & forall t, 0 < t < eta -> `|g t| <= `|limit| + 1.
Proof.
move=> lim; have [eta pos close] := lim 1 ltr01; exists eta => // t /close lt.
rewrite -[g t](subrK limit) addrC; apply: le_trans (ler_norm_add _ _) _.
by rewrite ler_add2l ltW.
Qed.

Lemma tends_mul g g' limit limit' : tends_at_zero g limit -> tends_at_zero g' limit' ->
  tends_at_zero (fun t => g t * g' t) (limit * limit').
Proof.
move=> lim lim'; have [eta eta_gt0 small] := tends_bounded lim'.
suff lim0 : tends_at_zero (fun t => (g t - limit) * g' t) 0.
  have := tends_add lim0 (tends_scale limit lim').
  rewrite add0r [limit' * _]mulrC; apply: eq_tends => t.
  by rewrite mulrBl [g' t * _]mulrC subrK.
move=> eps pos; have bound : 0 < `|limit'| + 1 by rewrite ltr_paddl ?ltr01.
have [eta' eta'_gt0 close] := lim _ (divr_gt0 pos bound).
exists (Num.min eta eta') => [|t]; first by rewrite lt_minr eta_gt0.
rewrite lt_minr subr0 normrM => /and3P[t_gt0 lt lt'].
apply: (@le_lt_trans _ _ (`|g t - limit| * (`|limit'| + 1))).
  by rewrite ler_wpmul2l // small // t_gt0.
by rewrite -ltr_pdivl_mulr // close // t_gt0.
Qed.

Lemma tends_unique g a b : tends_at_zero g a -> tends_at_zero g b -> a = b.
Proof.
move=> lima limb; have := tends_add lima (tends_scale (- 1) limb).
rewrite mulrN1 => lim; apply/eqP; rewrite -subr_eq0.
have zero : tends_at_zero (fun _ : R => 0 : R) (a - b).
  by apply: eq_tends lim => t; rewrite mulrN1 subrr.
by have [_ ->] := tends_vanishing zero (fun t _ => mulr0 t).
Qed.

End Slopes.
