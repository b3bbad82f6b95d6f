(** A certificate of the border: without a ring no softmax layer is the zero-padded convolution.

    Let W be a K₁ × K₂ kernel of integers, and the image have n₁ × n₂ patches of p₁ × p₂ pixels. Of
    the image of ones the zero-padded convolution has, at a pixel, the sum of the taps that fall into
    the image; let these sums differ between two tokens, at the same pixel and channel out. Then no
    layer on the image's own tokens, with rows of attention that have the sum one, is the
    convolution: not even for the image of ones alone, which it maps to the same output at every
    token. The rows may depend on the image in any way, and be limits of rows; the weights need not be
    positive; the value maps see the content of a token and not its position, and there may be a
    bias. It holds over every field of characteristic zero. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention image grid dilated bare integer_minor.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

(** The image of ones. *)
Definition ones (F : fieldType) (Channel : Type) : image_type F Channel := fun _ _ _ => 1.

(** The response of an integer kernel to it: the sum of the taps inside the image. *)
Definition response_to_ones (In : finType) (Out : Type) (height width K1 K2 : nat)
    (W : nat -> nat -> In -> Out -> int) (y x : nat) (o : Out) : int :=
  \sum_(i < K1) \sum_(j < K2)
    if (0 <= y%:Z + tap_shift K1 1 i < height%:Z) && (0 <= x%:Z + tap_shift K2 1 j < width%:Z)
    then \sum_c W i j c o else 0.

Lemma convolution_of_ones (F : fieldType) (In : finType) (Out : Type) (height width K1 K2 : nat)
    (W : nat -> nat -> In -> Out -> int) y x (o : Out) :
  dilated_convolution height width K1 K2 1 1 (fun i j c o => (W i j c o)%:~R : F) (@ones F In) y x o =
    (response_to_ones height width K1 K2 W y x o)%:~R.
Proof.
rewrite /response_to_ones rmorph_sum; apply: eq_bigr => i _ /=; rewrite rmorph_sum.
apply: eq_bigr => j _ /=; rewrite /zero_outside; case: ifP => _.
  by rewrite rmorph_sum; apply: eq_bigr => c _; rewrite mul1r.
by rewrite big1 // => c _; rewrite mul0r.
Qed.

Theorem border (F : fieldType) (Head In Out : finType) (n1 n2 p1 p2 K1 K2 : nat)
    (W : nat -> nat -> In -> Out -> int)
    (q q' : bare_grid n1 n2) (t : patch_feature p1 p2 Out)
    (A : image_type F In -> Head -> bare_grid n1 n2 -> bare_grid n1 n2 -> F)
    (M : Head -> patch_feature p1 p2 In -> patch_feature p1 p2 Out -> F)
    (b : patch_feature p1 p2 Out -> F) :
  let response (q : bare_grid n1 n2) := response_to_ones (p1 * n1) (p2 * n2) K1 K2 W
    (p1 * q.1 + t.1.1)%N (p2 * q.2 + t.1.2)%N t.2 in
  [char F] =i pred0 ->
  response q != response q' ->
  (forall X h q, \sum_k A X h q k = 1) ->
  ~ (forall q, attention_layer (A (@ones F In)) M (bare_token (@ones F In)) q t + b t =
       dilated_convolution (p1 * n1) (p2 * n2) K1 K2 1 1 (fun i j c o => (W i j c o)%:~R) (@ones F In)
         (p1 * q.1 + t.1.1)%N (p2 * q.2 + t.1.2)%N t.2).
Proof.
move=> response char0 differ sum1 eqL.
have constant q0 : attention_layer (A (@ones F In)) M (bare_token (@ones F In)) q0 t =
    \sum_h \sum_s M h s t.
  apply: eq_bigr => h _; apply: eq_bigr => s _.
  by rewrite /attend -big_distrl /= sum1 !mul1r.
have eq_int : (response q)%:~R = (response q')%:~R :> F.
  by rewrite -!convolution_of_ones -!eqL !constant.
case/eqP: differ; apply/eqP; rewrite -subr_eq0 -(intr_eq0_char0 _ char0) rmorphB /=.
by rewrite eq_int subrr.
Qed.
