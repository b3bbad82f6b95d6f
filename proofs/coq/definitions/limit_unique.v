(** What the limits in the statements mean: a function has at most one limit.

    Both notions of limit are held: at infinity ([tends_to]) and from above at zero
    ([tends_at_zero]). A definition that held for every number would make the theorems on limits
    empty, and this one false. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import limits sharp_limits.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Lemma distance_zero (R : realFieldType) (l l' : R) :
  (forall eps, 0 < eps -> `|l - l'| <= eps + eps) -> l = l'.
Proof.
move=> near; apply/eqP; rewrite -subr_eq0 -normr_eq0; apply/negPn/negP => ne0.
have gt0 : 0 < `|l - l'| by rewrite lt0r ne0 normr_ge0.
have quarter : 0 < `|l - l'| / 2%:R / 2%:R by rewrite !divr_gt0 ?ltr0n.
by have := near _ quarter; rewrite -splitr leNgt ltr_pdivr_mulr ?ltr0n // ltr_pmulr // ltr1n.
Qed.

Theorem limit_unique (R : realFieldType) (f g : R -> R) (l l' : R) :
  (tends_to f l -> tends_to f l' -> l = l') /\
  (tends_at_zero g l -> tends_at_zero g l' -> l = l').
Proof.
split=> lim lim'; apply: distance_zero => eps eps_gt0.
  have [a0 near] := lim _ eps_gt0; have [a0' near'] := lim' _ eps_gt0.
  rewrite -(subrK (f (Num.max a0 a0')) l) -addrA.
  apply: le_trans (ler_norm_add _ _) _; apply: ler_add; last by apply: near'; rewrite le_maxr lexx orbT.
  by rewrite distrC; apply: near; rewrite le_maxr lexx.
have [eta eta_gt0 near] := lim _ eps_gt0; have [eta' eta'_gt0 near'] := lim' _ eps_gt0.
pose t := Num.min eta eta' / 2%:R.
have min_gt0 : 0 < Num.min eta eta' by rewrite lt_minr eta_gt0.
have t_gt0 : 0 < t by rewrite divr_gt0 ?ltr0n.
have : t < Num.min eta eta' by rewrite /t ltr_pdivr_mulr ?ltr0n // ltr_pmulr // ltr1n.
rewrite lt_minr => /andP[lt lt'].
rewrite -(subrK (g t) l) -addrA; apply: le_trans (ler_norm_add _ _) _; apply: ler_add.
  by rewrite distrC ltW // near // t_gt0.
by rewrite ltW // near' // t_gt0.
Qed.
