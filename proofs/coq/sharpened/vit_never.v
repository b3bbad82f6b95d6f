(** S.vit, converse: no vision transformer computes a function that is not bounded.

    Take a vision transformer with any number of blocks, heads, features and hidden units, any
    parameters, any function E for the exponential and any Φ in GELU, over an ordered field with a
    square root; ε ≥ 0. Its last layer normalisation sees D features, and its gain is g, its shift
    b; the classifier has the weights w and the biases c. Then

    1. each logit l is at most Σ_i (|g_i| √D + |b_i|) |w_il| + |c_l| in absolute value, on all
       images, as a normalised number is at most √D;
    2. so from a function of the image that exceeds every bound it is off by more than any error, on
       some image;
    3. in particular from one that is affine and not constant along a line of images, as is a linear
       readout of a convolution along an image on which it is not zero;
    4. let the logit have the identity property along a line of images: where it is an affine function
       on an interval, it is the same one on the whole line. If it is affine on an interval, it is
       constant there.

    A bounded function, such as a constant, may well be computed exactly, and of bounded sets of images
    only 4 says anything. That analytic functions have the identity property, and that the logits are
    analytic in the image if ε > 0, is not covered: 4 takes the property as a hypothesis. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention square_root vision_transformer.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** The line of images through X in the direction U. *)
Definition image_line (R : fieldType) (Place Pixel : Type) (X U : Place -> Pixel -> R) (t : R)
    (k : Place) (c : Pixel) : R :=
  X k c + t * U k c.

Section Bounded.

Variables (R : realFieldType) (root : R -> R).
Hypothesis root_root : is_square_root root.

(** A normalised number is at most √D. *)
Lemma normalised_bound (Feature : finType) (epsilon : R) (x : Feature -> R) i : 0 <= epsilon ->
  `|(x i - feature_mean x) / root (feature_variance x + epsilon)| <= root #|Feature|%:R.
Proof.
move=> epsilon_ge0; apply: at_most_root => //.
have D_gt0 : 0 < #|Feature|%:R :> R by rewrite ltr0n; apply/card_gt0P; exists i.
have square : (x i - feature_mean x) ^+ 2 <= #|Feature|%:R * feature_variance x.
  rewrite /feature_variance {2}/feature_mean mulrC divfK ?gt_eqF // (bigD1 i) //=.
  by rewrite ler_addl sumr_ge0 // => j _; exact: sqr_ge0.
have var_ge0 : 0 <= feature_variance x.
  by rewrite -(pmulr_rge0 _ D_gt0); exact: le_trans (sqr_ge0 _) square.
have sum_ge0 : 0 <= feature_variance x + epsilon by rewrite addr_ge0.
have [zero|pos] := leP (feature_variance x + epsilon) 0.
  have -> : feature_variance x + epsilon = 0 by apply/le_anti; rewrite zero.
  by rewrite root_of_zero // invr0 mulr0 expr0n ltW.
rewrite expr_div_n (root_squared root_root) // ler_pdivr_mulr //; apply: le_trans square _.
by rewrite ler_pmul2l // ler_addl.
Qed.

Variables (E Phi : R -> R) (epsilon : R) (Place Pixel Feature Head Inner Hidden : finType) (Label : Type).
Variable V : vision_transformer R Place Pixel Feature Head Inner Hidden Label.
Hypothesis epsilon_ge0 : 0 <= epsilon.

Let logit := transformer_logit E root Phi epsilon V.
Let logit_size l := \sum_i (`|final_gain V i| * root #|Feature|%:R + `|final_shift V i|) * `|logit_map V i l|
  + `|logit_bias V l|.

Lemma logit_bound X l : `|logit X l| <= logit_size l.
Proof.
rewrite /logit /transformer_logit /affine_map; apply: le_trans (ler_norm_add _ _) _.
rewrite /logit_size ler_add2r; apply: le_trans (ler_norm_sum _ _ _) _; apply: ler_sum => i _.
rewrite normrM ler_wpmul2r //; apply: le_trans (ler_norm_add _ _) _.
by rewrite ler_add2r normrM ler_wpmul2l // normalised_bound.
Qed.

Lemma off_unbounded (T : Type) (image : T -> Place -> Pixel -> R) (f : T -> R) l :
  (forall b, exists t, b < `|f t|) ->
  forall error, exists t, error < `|logit (image t) l - f t|.
Proof.
move=> grows error; have [t large] := grows (logit_size l + error); exists t.
rewrite -(ltr_add2l (logit_size l)); apply: lt_le_trans large _.
rewrite -{1}(subKr (logit (image t) l) (f t)).
by apply: le_trans (ler_norm_sub _ _) _; rewrite ler_add2r logit_bound.
Qed.

(** An affine function of a number that is not constant exceeds every bound. *)
Lemma affine_unbounded (a b : R) : b != 0 -> forall c, exists t, c < `|a + b * t|.
Proof.
move=> nz c; exists ((`|a| + `|c| + 1) / b).
rewrite mulrC divfK //; apply: lt_le_trans (ler_norm _).
have -> : a + (`|a| + `|c| + 1) = a + `|a| + (`|c| + 1) by rewrite !addrA.
apply: (@lt_le_trans _ _ (`|c| + 1)); first by rewrite ltr_spaddr ?ltr01 // ler_norm.
by rewrite ler_addr -ler_subl_addl sub0r -normrN ler_norm.
Qed.

End Bounded.

Theorem vit_never (R : realFieldType) (E root Phi : R -> R) (epsilon : R)
    (Place Pixel Feature Head Inner Hidden : finType) (Label : Type)
    (V : vision_transformer R Place Pixel Feature Head Inner Hidden Label) (l : Label) :
  is_square_root root -> 0 <= epsilon ->
  let logit X := transformer_logit E root Phi epsilon V X l in
  [/\ forall X, `|logit X| <=
        \sum_i (`|final_gain V i| * root #|Feature|%:R + `|final_shift V i|) * `|logit_map V i l|
          + `|logit_bias V l|,
      forall f : (Place -> Pixel -> R) -> R, (forall bound, exists X, bound < `|f X|) ->
        forall error, exists X, error < `|logit X - f X|,
      forall (X U : Place -> Pixel -> R) (a b : R), b != 0 ->
        forall error, exists t, error < `|logit (image_line X U t) - (a + b * t)|
    & forall X U : Place -> Pixel -> R,
        let affine_on (a b : R) (interval : pred R) :=
          forall t, interval t -> logit (image_line X U t) = a + b * t in
        (forall a b low high, low < high -> affine_on a b (fun t => low <= t <= high) ->
          affine_on a b xpredT) ->
        forall a b low high, low < high -> affine_on a b (fun t => low <= t <= high) -> b = 0].
Proof.
move=> root_root epsilon_ge0 logit; split.
- by move=> X; exact: logit_bound.
- by move=> f; exact: (off_unbounded root_root E Phi V epsilon_ge0 id).
- move=> X U a b nz.
  exact: (off_unbounded root_root E Phi V epsilon_ge0 (image_line X U) l (affine_unbounded a nz)).
move=> X U affine_on identity a b low high lt /(identity _ _ _ _ lt) everywhere.
apply/eqP/negPn/negP => nz.
have [t] := off_unbounded root_root E Phi V epsilon_ge0 (image_line X U) l (affine_unbounded a nz) 0.
by have := everywhere t isT; rewrite /logit => ->; rewrite subrr normr0 ltxx.
Qed.
