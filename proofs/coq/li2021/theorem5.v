(** L21.theorem5 (sharpened): on pixels, too few heads cannot express some kernel.

    Let K = 2 r + 1. There is a K × K kernel such that no layer with N_H < min(K², D_in · D_out)
    heads is its zero-padded convolution for all images; the printed bound is min(K², D_in). This
    holds over every field, for every image of at least r + 1 = (K+1)/2 pixels a side (printed: K),
    with a ring of zero pixels of any width or with none, whatever the attention, so long as it
    does not depend on the image, and with any value maps and bias. One kernel serves all image
    sizes. It is S.heads on pixels, put as the paper puts it.

    For limits see heads_limit, for content scores theorem5_content. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention image grid lower_bound.
From Convattn.sharpened Require Import heads_pixels.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Theorem theorem5 (F : fieldType) (In Out : finType) (r : nat) :
  exists W : nat -> nat -> In -> Out -> F,
  forall (Head : finType) (rows columns a b : nat)
      (A : Head -> bare_grid rows columns -> ringed_grid rows columns a b -> F)
      (M : Head -> patch_feature 1 1 In -> patch_feature 1 1 Out -> F)
      (bias : patch_feature 1 1 Out -> F),
    r.+1 <= rows -> r.+1 <= columns ->
    #|Head| < minn (r.*2.+1 ^ 2) (#|In| * #|Out|) ->
    ~ expresses r r A M bias W.
Proof.
have [W _ bound] := heads_pixels F In Out r r.
exists W => Head rows columns a b A M bias large1 large2 few equal.
by have := bound Head rows columns a b A M bias large1 large2 equal; rewrite mulnn leqNgt few.
Qed.
