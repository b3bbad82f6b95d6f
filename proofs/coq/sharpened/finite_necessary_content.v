(** S.finite, converse, with content: scores that see the tokens do not save a head.

    As finite_necessary, but the attention weights may depend on the image in any way, as long as on
    every ray they tend to one limit where the image tends to zero (as weights continuous at zero do),
    and these limits are nowhere zero: a softmax of scores that are finite and continuous at the zero
    image is such. If a layer like this computes the zero-padded convolution by W at every query and
    for every image, in a ring of m × n zero patches, then it has more heads than there are offsets, if
    the blocks of W are linearly independent and the image has more than m rows and more than n columns
    of patches, and more than m + 1 rows or more than n + 1 columns. The field is any ordered one. The
    values carry no positions. A bias added to the output would be zero, as the zero image shows. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention image grid rank limits.
From Convattn.sharpened Require Import content finite_necessary.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Theorem finite_necessary_content (R : realFieldType) (In Out Head : finType)
    (rows columns p1 p2 m n r1 r2 : nat)
    (W : nat -> nat -> In -> Out -> R)
    (A : image_type R In -> Head -> bare_grid rows columns -> ringed_grid rows columns m n -> R)
    (A0 : Head -> bare_grid rows columns -> ringed_grid rows columns m n -> R)
    (V : Head -> patch_feature p1 p2 In -> patch_feature p1 p2 Out -> R) :
  (r1 <= p1 * m)%N -> (r2 <= p2 * n)%N ->
  family_rank (fun (d : token_offset m n) (st : patch_feature p1 p2 In * patch_feature p1 p2 Out) =>
    output_block m n r1 r2 W d.1 d.2 st.1 st.2) = #|token_offset m n| ->
  (m < rows)%N -> (n < columns)%N -> (m.+1 < rows)%N || (n.+1 < columns)%N ->
  (forall X h q k, tends_at_zero (fun t => A (scaled_image t X) h q k) (A0 h q k)) ->
  (forall h q k, A0 h q k != 0) ->
  (forall X q t, attention_layer (A X) V (patch_token X) q t =
    convolution (p1 * rows) (p2 * columns) r1 r2 W X
      (p1 * q.1 + t.1.1)%N (p2 * q.2 + t.1.2)%N t.2) ->
  (#|token_offset m n| < #|Head|)%N.
Proof.
move=> le1 le2 full ltm ltn wide lim nz computes.
apply: (finite_necessary (V := V) le1 le2 full ltm ltn wide nz) => X q t.
have lim_q X' h k : tends_at_zero (fun t => A (scaled_image t X') h q k) (A0 h q k) by exact: lim.
have computes_q X' : attention_layer (A X') V (patch_token X') q t + 0 =
    convolution (p1 * rows) (p2 * columns) r1 r2 W X' (p1 * q.1 + t.1.1)%N (p2 * q.2 + t.1.2)%N t.2 + 0.
  by rewrite !addr0.
exact: (content (b := fun=> 0) (b' := fun=> 0) lim_q computes_q).2.
Qed.
