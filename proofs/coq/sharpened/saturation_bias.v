(** S.saturation, the layer: how far the heads with a relative bias M are from the zero-padded convolution.

    In the setting of L21's Theorem 1 (patches of p₁ × p₂, r₁ ≤ p₁ m, r₂ ≤ p₂ n, a ring of m × n zero patches, N keys
    with the ring's) let the head of each offset δ have the bias M there and 0 elsewhere, and the kernel's map M_δ
    for its value map. At every output j of every query the layer is off the convolution by at most

      (N - 1) / (e^M + N - 1) · Σ_δ (high_δ - low_δ),

    if the feature j of X_k M_δ lies between low_δ and high_δ for all keys k; so by at most
    2 (N - 1) / (e^M + N - 1) · B Σ_δ Σ_i |M_δ,ij|, if no pixel is greater than B in size. For every kernel, image
    and number of patches, over an ordered field with an exponential. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Convattn.foundation Require Import attention image heads grid patches exponential total_variation.
From Convattn.sharpened Require Import saturation.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Theorem saturation_bias (R : realFieldType) (E : R -> R) (In Out : finType)
    (rows columns p1 p2 m n r1 r2 : nat) (M : R) (W : nat -> nat -> In -> Out -> R) (X : image_type R In)
    (q : bare_grid rows columns) (t : patch_feature p1 p2 Out) :
  is_exponential E -> (r1 <= p1 * m)%N -> (r2 <= p2 * n)%N ->
  let others : R := (#|ringed_grid rows columns m n|.-1)%:R in
  let maps (d : token_offset m n) : patch_feature p1 p2 In -> patch_feature p1 p2 Out -> R :=
    output_block m n r1 r2 W d.1 d.2 in
  let error := `|attention_layer
      (fun d (q : bare_grid rows columns) => softmax (bias_weights (E M) (ringed_target q d)))
      maps (patch_token X) q t -
    convolution (p1 * rows) (p2 * columns) r1 r2 W X
      (p1 * q.1 + t.1.1)%N (p2 * q.2 + t.1.2)%N t.2| in
  (forall low high : token_offset m n -> R,
    (forall d (k : ringed_grid rows columns m n), low d <= feature_map (maps d) (patch_token X k) t <= high d) ->
    error <= others / (E M + others) * \sum_d (high d - low d)) /\
  (forall B : R, (forall y x c, `|X y x c| <= B) ->
    error <= 2%:R * (others / (E M + others)) * (B * \sum_d \sum_s `|maps d s t|)).
Proof.
move=> E_exp le1 le2 others maps error.
have E_gt0 := exponential_positive E_exp M.
have first low high :
    (forall d (k : ringed_grid rows columns m n), low d <= feature_map (maps d) (patch_token X k) t <= high d) ->
    error <= others / (E M + others) * \sum_d (high d - low d).
  move=> bound.
  have limit : attention_layer (hard_attention R (@ringed_target rows columns m n)) maps (patch_token X) q t =
      convolution (p1 * rows) (p2 * columns) r1 r2 W X (p1 * q.1 + t.1.1)%N (p2 * q.2 + t.1.2)%N t.2.
    by rewrite hard_heads /ringed_target convolution_of_tokens.
  have weights_gt0 d k : 0 < bias_weights (E M) (@ringed_target rows columns m n q d) k.
    by rewrite /bias_weights; case: ifP => _; rewrite ?ltr01.
  rewrite /error -limit big_distrr /=.
  apply: le_trans (layer_distance (low := low) (high := high) _ bound) _ => [d|].
    by rewrite (softmax_sums_to_one (ringed_key q d) (weights_gt0 d)) sum_one_hot.
  by apply: ler_sum => d _; rewrite bias_distance.
split=> [|B small]; first exact: first.
have B_ge0 (k : ringed_grid rows columns m n) s : `|patch_token X k s| <= B.
  rewrite /patch_token /zero_framed; case: ifP => _; first exact: small.
  by rewrite normr0; apply: le_trans (normr_ge0 _) (small 0%N 0%N s.2).
pose size d := B * \sum_s `|maps d s t|.
have near d (k : ringed_grid rows columns m n) : `|feature_map (maps d) (patch_token X k) t| <= size d.
  apply: le_trans (ler_norm_sum _ _ _) _; rewrite /size big_distrr /=; apply: ler_sum => s _.
  by rewrite normrM ler_wpmul2r ?B_ge0.
have le : error <= others / (E M + others) * \sum_d (size d - - size d).
  by apply: first => d k; rewrite -ler_norml near.
suff twice : \sum_d (size d - - size d) = 2%:R * (B * \sum_d \sum_s `|maps d s t|).
  by move: le; rewrite twice mulrCA mulrA.
rewrite /size [B * \sum_d _]big_distrr big_distrr /=; apply: eq_bigr => d _.
by rewrite opprK; ring.
Qed.
