(** L21.theorem1 (amended): (2m+1)² heads with a relative bias are any convolution, in the limit.

    The setting is that of [theorem1]: an image of p₁ · rows by p₂ · columns pixels in patches of
    p₁ × p₂, in a ring of m × n zero patches, with r₁ ≤ p₁ m and r₂ ≤ p₂ n; m = n = 1 is Corollary 4.
    The head dimension is at least the smaller of the widths of the tokens in and out. Let E be an
    exponential over an ordered field: positive, non-decreasing, from sums to products, exceeding
    every bound (the real one is such).

    For every kernel there are W^V and W^O, whose product is the kernel's map between two tokens at the
    offset δ, the same for every M and for images of every size, with which the layer with one head for
    each offset δ in {-m..m} × {-n..n}, whose scores are M at the key q + δ and 0 elsewhere, tends to
    the zero-padded convolution of the image as M → ∞, at every pixel of every patch and in every
    output channel. Tokens are the patches themselves: an injective embedding, which W^O undoes, is
    not covered here. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention image heads grid patches.
From Convattn.foundation Require Import head_dimension exponential sharp_limits.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Theorem theorem1_limit (R : realFieldType) (E : R -> R) (In Out Inner : finType)
    (p1 p2 m n r1 r2 : nat) :
  is_exponential E -> unbounded E -> (r1 <= p1 * m)%N -> (r2 <= p2 * n)%N ->
  (minn #|patch_feature p1 p2 In| #|patch_feature p1 p2 Out| <= #|Inner|)%N ->
  forall W : nat -> nat -> In -> Out -> R,
  exists (V : token_offset m n -> patch_feature p1 p2 In -> Inner -> R)
         (O : token_offset m n -> Inner -> patch_feature p1 p2 Out -> R),
  (forall d s t, through (V d) (O d) s t = output_block m n r1 r2 W d.1 d.2 s t) /\
  forall (rows columns : nat) (X : image_type R In) (q : bare_grid rows columns)
    (t : patch_feature p1 p2 Out),
    tends_to
      (fun M =>
        attention_layer (fun d q => softmax (bias_weights (E M) (Some (ringed_key q d))))
          (fun d => through (V d) (O d)) (patch_token X) q t)
      (convolution (p1 * rows) (p2 * columns) r1 r2 W X
        (p1 * q.1 + t.1.1)%N (p2 * q.2 + t.1.2)%N t.2).
Proof.
move=> E_exp E_unbounded le1 le2 wide W.
have [V [O eM]] := heads_through (fun d : token_offset m n => output_block m n r1 r2 W d.1 d.2) wide.
exists V, O; split=> // rows columns X q t.
have <- : attention_layer (hard_attention R (@ringed_target rows columns m n))
    (fun d => through (V d) (O d)) (patch_token X) q t =
  convolution (p1 * rows) (p2 * columns) r1 r2 W X
    (p1 * q.1 + t.1.1)%N (p2 * q.2 + t.1.2)%N t.2.
  by rewrite (eq_layer_maps _ _ _ _ eM) hard_heads /ringed_target convolution_of_tokens.
by apply: layer_tends_to => d k; exact: bias_tends_to_one_hot.
Qed.
