(** L21.cor3: K² heads with a relative bias are any convolution of pixels, in the limit (amended).

    Let K₁ = 2 r₁ + 1 and K₂ = 2 r₂ + 1, and let the image stand in a ring of r₁ × r₂ zero pixels.
    There are K₁ K₂ heads, one for each shift, and the head dimension d_H is at least min(D_in, D_out).
    Let E be an exponential over an ordered field: positive, non-decreasing, from sums to products,
    exceeding every bound (the real one is such).

    For every kernel there are W^V and W^O, whose product is the kernel's matrix at the tap δ, the
    same for every M and for images of every size, with which the layer whose head δ has the bias M at
    the key q + δ and 0 elsewhere tends to the zero-padded convolution as M → ∞: at every pixel and in
    every output channel. Hard heads are equal to it.

    The printed corollary bounds D_out by min(d_H, d_O) and is not a case of Theorem 1, which has
    d_H ≥ d; here neither is asked, only d_H ≥ min(D_in, D_out). For every size. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention image heads grid pixels.
From Convattn.foundation Require Import head_dimension exponential sharp_limits.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Theorem cor3 (R : realFieldType) (E : R -> R) (In Out Inner : finType) (r1 r2 : nat) :
  is_exponential E -> unbounded E -> (minn #|In| #|Out| <= #|Inner|)%N ->
  #|token_offset r1 r2| = (r1.*2.+1 * r2.*2.+1)%N
  /\
  forall W : nat -> nat -> In -> Out -> R,
  exists (V : token_offset r1 r2 -> In -> Inner -> R)
         (O : token_offset r1 r2 -> Inner -> Out -> R),
  (forall d c o, through (V d) (O d) c o = W d.1 d.2 c o) /\
  forall (rows columns : nat) (X : image_type R In) (q : bare_grid rows columns) (o : Out),
    let layer A := attention_layer A (fun d => through (V d) (O d)) (pixel_token X) q o in
    tends_to
      (fun M => layer (fun d q => softmax (bias_weights (E M) (Some (ringed_key q d)))))
      (convolution rows columns r1 r2 W X q.1 q.2 o)
    /\ layer (hard_attention R (@ringed_target rows columns r1 r2)) =
      convolution rows columns r1 r2 W X q.1 q.2 o.
Proof.
move=> E_exp E_unbounded wide; split=> [|W]; first exact: card_offsets.
have [V [O eM]] := heads_through (fun d : token_offset r1 r2 => W d.1 d.2) wide.
exists V, O; split=> // rows columns X q o layer.
have hard : layer (hard_attention R (@ringed_target rows columns r1 r2)) =
    convolution rows columns r1 r2 W X q.1 q.2 o.
  rewrite /layer (eq_layer_maps _ _ _ _ eM) hard_heads /ringed_target.
  exact: convolution_of_pixels.
by split=> //; rewrite -hard; apply: layer_tends_to => d k; exact: bias_tends_to_one_hot.
Qed.
