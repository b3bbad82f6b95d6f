(** S.vit for convolutional networks, over the real numbers, whose axioms this file uses.

    With exp and sqrt of Coq's real numbers: for every network of convolutions as in [vit_convolution], every
    ε ≥ 0, every Φ such that z Φ(z) stays within some c of max(0, z), every bound on the pixels and
    every error > 0 there is a vision transformer with a block more than layers whose logits are within
    the error on all images within the bound. The logistic function, Φ(z) = 1/(1 + exp(-a z)), is such a
    Φ, with c = 1/a: for a = 1 this is SiLU, for a = 1.702 an approximation of GELU in use. That the
    Gaussian's is one, with c = 0.17, is not covered. *)

From Coq Require Import Reals Lra.
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Convattn.foundation Require Import exponential sharp_limits reals square_root grid.
From Convattn.foundation Require Import vision_transformer convolutional_network.
From Convattn.sharpened Require Import vit_convolution.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Section Logistic.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Variables (F : realFieldType) (E : F -> F) (a : F).
Hypotheses (E_exp : is_exponential E) (a_gt0 : 0 < a) (E_above : forall x, x <= E x).

Definition logistic (z : F) : F := 1 / (1 + E (- (a * z))).

Lemma logistic_bound z : `|z * logistic z - Num.max 0 z| <= 1 / a.
Proof.
have part y : 0 <= y -> y / (1 + E (a * y)) <= 1 / a.
  move=> y_ge0; have pos : 0 < 1 + E (a * y) by rewrite addr_gt0 ?ltr01 ?exponential_positive.
  rewrite ler_pdivr_mulr // mul1r mulrC ler_pdivl_mulr // mulrC.
  by apply: le_trans (E_above _) _; rewrite ler_addr ler01.
have pos y : 0 < 1 + E y by rewrite addr_gt0 ?ltr01 ?exponential_positive.
rewrite /logistic div1r; have [z_le0|z_gt0] := leP z 0.
  rewrite subr0 normrM (ler0_norm z_le0) gtr0_norm ?invr_gt0 //.
  by rewrite -mulrN part // oppr_ge0.
have -> : z / (1 + E (- (a * z))) - z = - (z / (1 + E (a * z))).
  rewrite (exponential_opp E_exp); have ne := exponential_nonzero E_exp (a * z).
  by field; rewrite ne addrC !gt_eqF ?pos // addrC.
by rewrite normrN ger0_norm ?part ?divr_ge0 // ltW.
Qed.

End Logistic.

Local Open Scope R_scope.

Lemma sqrt_is_square_root : is_square_root (sqrt : R -> R).
Proof.
move=> x /leRP x_ge0; split; first by apply/leRP; exact: sqrt_pos.
by rewrite GRing.expr2; exact: sqrt_sqrt.
Qed.

Lemma exp_above (x : R) : (x <= exp x)%O.
Proof. by apply/leRP; have := exp_ineq1_le x; lra. Qed.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Theorem vit_reals :
  (forall a : R, 0 < a -> forall z, `|z * logistic exp a z - Num.max 0 z| <= 1 / a) /\
  forall (Phi : R -> R) (c epsilon : R) (rows columns m n : nat) (Pixel Channel Label : finType)
      (C : convolutional_network R Pixel Channel Label m n),
    (forall z, `|z * Phi z - Num.max 0 z| <= c) -> 0 <= epsilon -> (0 < rows)%N -> (0 < columns)%N ->
    forall image_bound error : R, 0 < error ->
    exists (Feature Head Inner : finType)
      (V : vision_transformer R (bare_grid rows columns) Pixel Feature Head Inner Channel Label),
      [/\ #|Feature| = (#|Head| * #|Inner|)%N,
          size (transformer_blocks V) = (size (convolution_layers C)).+1
        & forall X : bare_grid rows columns -> Pixel -> R, (forall k i, `|X k i| <= image_bound) ->
            forall l, `|transformer_logit exp sqrt Phi epsilon V X l - convolutional_logit C X l| <= error].
Proof.
split=> [a a_gt0 z | Phi c epsilon rows columns m n Pixel Channel Label C bent epsilon_ge0 rows_gt0 columns_gt0].
  exact: logistic_bound exp_is_exponential a_gt0 exp_above z.
move=> image_bound error error_gt0.
have [Feature [Head [Inner [V [heads widths _ blocks close]]]]] := vit_convolution C exp_is_exponential
  exp_unbounded sqrt_is_square_root bent epsilon_ge0 rows_gt0 columns_gt0 image_bound error_gt0.
by exists Feature, Head, Inner, V; split; rewrite // widths heads.
Qed.
