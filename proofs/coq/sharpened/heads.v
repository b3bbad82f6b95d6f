(** S.heads on patches: some kernel takes nine heads.

    Let P₁, P₂ ≥ 2, K₁ = 2 r₁ + 1, K₂ = 2 r₂ + 1 and 3 ≤ K ≤ 2 P + 1 on both axes, which is the range
    in which L21's Corollary 4 makes do with nine. For any channel pair there is a kernel, the box
    of 3 × 3 ones in the middle of this pair, such that every layer that is its zero-padded
    convolution, for all images, has at least nine heads. This holds over every field, for every
    image of at least two patches a side, with a ring of zero patches of any width or with none,
    whatever the attention, so long as it does not depend on the image, and with any value maps
    and bias. One kernel serves all image sizes.

    Not covered: larger kernels (for pixels see heads_pixels), that all kernels but a null set are
    of that kind, attention that depends on the image, and limits that are not layers. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring zify.
From Convattn.foundation Require Import attention image grid patches rank.
From Convattn.foundation Require Import flattened_kernel independent lower_bound.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

(** Ones at the shifts -1, 0 and 1 of one axis. *)
Definition box_line (r i : nat) : bool := (r <= i.+1)%N && (i <= r.+1)%N.

(** The box in one pair of channels. *)
Definition box_kernel (F : fieldType) (In Out : eqType) (c0 : In) (o0 : Out) (r1 r2 : nat)
    (i j : nat) (c : In) (o : Out) : F :=
  [&& c == c0, o == o0, box_line r1 i & box_line r2 j]%:R.

(** The flattened kernel of one axis. *)
Definition box_entry (p r : nat) (s t : nat) (d : nat) : bool :=
  if axis_tap p 1 r d s t is Some u then box_line r u else false.

(** Three rows: pixel p - 1 of the key's patch to pixel 0, 0 to 0, 0 to p - 1. *)
Definition box_far (p : nat) (row : nat) : nat := if row == 0%N then p.-1 else 0%N.
Definition box_near (p : nat) (row : nat) : nat := if row == 2%N then p.-1 else 0%N.

Lemma box_minor (p r row d : nat) : (1 < p)%N -> (0 < r <= p)%N -> (row < 3)%N -> (d < 3)%N ->
  box_entry p r (box_far p row) (box_near p row) d =
    (row == d) || [&& row != 1%N, d == 1%N & p == 2%N].
Proof.
rewrite /box_entry /axis_tap /box_line /box_far /box_near => lt1p /andP [lt0r lerp].
case: row => [|[|[|//]]] _; case: d => [|[|[|//]]] _ /=; case: ifP; nia.
Qed.

Section Box.

Variable F : fieldType.

(** The inverse of [[1, b, 0], [0, 1, 0], [0, b, 1]], with b = 1 if p = 2, else 0. *)
Definition box_inverse (p : nat) (a row : 'I_3) : F :=
  if a == row then 1 else - [&& row == 1%N :> nat, a != 1%N :> nat & p == 2%N]%:R.

Lemma box_inverseP (p r : nat) : (1 < p)%N -> (0 < r <= p)%N ->
  forall a d : 'I_3,
    \sum_row box_inverse p a row * (box_entry p r (box_far p row) (box_near p row) d)%:R =
      (a == d)%:R.
Proof.
move=> lt1p ler a d; rewrite !big_ord_recl big_ord0 !box_minor //.
rewrite /box_inverse; case: (p == 2%N);
  by case: a d => [[|[|[|//]]] ?] [[|[|[|//]]] ?]; rewrite /= -?val_eqE /=; ring.
Qed.

Variables (In Out : finType) (c0 : In) (o0 : Out) (p1 p2 r1 r2 : nat).

Local Notation box := (flattened_kernel p1 p2 1 1 r1 r2 (box_kernel F c0 o0 r1 r2)).

(** The box is a product over the axes. *)
Lemma flattened_box (s1 t1 : 'I_p1) (s2 t2 : 'I_p2) (d : token_offset 1 1) :
  box ((s1, s2, c0), (t1, t2, o0)) d =
    (box_entry p1 r1 s1 t1 d.1)%:R * (box_entry p2 r2 s2 t2 d.2)%:R.
Proof.
rewrite /flattened_kernel /output_block /joining_tap /box_entry /=.
case: (axis_tap p1) => [u|]; last by rewrite mul0r.
case: (axis_tap p2) => [v|]; last by rewrite mulr0.
by rewrite /box_kernel !eqxx -natrM mulnb.
Qed.

Lemma far_in_patch p row : (1 < p)%N -> (box_far p row < p)%N.
Proof. by rewrite /box_far; case: ifP; lia. Qed.

Lemma near_in_patch p row : (1 < p)%N -> (box_near p row < p)%N.
Proof. by rewrite /box_near; case: ifP; lia. Qed.

Lemma box_rank : (1 < p1)%N -> (1 < p2)%N -> (0 < r1 <= p1)%N -> (0 < r2 <= p2)%N ->
  (9 <= family_rank box)%N.
Proof.
move=> lt1p1 lt1p2 ler1 ler2.
pose pick (row : 'I_3 * 'I_3) : patch_feature p1 p2 In * patch_feature p1 p2 Out :=
  ((Ordinal (far_in_patch row.1 lt1p1), Ordinal (far_in_patch row.2 lt1p2), c0),
   (Ordinal (near_in_patch row.1 lt1p1), Ordinal (near_in_patch row.2 lt1p2), o0)).
have <- : #|[finType of 'I_3 * 'I_3]| = 9%N by rewrite card_prod card_ord.
apply: (family_rank_minor (pick := pick) (choose := fun d : 'I_3 * 'I_3 => d : token_offset 1 1)
  (L := fun a row => box_inverse p1 a.1 row.1 * box_inverse p2 a.2 row.2)) => a d.
rewrite -(left_inverse_product (box_inverseP lt1p1 ler1) (box_inverseP lt1p2 ler2) a d).
by apply: eq_bigr => row _; rewrite flattened_box.
Qed.

End Box.

Theorem heads (F : fieldType) (In Out : finType) (c0 : In) (o0 : Out) (p1 p2 r1 r2 : nat) :
  (2 <= p1)%N -> (2 <= p2)%N -> (1 <= r1 <= p1)%N -> (1 <= r2 <= p2)%N ->
  exists W : nat -> nat -> In -> Out -> F,
  forall (Head : finType) (rows columns a b : nat)
      (A : Head -> bare_grid rows columns -> ringed_grid rows columns a b -> F)
      (M : Head -> patch_feature p1 p2 In -> patch_feature p1 p2 Out -> F)
      (bias : patch_feature p1 p2 Out -> F),
    (2 <= rows)%N -> (2 <= columns)%N ->
    expresses r1 r2 A M bias W ->
    (9 <= #|Head|)%N.
Proof.
move=> lt1p1 lt1p2 ler1 ler2; exists (box_kernel F c0 o0 r1 r2).
move=> Head rows columns a b A M bias large1 large2 equal.
apply: leq_trans (box_rank F c0 o0 lt1p1 lt1p2 ler1 ler2) _.
by apply: head_bound equal large1 large2; rewrite muln1; case/andP: ler1 ler2 => _ ? /andP [].
Qed.
