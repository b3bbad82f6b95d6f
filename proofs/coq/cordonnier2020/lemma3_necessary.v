(** C20.lemma3, "only if": the spans must hold at every query.

    Let the heads' attention be any numbers A h q k that do not depend on the content, from the
    pixels of an image to the pixels of the image in a ring of a × b zeros (a = b = 0: no ring). If
    for every K₁ × K₂ kernel, K odd, there are maps W^(h) with which the layer is the zero-padded
    convolution for all images, then at every query q and for every shift Δ the row e_(q+Δ) is in
    the span of the heads' rows at q, over the image's pixels; e_(q+Δ) is zero where q + Δ is no
    pixel. For every field, image, kernel size and number of channels of at least one. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention image heads grid bare pixels shared_map zero_ring.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Theorem lemma3_necessary (F : fieldType) (Head In Out : finType) (rows columns a b r1 r2 : nat)
    (A : Head -> bare_grid rows columns -> ringed_grid rows columns a b -> F) :
  (0 < #|In|)%N -> (0 < #|Out|)%N ->
  (forall W : nat -> nat -> In -> Out -> F, exists M : Head -> In -> Out -> F,
    forall (X : image_type F In) (q : bare_grid rows columns) (o : Out),
      attention_layer A M (pixel_token X) q o = convolution rows columns r1 r2 W X q.1 q.2 o) ->
  forall (q : bare_grid rows columns) (d : token_offset r1 r2), exists phi : Head -> F,
    forall k, one_hot F (bare_target q d) k = \sum_h phi h * A h q (image_key a b k).
Proof.
move=> /card_gt0P[c _] /card_gt0P[o _] express q d.
have [M eq_conv] := express (fun i j _ _ => ((i == d.1) && (j == d.2))%:R).
exists (fun h => M h c o).
apply: (one_map_row (A := fun h q k => A h q (image_key a b k)) (M := M)
  (B := fun d' _ _ => (d' == d)%:R)) => // T {}q.
pose X : image_type F In := fun y x c =>
  if (insub y, insub x) is (Some y, Some x) then T (y, x) c else 0.
have XT (k : bare_grid rows columns) c' : X k.1 k.2 c' = T k c'.
  by rewrite /X !insub_ord; case: k.
have := eq_conv X q o; rewrite -convolution_of_pixels layer_without_ring => [|k no_place i]; last first.
  by rewrite pixel_token_ring.
move=> eq_layer; transitivity (attention_layer (fun h q k => A h q (image_key a b k)) M
    (fun k => pixel_token X (image_key a b k)) q o).
  apply: eq_bigr => h _; apply: eq_feature_map => // i.
  by apply: eq_bigr => k _; rewrite pixel_token_image_key XT.
rewrite eq_layer; apply: eq_bigr => d' _; apply: eq_feature_map => [i|i].
  by rewrite -pair_eqE /= -!val_eqE.
by rewrite pixel_token_bare; case: bare_target => // k; rewrite XT.
Qed.
