(** S.heads: the flattened kernel of the box, its minor and the inverse, in a form that computes. *)

From Coq Require Import BinInt.
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ssrZ zify.
From Convattn.foundation Require Import attention image grid flattened_kernel product_kernel.
From Convattn.sharpened Require Import heads.
From Convattn.bridge Require Import sums.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

(** Whether pixel [t] reads pixel [s] of the patch [d - 1] further on, by one of the three taps. *)
Definition box_bit (p r s t d : nat) : bool :=
  if axis_tap p 1 r d s t is Some u then (r <= u.+1)%N && (u <= r.+1)%N else false.

Lemma axis_entry_value (F : fieldType) (p r s t d : nat) :
  axis_entry p 1 r (box_line F r) s t d = (box_bit p r s t d)%:R.
Proof. by rewrite /axis_entry /box_bit; case: axis_tap. Qed.

Lemma flattened_box_value (F : fieldType) (In Out : finType) (c0 : In) (o0 : Out) (p1 p2 r1 r2 : nat)
    (s : patch_feature p1 p2 In) (t : patch_feature p1 p2 Out) (d : token_offset 1 1) :
  flattened_kernel p1 p2 1 1 r1 r2 (box_kernel F c0 o0 r1 r2) (s, t) d =
    [&& s.2 == c0, t.2 == o0, box_bit p1 r1 s.1.1 t.1.1 d.1 & box_bit p2 r2 s.1.2 t.1.2 d.2]%:R.
Proof.
rewrite /flattened_kernel /output_block /joining_tap /box_bit /=.
case: axis_tap => [u|]; last by rewrite !andbF.
case: axis_tap => [v|]; last by rewrite !andbF.
rewrite /box_kernel /product_kernel /box_line; case: (_ == c0) => //=; case: (_ == o0) => //=.
by rewrite -natrM mulnb.
Qed.

(** The inverse of the minor, [axis_entry] at the rows [far_pixel], [near_pixel]. *)
Definition inverse_entry (p a row : nat) : Z :=
  if a == row then 1 else if [&& row == 1%N, a != 1%N & p == 2%N] then -1 else 0.

Lemma box_inverse_value (F : fieldType) (p : nat) (a row : 'I_3) :
  box_inverse F p a row = number_in F (inverse_entry p a row).
Proof.
rewrite /box_inverse /inverse_entry -!val_eqE /=; case: ifP => _; first by rewrite rmorph1.
by case: ifP => _; rewrite ?raddfN ?rmorph1 ?oppr0 ?rmorph0.
Qed.
