(** S.content: the bounds of S.heads and S.kernel by the rank hold for scores that see the tokens.

    Let the attention weights depend on the image in any way, as long as on every ray they tend to one limit
    where the image tends to zero, as weights that are continuous at zero do. Let m ≥ r₁ / p₁ and n ≥ r₂ / p₂, and
    let the layer, with any bias, be the zero-padded convolution by W at every query and for every image, of
    more than m rows and n columns of patches, with a ring of any width or with none. Then it has at least rank F
    heads, F being W's flattened form. If the limits of the weights are nowhere zero, as those of a softmax of
    finite scores that are continuous at the zero image, F is not zero, and some query has a token of the image
    outside its receptive field, or some offset has the map zero, then it has more than rank F heads. The field is
    any ordered one. Values carry no positions.

    Not covered: limits of such layers. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention image grid rank limits.
From Convattn.foundation Require Import flattened_kernel lower_bound.
From Convattn.sharpened Require Import content kernel.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Theorem content_bounds (R : realFieldType) (In Out Head : finType)
    (rows columns p1 p2 a b m n r1 r2 : nat) (W : nat -> nat -> In -> Out -> R)
    (A : image_type R In -> Head -> bare_grid rows columns -> ringed_grid rows columns a b -> R)
    (A0 : Head -> bare_grid rows columns -> ringed_grid rows columns a b -> R)
    (M : Head -> patch_feature p1 p2 In -> patch_feature p1 p2 Out -> R)
    (bias : patch_feature p1 p2 Out -> R) :
  let kernel := flattened_kernel p1 p2 m n r1 r2 W in
  (r1 <= p1 * m)%N -> (r2 <= p2 * n)%N -> (m < rows)%N -> (n < columns)%N ->
  (forall X h q k, tends_at_zero (fun t => A (scaled_image t X) h q k) (A0 h q k)) ->
  (forall X q t, attention_layer (A X) M (patch_token X) q t + bias t =
    convolution (p1 * rows) (p2 * columns) r1 r2 W X
      (p1 * q.1 + t.1.1)%N (p2 * q.2 + t.1.2)%N t.2) ->
  (family_rank kernel <= #|Head|)%N /\
  ((forall h q k, A0 h q k != 0) -> (0 < family_rank kernel)%N ->
    (m.+1 < rows)%N \/ (n.+1 < columns)%N \/ (exists d, forall st, kernel st d = 0) ->
    (family_rank kernel < #|Head|)%N).
Proof.
move=> kernel le1 le2 large1 large2 lim computes.
have equal : expresses r1 r2 A0 M (fun=> 0) W.
  move=> X q t; rewrite addr0.
  have lim_q X' h k : tends_at_zero (fun t => A (scaled_image t X') h q k) (A0 h q k) by exact: lim.
  have computes_q X' : attention_layer (A X') M (patch_token X') q t + bias t =
      convolution (p1 * rows) (p2 * columns) r1 r2 W X' (p1 * q.1 + t.1.1)%N (p2 * q.2 + t.1.2)%N t.2 + 0.
    by rewrite addr0; exact: computes.
  exact: (content (b' := fun=> 0) lim_q computes_q).2.
split; first exact: head_bound le1 le2 equal large1 large2.
by move=> nz pos some_zero; exact: Convattn.sharpened.kernel.kernel le1 le2 large1 large2 equal nz pos some_zero.
Qed.
