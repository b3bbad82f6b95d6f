(** Convolutions with filters of any size, stride and dilation, and self-attentive convolutions. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention image.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

(** How a filter is laid on an image: its size, the stride and the dilation, on both axes. *)
Record layout := Layout {
  size1 : nat; size2 : nat; stride1 : nat; stride2 : nat; dilation1 : nat; dilation2 : nat
}.

(** The zero-padded convolution at the cell (y, x): the taps of an axis are the shifts from
    -⌊(n-1)/2⌋ to ⌊n/2⌋, times the dilation, about the pixel at cell times stride. *)
Definition filtered (F : fieldType) (In : finType) (Out : Type) (height width : nat) (l : layout)
    (W : nat -> nat -> In -> Out -> F) (X : image_type F In) (y x : nat) (o : Out) : F :=
  \sum_(i < size1 l) \sum_(j < size2 l) \sum_c
    zero_framed height width (dilation1 l * (size1 l).-1./2) (dilation2 l * (size2 l).-1./2) X
      (stride1 l * y + dilation1 l * i)%N (stride2 l * x + dilation2 l * j)%N c * W i j c o.

(** Filters of odd size, without stride and dilation, are the convolution of the other files. *)
Lemma filtered_odd (F : fieldType) (In : finType) (Out : Type) (height width r1 r2 : nat)
    (W : nat -> nat -> In -> Out -> F) (X : image_type F In) y x o :
  filtered height width (Layout r1.*2.+1 r2.*2.+1 1 1 1 1) W X y x o =
    convolution height width r1 r2 W X y x o.
Proof.
apply: eq_bigr => i _; apply: eq_bigr => j _; apply: eq_bigr => c _.
by rewrite /= !doubleK !mul1n.
Qed.

(** The convolution is linear in its filter. *)
Lemma filtered_scaled (F : fieldType) (In : finType) (Out : Type) (height width : nat) (l : layout)
    (W : nat -> nat -> In -> Out -> F) (X : image_type F In) (a : F) y x o :
  filtered height width l (fun i j c o => a * W i j c o) X y x o =
    a * filtered height width l W X y x o.
Proof.
rewrite /filtered big_distrr; apply: eq_bigr => i _ /=.
rewrite big_distrr; apply: eq_bigr => j _ /=.
by rewrite big_distrr; apply: eq_bigr => c _; rewrite mulrCA.
Qed.

(** A self-attentive convolution: heads mix values that are convolutions of the image, on a grid of
    rows × columns cells; queries may live elsewhere. *)
Definition self_attentive_layer (F : fieldType) (Head In : finType) (Query Out : Type)
    (height width rows columns : nat) (l : layout)
    (A : Head -> Query -> 'I_rows * 'I_columns -> F) (H : Head -> nat -> nat -> In -> Out -> F)
    (X : image_type F In) (q : Query) (o : Out) : F :=
  \sum_h attend (A h q) (fun k o => filtered height width l (H h) X k.1 k.2 o) o.
