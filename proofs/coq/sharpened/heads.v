(** S.heads on patches: some kernel takes nine heads.

    Let P₁, P₂ ≥ 2, K₁ = 2 r₁ + 1, K₂ = 2 r₂ + 1 and 3 ≤ K ≤ 2 P + 1 on both axes, which is the range
    in which L21's Corollary 4 makes do with nine. For any channel pair there is a kernel, in the
    proof the box of 3 × 3 ones in the middle of this pair, whose flattened form has at least the rank
    nine, so that every layer that is its zero-padded convolution, for all images, has at least nine
    heads. This holds over every field, for every image of at least two patches a side, with a ring
    of zero patches of any width or with none, whatever the attention, so long as it does not depend
    on the image, and with any value maps and bias. One kernel serves all image sizes.

    For larger kernels see heads_pixels and heads_patches, for limits heads_limit, for generic kernels
    heads_generic. Not covered: attention that depends on the image, and layers that are the
    convolution at a single interior query only. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring zify.
From Convattn.foundation Require Import attention image grid patches rank.
From Convattn.foundation Require Import flattened_kernel product_kernel lower_bound.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

(** Ones at the shifts -1, 0 and 1 of one axis. *)
Definition box_line (F : fieldType) (r i : nat) : F := ((r <= i.+1) && (i <= r.+1))%N%:R.

(** The box in one pair of channels. *)
Definition box_kernel (F : fieldType) (In Out : eqType) (c0 : In) (o0 : Out) (r1 r2 : nat) :
    nat -> nat -> In -> Out -> F :=
  product_kernel c0 o0 (box_line F r1) (box_line F r2).

(** Three rows: pixel p - 1 of the key's patch to pixel 0, 0 to 0, 0 to p - 1. *)
Definition far_pixel (p row : nat) : nat := if row == 0%N then p.-1 else 0%N.
Definition near_pixel (p row : nat) : nat := if row == 2%N then p.-1 else 0%N.

Lemma far_in_patch (p row : nat) : (1 < p)%N -> (far_pixel p row < p)%N.
Proof. by rewrite /far_pixel; case: ifP; lia. Qed.

Lemma near_in_patch (p row : nat) : (1 < p)%N -> (near_pixel p row < p)%N.
Proof. by rewrite /near_pixel; case: ifP; lia. Qed.

Section Box.

Variables (F : fieldType) (p r : nat).
Hypothesis lt1p : (1 < p)%N.
Hypothesis ler : (1 <= r <= p)%N.

Definition far_row (row : 'I_3) : 'I_p := Ordinal (far_in_patch row lt1p).
Definition near_row (row : 'I_3) : 'I_p := Ordinal (near_in_patch row lt1p).

(** The minor [[1, b, 0], [0, 1, 0], [0, b, 1]], with b = 1 if p = 2, else 0. *)
Lemma box_minor (row d : 'I_3) :
  axis_entry p 1 r (box_line F r) (far_row row) (near_row row) d =
    ((row == d) || [&& row != 1%N :> nat, d == 1%N :> nat & p == 2%N])%:R.
Proof.
rewrite /axis_entry /axis_tap /box_line /= /far_pixel /near_pixel -val_eqE.
case/andP: ler => lt0r lerp.
case: row => [[|[|[|//]]] ?] /=; case: d => [[|[|[|//]]] ?] /=;
  case: ifP => reached; rewrite -?[0]/(false%:R : F); congr (_%:R); nia.
Qed.

(** Its inverse. *)
Definition box_inverse (a row : 'I_3) : F :=
  if a == row then 1 else - [&& row == 1%N :> nat, a != 1%N :> nat & p == 2%N]%:R.

Lemma box_inverseP (a d : 'I_3) :
  \sum_row box_inverse a row *
      axis_entry p 1 r (box_line F r) (far_row row) (near_row row) d =
    (a == d)%:R.
Proof.
rewrite !big_ord_recl big_ord0 !box_minor /box_inverse; case: (p == 2%N);
  by case: a d => [[|[|[|//]]] ?] [[|[|[|//]]] ?]; rewrite /= -?val_eqE /=; ring.
Qed.

End Box.

Theorem heads (F : fieldType) (In Out : finType) (c0 : In) (o0 : Out) (p1 p2 r1 r2 : nat) :
  (2 <= p1)%N -> (2 <= p2)%N -> (1 <= r1 <= p1)%N -> (1 <= r2 <= p2)%N ->
  exists2 W : nat -> nat -> In -> Out -> F,
    (9 <= family_rank (flattened_kernel p1 p2 1 1 r1 r2 W))%N &
  forall (Head : finType) (rows columns a b : nat)
      (A : Head -> bare_grid rows columns -> ringed_grid rows columns a b -> F)
      (M : Head -> patch_feature p1 p2 In -> patch_feature p1 p2 Out -> F)
      (bias : patch_feature p1 p2 Out -> F),
    (2 <= rows)%N -> (2 <= columns)%N ->
    expresses r1 r2 A M bias W ->
    (9 <= #|Head|)%N.
Proof.
move=> lt1p1 lt1p2 ler1 ler2; pose W := box_kernel F c0 o0 r1 r2.
have nine : (9 <= family_rank (flattened_kernel p1 p2 1 1 r1 r2 W))%N.
  have := product_rank c0 o0 (box_inverseP F lt1p1 ler1) (box_inverseP F lt1p2 ler2).
  by rewrite card_ord.
exists W => // Head rows columns a b A M bias large1 large2 equal; apply: leq_trans nine _.
by apply: head_bound equal large1 large2; rewrite muln1; case/andP: ler1 ler2 => _ ? /andP [].
Qed.
