(** Images, convolution and patches, on natural-number coordinates.

    An image is a function of row, column and channel; only its values at rows
    below the height and columns below the width are ever read. Kernels have
    the odd sizes 2 r₁ + 1 and 2 r₂ + 1, and are indexed from 0, so that tap
    [i] reads the shift i - r: the shift is key minus query. Coordinates on a
    ringed image are counted from the ring's first row and column, so that
    none is negative. Both axes have radii, patch sides and rings of their own;
    a sequence is an image of height one, and r₁ = 0. *)

From mathcomp Require Import all_ssreflect all_algebra.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Section Images.

Variables (F : fieldType) (Channel : Type).

Definition image_type := nat -> nat -> Channel -> F.

(** The image of [height] × [width] pixels in a frame of zeros, [top] rows
    above (and as many below) and [left] columns before (and after). *)
Definition zero_framed (height width top left : nat) (X : image_type) : image_type :=
  fun y x c =>
    if (top <= y < top + height)%N && (left <= x < left + width)%N
    then X (y - top)%N (x - left)%N c else 0.

End Images.

(** The zero-padded ("SAME") convolution, as every framework computes it:
    out_q = Σ_δ X_(q+δ) W_δ. *)
Definition convolution (F : fieldType) (In : finType) (Out : Type)
    (height width r1 r2 : nat) (W : nat -> nat -> In -> Out -> F)
    (X : image_type F In) (y x : nat) (o : Out) : F :=
  \sum_(i < r1.*2.+1) \sum_(j < r2.*2.+1) \sum_c
    zero_framed height width r1 r2 X (y + i)%N (x + j)%N c * W i j c o.

(** The keys of a layer on [rows] × [columns] tokens with a ring of [m] rows
    and [n] columns of zero tokens on each side. *)
Definition ringed_grid (rows columns m n : nat) : finType :=
  [finType of 'I_(rows + m.*2) * 'I_(columns + n.*2)].

(** A feature of a token: the pixel within the patch, and the channel. *)
Definition patch_feature (p1 p2 : nat) (Channel : finType) : finType :=
  [finType of 'I_p1 * 'I_p2 * Channel].

(** The token at a key: the pixels of its patch, of the image in a ring of m
    × n zero patches. *)
Definition patch_token (F : fieldType) (Channel : finType)
    (rows columns m n p1 p2 : nat) (X : image_type F Channel)
    (k : ringed_grid rows columns m n) (f : patch_feature p1 p2 Channel) : F :=
  zero_framed (p1 * rows) (p2 * columns) (p1 * m) (p2 * n) X
    (p1 * k.1 + f.1.1)%N (p2 * k.2 + f.1.2)%N f.2.

(** On one axis: the tap with which pixel [t] of a patch reads pixel [s] of
    the patch [i - m] further on, if the kernel reaches so far. *)
Definition axis_tap (p m r i s t : nat) : option nat :=
  if (p * m + t <= p * i + s + r)%N && (p * i + s + r - (p * m + t) < r.*2.+1)%N
  then Some (p * i + s + r - (p * m + t))%N else None.

(** On both axes: the tap that joins pixel [s] of the patch at the offset
    (i - m, j - n) to pixel [t] of the query's patch. *)
Definition joining_tap (p1 p2 m n r1 r2 i j : nat) (s t : nat * nat) : option (nat * nat) :=
  if axis_tap p1 m r1 i s.1 t.1 is Some u then
    if axis_tap p2 n r2 j s.2 t.2 is Some v then Some (u, v) else None
  else None.

(** The explicit W^O of L21's appendix: its block for the offset (i - m, j - n)
    holds the tap that joins the two pixels, and zero where none does. *)
Definition output_block (F : fieldType) (In Out : finType) (p1 p2 m n r1 r2 : nat)
    (W : nat -> nat -> In -> Out -> F) (i j : nat)
    (s : patch_feature p1 p2 In) (t : patch_feature p1 p2 Out) : F :=
  if joining_tap p1 p2 m n r1 r2 i j (val s.1.1, val s.1.2) (val t.1.1, val t.1.2) is Some uv
  then W uv.1 uv.2 s.2 t.2 else 0.

(** How many patches a kernel of radius r reaches: m = ⌈r / P⌉ = ⌈(K-1)/(2P)⌉. *)
Definition patch_reach (p r : nat) : nat := (r + p.-1) %/ p.
