(** C20.dilation, with quadratic heads: a ring of one zero is enough, in the limit.

    Let K₁ = 2 r₁ + 1, K₂ = 2 r₂ + 1, and let the image stand in a ring of a × b zero pixels, a and b at
    least one. Let E be an exponential over an ordered field: positive, non-decreasing, from sums to
    products, exceeding every bound (the real one is such). The layer with one quadratic head for
    each δ in {-r₁..r₁} × {-r₂..r₂}, with the centre (D₁ δ₁, D₂ δ₂) and the value map W_δ, tends to
    the zero-padded convolution of dilation (D₁, D₂) as α → ∞: for every kernel, dilation, image,
    size and number of channels. D = 1 is the convolution itself.

    For a quadratic head whose target is no key attends to the nearest key, and that is on the ring. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import zify.
From Convattn.foundation Require Import attention image heads grid bare pixels.
From Convattn.foundation Require Import exponential sharp_limits quadratic_heads.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

(** The shift D δ, for the offset δ counted from 0. *)
Definition dilated_shift (D1 D2 r1 r2 : nat) (d : token_offset r1 r2) : int * int :=
  ((D1 * d.1)%N%:Z - (D1 * r1)%N%:Z, (D2 * d.2)%N%:Z - (D2 * r2)%N%:Z).

(** On one axis: the nearest key is in the image iff the target is, and then it is the target. *)
Lemma nearest_in_image (rows ring y step reach : nat) : (y < rows)%N -> (0 < ring)%N ->
  let key := nearest (rows + ring.*2) ((y + ring)%N%:Z + (step%:Z - reach%:Z)) in
  (ring <= key < ring + rows)%N = (reach <= y + step < reach + rows)%N
  /\ ((reach <= y + step < reach + rows)%N -> (key - ring = y + step - reach)%N).
Proof. by move=> lty lt0 key; rewrite /key /nearest; case: ifP => neg; split; lia. Qed.

Theorem dilation_limit (R : realFieldType) (E : R -> R) (In : finType) (Out : Type)
    (rows columns a b D1 D2 r1 r2 : nat) (W : nat -> nat -> In -> Out -> R) (X : image_type R In)
    (q : bare_grid rows columns) (o : Out) :
  is_exponential E -> unbounded E -> (0 < a)%N -> (0 < b)%N ->
  tends_to
    (fun alpha =>
      attention_layer
        (fun (d : token_offset r1 r2) q =>
          softmax (quadratic_weights E alpha (dilated_shift D1 D2 d) (image_key a b q)))
        (fun d => W d.1 d.2) (pixel_token X) q o)
    (convolution_of_dilation rows columns D1 D2 r1 r2 W X q.1 q.2 o).
Proof.
move=> E_exp E_unbounded lt0a lt0b.
pose key (q : bare_grid rows columns) (d : token_offset r1 r2) :=
  Some (nearest_pixel (image_key a b q) (dilated_shift D1 D2 d)).
have -> : convolution_of_dilation rows columns D1 D2 r1 r2 W X q.1 q.2 o =
    attention_layer (hard_attention R key) (fun d => W d.1 d.2) (pixel_token X) q o.
  rewrite hard_heads -dilated_of_pixels; apply: eq_bigr => d _; apply: eq_feature_map => // c.
  rewrite /pixel_token /zero_framed /key /=.
  have [-> e1] := nearest_in_image (D1 * d.1) (D1 * r1) (ltn_ord q.1) lt0a.
  have [-> e2] := nearest_in_image (D2 * d.2) (D2 * r2) (ltn_ord q.2) lt0b.
  by case: ifP => // /andP[/e1 -> /e2 ->].
by apply: layer_tends_to => d k; exact: quadratic_tends_to_one_hot.
Qed.
