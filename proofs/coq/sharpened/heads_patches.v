(** S.heads on patches of any size: min(2m+1, 2P-1) heads an axis, in one pair of channels.

    Let P₁, P₂ ≥ 1, K₁ = 2 r₁ + 1, K₂ = 2 r₂ + 1, m = ⌈(K₁-1)/(2P₁)⌉ and n = ⌈(K₂-1)/(2P₂)⌉. For any
    channel pair there is a kernel, zero in all other pairs, whose flattened form has at least the
    rank

      min(2m + 1, 2 P₁ - 1) · min(2n + 1, 2 P₂ - 1),

    so that every layer that is its zero-padded convolution, for all images, has at least so many
    heads. The field is any that holds the absolute values of its numbers, such as the rationals, the
    reals and the complex numbers. The image has more than m rows and n columns of patches, with a ring
    of zero patches of any width or with none; the attention is any that does not depend on the image,
    with any value maps and bias. One kernel serves all image sizes: the product of z^(t²) over both
    axes, 0 < z < 1.

    For equal axes that is S.heads' min((2m+1)², (2P-1)² D_in D_out) where m ≤ P - 1, whatever the
    channels, or where D_in D_out = 1; P = 1 is heads_pixels. For limits see heads_limit, for generic
    kernels heads_generic. Not covered: m ≥ P ≥ 2 with more than one pair of channels, attention that
    depends on the image, and layers that are the convolution at a single interior query only. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import zify.
From Convattn.foundation Require Import attention image grid patches rank.
From Convattn.foundation Require Import flattened_kernel product_kernel lower_bound power_line.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory Num.Theory Order.Theory.
Local Open Scope ring_scope.

(** The offsets of one axis that count. *)
Definition counted (p r : nat) : nat := minn (patch_reach p r) p.-1.

Lemma counted_far (p r : nat) : (0 < p)%N -> (counted p r == 0)%N || (p * (counted p r).-1 < r)%N.
Proof.
move=> lt0p; have le : (p * patch_reach p r <= r + p.-1)%N by rewrite mulnC leq_trunc_div.
have : (counted p r <= patch_reach p r)%N by exact: geq_minl.
move: (counted p r) => -[//|l] /= lel; move: (leq_mul (leqnn p) lel); rewrite mulnS; lia.
Qed.

Lemma counted_number (p r : nat) : (0 < p)%N ->
  (counted p r).*2.+1 = minn (patch_reach p r).*2.+1 p.*2.-1.
Proof. by rewrite /counted; lia. Qed.

(** Small enough for so many offsets. *)
Definition small_base (F : fieldType) (l : nat) : F := l.*2.+2%:R^-1.

Lemma small_base_gt0 (F : numFieldType) (l : nat) : 0 < small_base F l.
Proof. by rewrite invr_gt0 ltr0n. Qed.

Lemma small_base_lt1 (F : numFieldType) (l : nat) : l.*2.+1%:R * small_base F l < 1.
Proof. by rewrite ltr_pdivr_mulr ?ltr0n // mul1r ltr_nat. Qed.

Theorem heads_patches (F : numFieldType) (In Out : finType) (c0 : In) (o0 : Out)
    (p1 p2 r1 r2 : nat) :
  (1 <= p1)%N -> (1 <= p2)%N ->
  let m := patch_reach p1 r1 in
  let n := patch_reach p2 r2 in
  exists2 W : nat -> nat -> In -> Out -> F,
    (minn m.*2.+1 p1.*2.-1 * minn n.*2.+1 p2.*2.-1 <=
      family_rank (flattened_kernel p1 p2 m n r1 r2 W))%N &
  forall (Head : finType) (rows columns a b : nat)
      (A : Head -> bare_grid rows columns -> ringed_grid rows columns a b -> F)
      (M : Head -> patch_feature p1 p2 In -> patch_feature p1 p2 Out -> F)
      (bias : patch_feature p1 p2 Out -> F),
    (m < rows)%N -> (n < columns)%N ->
    expresses r1 r2 A M bias W ->
    (minn m.*2.+1 p1.*2.-1 * minn n.*2.+1 p2.*2.-1 <= #|Head|)%N.
Proof.
move=> lt0p1 lt0p2 m n; pose z p r := small_base F (counted p r).
pose W := product_kernel c0 o0 (power_line (z p1 r1) r1) (power_line (z p2 r2) r2).
have less p r : (0 < p)%N -> (counted p r < p)%N by rewrite /counted; lia.
have inverse p r (lt0p : (0 < p)%N) := power_line_inverse (less p r lt0p) (geq_minl _ _)
  (counted_far r lt0p) (small_base_gt0 F _) (small_base_lt1 F _).
have [L1 inverse1] := inverse p1 r1 lt0p1; have [L2 inverse2] := inverse p2 r2 lt0p2.
have rank : (minn m.*2.+1 p1.*2.-1 * minn n.*2.+1 p2.*2.-1 <=
    family_rank (flattened_kernel p1 p2 m n r1 r2 W))%N.
  by have := product_rank c0 o0 inverse1 inverse2; rewrite !card_ord !counted_number.
exists W => // Head rows columns a b A M bias large1 large2 equal; apply: leq_trans rank _.
by apply: head_bound equal large1 large2; apply: patch_reach_suffices.
Qed.
