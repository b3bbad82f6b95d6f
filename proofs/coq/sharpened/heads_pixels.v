(** S.heads on pixels: some kernel takes min(K₁ K₂, D_in · D_out) heads.

    Let K₁ = 2 r₁ + 1 and K₂ = 2 r₂ + 1. There is a kernel, in the proof of zeros and ones, whose
    flattened form has at least the rank min(K₁ K₂, D_in · D_out), so that every layer that is its
    zero-padded convolution, for all images, has at least so many heads. The tokens are pixels
    (patches of 1 × 1). This holds over every field, for every image of more than r₁ rows and r₂
    columns, with a ring of zero pixels of any width or with none, whatever the attention, so long as
    it does not depend on the image, and with any value maps and bias. One kernel serves all image
    sizes. The kernel numbers its taps and its pairs of channels, and its tap of a number joins the
    pair of that number.

    For limits see heads_limit, for generic kernels heads_generic. Not covered: attention that depends
    on the image, and layers that are the convolution at a single interior query only. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention image grid patches rank.
From Convattn.foundation Require Import flattened_kernel independent lower_bound.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

(** Tap number e joins channel pair number e. *)
Definition numbered_kernel (F : fieldType) (In Out : Type) (columns : nat)
    (number : In -> Out -> nat) (i j : nat) (c : In) (o : Out) : F :=
  (i * columns + j == number c o)%N%:R.

(** The number of a channel pair. *)
Definition pair_number (In Out : finType) (c : In) (o : Out) : nat :=
  enum_rank c * #|Out| + enum_rank o.

(** The digits of a number below a · b. *)
Lemma quotient_bound (a b e : nat) : (e < a * b)%N -> (e %/ b < a)%N.
Proof. by move=> lte; rewrite ltn_divLR //; case: b lte => //; rewrite muln0. Qed.

Lemma remainder_bound (a b e : nat) : (e < a * b)%N -> (e %% b < b)%N.
Proof. by move=> lte; rewrite ltn_pmod //; case: b lte => //; rewrite muln0. Qed.

Section Digits.

Variables (a b least : nat).
Hypothesis le : (least <= a * b)%N.

Definition digits (e : 'I_least) : 'I_a * 'I_b :=
  (Ordinal (quotient_bound (leq_trans (ltn_ord e) le)),
   Ordinal (remainder_bound (leq_trans (ltn_ord e) le))).

End Digits.

(** For pixels the flattened kernel is the kernel. *)
Lemma flattened_pixels (F : fieldType) (In Out : finType) (r1 r2 : nat)
    (W : nat -> nat -> In -> Out -> F) (s : patch_feature 1 1 In) (t : patch_feature 1 1 Out)
    (d : token_offset r1 r2) :
  flattened_kernel 1 1 r1 r2 r1 r2 W (s, t) d = W d.1 d.2 s.2 t.2.
Proof.
have tap r (i : 'I_r.*2.+1) (s1 t1 : 'I_1) : axis_tap 1 r r i s1 t1 = Some (i : nat).
  rewrite /axis_tap !ord1 /= !mul1n !addn0 addnC leq_addr addKn ltn_ord //.
by rewrite /flattened_kernel /output_block /joining_tap /= !tap.
Qed.

(** Its flattened form has the identity as a minor. *)
Lemma numbered_kernel_rank (F : fieldType) (In Out : finType) (r1 r2 : nat) :
  (minn (r1.*2.+1 * r2.*2.+1) (#|In| * #|Out|) <=
    family_rank (flattened_kernel 1 1 r1 r2 r1 r2
      (numbered_kernel F r2.*2.+1 (@pair_number In Out))))%N.
Proof.
set least := minn _ _; rewrite -[X in (X <= _)%N](card_ord least).
pose taps := digits (geq_minl _ _ : (least <= r1.*2.+1 * r2.*2.+1)%N).
pose pairs := digits (geq_minr _ _ : (least <= #|In| * #|Out|)%N).
pose pick e : patch_feature 1 1 In * patch_feature 1 1 Out :=
  ((ord0, ord0, enum_val (pairs e).1), (ord0, ord0, enum_val (pairs e).2)).
apply: (family_rank_minor (L := fun a b => (a == b)%:R) (pick := pick) (choose := taps)) => a b.
rewrite (bigD1 a) //= eqxx mul1r big1 ?addr0 => [|r /negbTE nr]; last first.
  by rewrite eq_sym nr mul0r.
rewrite flattened_pixels /numbered_kernel /pair_number /= !enum_valK.
by rewrite -!divn_eq eq_sym.
Qed.

Theorem heads_pixels (F : fieldType) (In Out : finType) (r1 r2 : nat) :
  exists2 W : nat -> nat -> In -> Out -> F,
    (minn (r1.*2.+1 * r2.*2.+1) (#|In| * #|Out|) <=
      family_rank (flattened_kernel 1 1 r1 r2 r1 r2 W))%N &
  forall (Head : finType) (rows columns a b : nat)
      (A : Head -> bare_grid rows columns -> ringed_grid rows columns a b -> F)
      (M : Head -> patch_feature 1 1 In -> patch_feature 1 1 Out -> F)
      (bias : patch_feature 1 1 Out -> F),
    (r1 < rows)%N -> (r2 < columns)%N ->
    expresses r1 r2 A M bias W ->
    (minn (r1.*2.+1 * r2.*2.+1) (#|In| * #|Out|) <= #|Head|)%N.
Proof.
have rank := numbered_kernel_rank F In Out r1 r2.
exists (numbered_kernel F r2.*2.+1 (@pair_number In Out)) => //.
move=> Head rows columns a b A M bias large1 large2 equal; apply: leq_trans rank _.
by apply: head_bound equal large1 large2; rewrite mul1n.
Qed.
