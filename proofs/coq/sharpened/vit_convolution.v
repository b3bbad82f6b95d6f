(** S.vit for convolutional networks: they are the limit of an unmodified vision transformer.

    Take any network of convolutions on a grid of places, rows, columns ≥ 1: a linear map of each place's
    pixels; then any number of layers, each a zero-padded convolution with any kernel on the offsets
    {-m..m} x {-n..n} and a bias, with ReLU after any of its channels; then the mean over all places
    and a linear map with a bias, the logits ([convolutional_logit]). A channel without ReLU whose kernel
    is one at the centre and at itself passes on what it holds, so that residual sums, of what is some
    layers back, are of this kind. So are smaller kernels. Where a place is a patch of the image, any
    zero-padded convolution of the image is one of the patches, with the patch's pixels and channels as
    channels here ([convolution_of_bare_tokens]).

    Then for every bound on the pixels and every error > 0 there is a vision transformer
    ([transformer_logit]) with one block a layer and one for the mean, a head for each offset and one for
    the mean, as many hidden units as channels, and 2 (channels + 6) features a head, whose logits on all
    images within the bound differ from the network's by at most the error. Of the exponential, the square
    root, ε and GELU is asked what [vit] asks.

    The heads read the class token, whose values are zero until the last block, where an offset leads out
    of the grid. Strides after the first map, other borders, pooling but for that at the end, and
    normalisation layers are not covered, nor is rounding. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import exponential sharp_limits square_root grid.
From Convattn.foundation Require Import vision_transformer token_network convolutional_network.
From Convattn.sharpened Require Import vit.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Theorem vit_convolution (R : realFieldType) (E root Phi : R -> R) (c epsilon : R) (rows columns m n : nat)
    (Pixel Channel Label : finType) (C : convolutional_network R Pixel Channel Label m n) :
  is_exponential E -> unbounded E -> is_square_root root -> (forall z, `|z * Phi z - Num.max 0 z| <= c) ->
  0 <= epsilon -> (0 < rows)%N -> (0 < columns)%N ->
  let heads := (m.*2.+1 * n.*2.+1).+1 in
  forall image_bound error : R, 0 < error ->
  exists (Feature Head Inner : finType)
    (V : vision_transformer R (bare_grid rows columns) Pixel Feature Head Inner Channel Label),
    [/\ #|Head| = heads, #|Feature| = (heads * #|Inner|)%N,
        #|Feature| = (2 * heads * (#|Channel| + 6))%N,
        size (transformer_blocks V) = (size (convolution_layers C)).+1
      & forall X : bare_grid rows columns -> Pixel -> R, (forall k i, `|X k i| <= image_bound) ->
          forall l, `|transformer_logit E root Phi epsilon V X l - convolutional_logit C X l| <= error].
Proof.
move=> E_exp E_unbounded root_root bent epsilon_ge0 rows_gt0 columns_gt0 heads image_bound error error_gt0.
have card_heads : #|[finType of option (token_offset m n)]| = heads.
  by rewrite card_option card_prod !card_ord.
have some_place : (0 < #|bare_grid rows columns|)%N by rewrite card_prod !card_ord muln_gt0 rows_gt0.
have some_head : (0 < #|[finType of option (token_offset m n)]|)%N by rewrite card_heads.
have [Feature [Inner [V [widths features blocks close]]]] := vit (N := network_of_convolutions rows columns C)
  E_exp E_unbounded root_root bent epsilon_ge0 some_head
  (convolutional_network_shows C some_place) image_bound error_gt0.
exists Feature, [finType of option (token_offset m n)], Inner, V; split=> //.
- by rewrite widths card_heads.
- by rewrite features card_heads card_ord addnC !addnS addn0.
- by rewrite blocks size_rcons size_map.
by move=> X image_le l; rewrite -convolutional_network_logit; exact: close.
Qed.
