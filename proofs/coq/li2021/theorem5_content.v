(** L21.theorem5 with content: too few heads cannot express some kernel, with scores that see the pixels.

    Let K = 2 r + 1. There is a K × K kernel such that no layer with N_H < min(K², D_in · D_out) heads is its
    zero-padded convolution for all images, with attention that depends on the image in any way, as long as
    on every ray its weights tend to one limit where the image tends to zero, as weights that are continuous
    there do; over every ordered field, for every image of at least r + 1 pixels a side, with a ring of zero
    pixels of any width or with none, any value maps without positions and any bias. One kernel serves all. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention image grid rank limits.
From Convattn.sharpened Require Import content heads_pixels content_bounds.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Theorem theorem5_content (R : realFieldType) (In Out : finType) (r : nat) :
  exists W : nat -> nat -> In -> Out -> R,
  forall (Head : finType) (rows columns a b : nat)
      (A : image_type R In -> Head -> bare_grid rows columns -> ringed_grid rows columns a b -> R)
      (A0 : Head -> bare_grid rows columns -> ringed_grid rows columns a b -> R)
      (M : Head -> patch_feature 1 1 In -> patch_feature 1 1 Out -> R)
      (bias : patch_feature 1 1 Out -> R),
    (r.+1 <= rows)%N -> (r.+1 <= columns)%N ->
    (#|Head| < minn (r.*2.+1 ^ 2) (#|In| * #|Out|))%N ->
    (forall X h q k, tends_at_zero (fun t => A (scaled_image t X) h q k) (A0 h q k)) ->
    ~ (forall X q t, attention_layer (A X) M (patch_token X) q t + bias t =
        convolution (1 * rows) (1 * columns) r r W X (1 * q.1 + t.1.1)%N (1 * q.2 + t.1.2)%N t.2).
Proof.
have [W full _] := heads_pixels R In Out r r.
exists W => Head rows columns a b A A0 M bias large1 large2 few lim equal.
have reach : (r <= 1 * r)%N by rewrite mul1n.
have [le _] := content_bounds reach reach large1 large2 lim equal.
by have := leq_trans full le; rewrite mulnn leqNgt few.
Qed.
