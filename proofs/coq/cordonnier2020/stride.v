(** C20.stride: keeping every s-th pixel of the layer is the convolution of stride s.

    The convolution of stride s₁ × s₂ has an output for each pixel (s₁ y, s₂ x) of the image:
    ⌈rows / s₁⌉ by ⌈columns / s₂⌉ of them, and its output at (y, x) is Σ_δ X_(s₁ y + δ₁, s₂ x + δ₂) W_δ
    with zeros outside the image. The layer of Lemma 1, one hard head at each shift, image in its
    ring, computed at every pixel and then subsampled to these, is that convolution: for all strides
    of at least one, odd kernel sizes, kernels, images, channels and fields. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import zify.
From Convattn.foundation Require Import attention image heads grid pixels.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.


Lemma kept_bound (side stride : nat) (y : 'I_(strided_side side stride)) : (stride * y < side)%N.
Proof.
case: y => y; rewrite /strided_side; case: stride => [|s] lty /=; first by rewrite divn0 in lty.
have := leq_trunc_div (side + s) s.+1.
have : (s.+1 * y.+1 <= (side + s) %/ s.+1 * s.+1)%N by rewrite mulnC leq_mul2r lty orbT.
by rewrite mulnS /=; lia.
Qed.

(** The pixel that is kept as the output (y, x). *)
Definition kept_pixel (rows columns s1 s2 : nat)
    (p : bare_grid (strided_side rows s1) (strided_side columns s2)) : bare_grid rows columns :=
  (Ordinal (kept_bound p.1), Ordinal (kept_bound p.2)).

(** Every s-th pixel is kept, and no other. *)
Lemma kept_all (side stride : nat) (y : 'I_side) : (0 < stride)%N ->
  (stride %| y)%N = [exists p : 'I_(strided_side side stride), y == (stride * p)%N :> nat].
Proof.
move=> lt0s; apply/idP/existsP => [/dvdnP[k ey] | [p /eqP ->]]; last exact: dvdn_mulr.
have ltk : (k < strided_side side stride)%N.
  rewrite /strided_side leq_divRL // mulSn -ey; have := ltn_ord y; lia.
by exists (Ordinal ltk); rewrite ey /= mulnC.
Qed.

Theorem stride (F : fieldType) (In : finType) (Out : Type) (rows columns s1 s2 r1 r2 : nat)
    (W : nat -> nat -> In -> Out -> F) (X : image_type F In)
    (p : bare_grid (strided_side rows s1) (strided_side columns s2)) (o : Out) :
  let subsampled (Y : bare_grid rows columns -> Out -> F) := Y (kept_pixel p) in
  subsampled
      (attention_layer (hard_attention F (@ringed_target rows columns r1 r2))
        (fun d : token_offset r1 r2 => W d.1 d.2) (pixel_token X)) o =
    strided_convolution rows columns s1 s2 r1 r2 W X p.1 p.2 o.
Proof. by rewrite /= hard_heads /ringed_target convolution_of_pixels. Qed.
