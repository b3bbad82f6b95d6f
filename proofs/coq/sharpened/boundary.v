(** S.boundary, the bias: without a ring every missing token is read as the mean of all.

    Cut an image of p₁ · rows by p₂ · columns pixels into N patches of p₁ × p₂, with r₁ ≤ p₁ m and r₂ ≤ p₂ n,
    and frame it by m × n patches that are each the mean of all its patches. On the bare grid (the keys are
    the image's own patches), let the head of an offset have the weight e at its target and 1 elsewhere, and 1
    everywhere if the target does not exist. Let N and N + e - 1 not be zero. Then (1) the layer of S.finite,
    with the uniform head, is the convolution of the image so framed, exactly, for e ≠ 1; (2) without the
    uniform head, and with the maps of L21's Theorem 1, the layer is that convolution plus N / (N + e - 1)
    times a remainder that depends on the image but not on e = exp M; over the reals that factor vanishes as M
    → ∞. For P > 1 the mean patch is not constant: each of its pixels is a mean over the patches. Over every
    field. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Convattn.foundation Require Import attention image heads grid bare.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

(** The image framed by m × n patches, each the mean of its patches. *)
Definition mean_framed (F : fieldType) (Channel : finType) (rows columns p1 p2 m n : nat)
    (X : image_type F Channel) : image_type F Channel :=
  fun y x c =>
    if (p1 * m <= y < p1 * m + p1 * rows)%N && (p2 * n <= x < p2 * n + p2 * columns)%N
    then X (y - p1 * m)%N (x - p2 * n)%N c
    else mean_token (fun k : bare_grid rows columns =>
      X (p1 * k.1 + y %% p1)%N (p2 * k.2 + x %% p2)%N) c.

(** Its tokens: those of the image, and their mean where there is none. *)
Lemma mean_framed_token (F : fieldType) (Channel : finType) (rows columns p1 p2 m n : nat)
    (X : image_type F Channel) (q : bare_grid rows columns) (d : token_offset m n)
    (f : patch_feature p1 p2 Channel) :
  let tokens := @bare_token F Channel rows columns p1 p2 X in
  mean_framed rows columns p1 p2 m n X (p1 * (q.1 + d.1) + f.1.1)%N (p2 * (q.2 + d.2) + f.1.2)%N f.2 =
    if bare_target q d is Some k then tokens k f else mean_token tokens f.
Proof.
rewrite /=; case: f => -[s1 s2] c; have := patch_token_bare X q d (s1, s2, c).
rewrite /patch_token /zero_framed /mean_framed /= !patch_in_frame // -bare_target_exists.
by case: (bare_target q d) => [k|] //= _; rewrite !modn_patch.
Qed.

(** A bias head without a correction is off from its target by ε (mean - target). *)
Lemma attend_bias_or_mean (F : fieldType) (Key : finType) (In : Type) (e : F)
    (target : option Key) (X : Key -> In -> F) i :
  let N := #|Key| in
  N%:R != 0 :> F -> N%:R + e - 1 != 0 ->
  attend (softmax (bias_weights e target)) X i =
    (if target is Some t then X t i else mean_token X i) +
      N%:R / (N%:R + e - 1) * (if target is Some t then mean_token X i - X t i else 0).
Proof.
rewrite /= => nzN nzZ; case: target => [t|]; last by rewrite attend_flat // mulr0 addr0.
by rewrite attend_bias //; move: (#|Key|%:R) nzN nzZ (mean_token X i) => c *; field.
Qed.

Theorem boundary (F : fieldType) (In Out : finType) (rows columns p1 p2 m n r1 r2 : nat)
    (W : nat -> nat -> In -> Out -> F) (X : image_type F In)
    (q : bare_grid rows columns) (t : patch_feature p1 p2 Out) :
  let N := #|bare_grid rows columns| in
  let tokens := @bare_token F In rows columns p1 p2 X in
  let target := @bare_target rows columns m n in
  let blocks (d : token_offset m n) := output_block m n r1 r2 W d.1 d.2 in
  let mean_padded := framed_convolution r1 r2 W
    (cropped_frame p1 p2 m n r1 r2 (mean_framed rows columns p1 p2 m n X))
    (p1 * q.1 + t.1.1)%N (p2 * q.2 + t.1.2)%N t.2 in
  (r1 <= p1 * m)%N -> (r2 <= p2 * n)%N -> N%:R != 0 :> F ->
  (forall e, e != 1 -> N%:R + e - 1 != 0 ->
    attention_layer (finite_attention target e) (finite_maps blocks N e) tokens q t =
      mean_padded) /\
  (exists remainder, forall e, N%:R + e - 1 != 0 ->
    attention_layer (fun d q => softmax (bias_weights e (target q d))) blocks tokens q t =
      mean_padded + N%:R / (N%:R + e - 1) * remainder).
Proof.
move=> N tokens target blocks mean_padded le1 le2 nzN.
have padded : \sum_d feature_map (blocks d) (fun f =>
    if target q d is Some k then tokens k f else mean_token tokens f) t = mean_padded.
  rewrite /mean_padded -framed_convolution_of_tokens //.
  by apply: eq_bigr => d _; apply: eq_feature_map => // f; rewrite mean_framed_token.
split=> [e ne1 nzZ|]; first by rewrite finite_heads.
exists (\sum_d feature_map (blocks d) (fun f =>
    if target q d is Some k then mean_token tokens f - tokens k f else 0) t) => e nzZ.
rewrite -padded big_distrr -big_split; apply: eq_bigr => d _ /=.
rewrite -feature_map_scale -feature_map_add; apply: eq_feature_map => // f.
exact: attend_bias_or_mean.
Qed.
