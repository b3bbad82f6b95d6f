(** A19's cuboids, translations and mixed products, and B19's filters, in a form that computes. *)

From Coq Require Import BinInt.
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ssrZ zify.
From Convattn.foundation Require Import attention image structure shifts filters.
From Convattn.andreoli2019 Require Import grid equivariance_torus.
From Convattn.bridge Require Import sums.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

(** One axis of a cuboid's shift, of the place of its first tap, and of the place in the kernel. *)
Definition axis_cuboid_shift (epsilon delta : int) (k : nat) : int := epsilon + k.+1%:Z * delta.

Definition axis_first_tap (size : nat) (epsilon delta : int) : int :=
  if 0 < delta then - (epsilon + size%:Z * delta) else - (epsilon + delta).

Definition axis_turned (size : nat) (delta : int) (k : nat) : nat :=
  if 0 < delta then (size - k.+1)%N else k.

Lemma cuboid_shift_axis (Axis : finType) (K : Axis -> nat) (epsilon delta : Axis -> int)
    (k : node K) (i : Axis) :
  cuboid_shift epsilon delta k i = axis_cuboid_shift (epsilon i) (delta i) (k i).
Proof. by rewrite ffunE. Qed.

Lemma first_tap_axis (Axis : finType) (K : Axis -> nat) (epsilon delta : Axis -> int) (i : Axis) :
  first_tap K epsilon delta i = axis_first_tap (K i) (epsilon i) (delta i).
Proof. by []. Qed.

Lemma turned_axis (Axis : finType) (K : Axis -> nat) (delta : Axis -> int) (k : node K) (i : Axis) :
  turned delta k i = axis_turned (K i) (delta i) (k i) :> nat.
Proof. by rewrite ffunE /axis_turned; case: ifP. Qed.

(** One axis of the difference of two nodes of a torus. *)
Definition torus_difference (side m n : nat) : nat := ((n + (side - m) %% side) %% side)%N.

Lemma translation_entry (F : fieldType) (a b : nat) (d m n : [finZmodType of ('I_a.+1 * 'I_b.+1)%type]) :
  translation_matrix F d m n =
    ((torus_difference a.+1 m.1 n.1 == d.1) && (torus_difference b.+1 m.2 n.2 == d.2))%:R.
Proof. by []. Qed.

(** Eq. 1, from K terms of whole numbers. *)
Lemma mixed_product_value (F : fieldType) (S T : Type) (K : nat) (a : nat -> S -> Z) (b : nat -> T -> Z)
    (s : S) (t : T) :
  mixed_product (fun (k : 'I_K) s => number_in F (a k s)) (fun k t => number_in F (b k t)) s t =
    number_in F (listed_sum (fun k => a k s * b k t) (iota 0 K)).
Proof.
rewrite -listed_sum_ord rmorph_sum; apply: eq_bigr => k _; exact/esym/rmorphM.
Qed.

(** What a filter with one tap, one in a channel, makes of an image: the pixel that it reads. *)
Definition read_pixel (F : fieldType) (Channel : Type) (height width : nat) (l : layout)
    (X : image_type F Channel) (y x i j : nat) : Channel -> F :=
  zero_framed height width (dilation1 l * (size1 l).-1./2) (dilation2 l * (size2 l).-1./2) X
    (stride1 l * y + dilation1 l * i)%N (stride2 l * x + dilation2 l * j)%N.

Lemma filtered_one_tap (F : fieldType) (In : finType) (Out : Type) (height width : nat) (l : layout)
    (X : image_type F In) (y x i j : nat) (c : In) (o : Out) :
  (i < size1 l)%N -> (j < size2 l)%N ->
  filtered height width l (fun i' j' c' _ => ((i' == i) && (j' == j) && (c' == c))%:R) X y x o =
    read_pixel height width l X y x i j c.
Proof.
move=> lti ltj; rewrite /filtered (bigD1 (Ordinal lti)) //= [X in _ + X]big1 ?addr0; last first.
  move=> i' ne; rewrite big1 // => j' _; rewrite big1 // => c' _.
  by rewrite -val_eqE /= in ne; rewrite (negbTE ne) mulr0.
rewrite (bigD1 (Ordinal ltj)) //= [X in _ + X]big1 ?addr0; last first.
  by move=> j' ne; rewrite big1 // => c' _; rewrite -val_eqE /= in ne; rewrite (negbTE ne) andbF mulr0.
rewrite (bigD1 c) //= !eqxx mulr1 big1 ?addr0 // => c' /negbTE ->.
by rewrite andbF mulr0.
Qed.
