(** S.heads in the limit: too few heads stay away from the convolution by a fixed distance.

    Let m ≥ r₁ / p₁ and n ≥ r₂ / p₂. For every kernel there is an ε > 0 such that every layer with
    fewer heads than rank F, F being the flattened kernel, is off its zero-padded convolution by more
    than ε: at some output of some image whose pixels are zeros and ones. So no sequence of such layers
    tends to the convolution, whether their values stay bounded or not. The ε serves all layers, all
    image sizes of more than m rows and n columns of patches, with a ring of any width or with none,
    whatever the attention, so long as it does not depend on the image. The field is any that holds the
    absolute values of its numbers, such as the rationals, the reals and the complex numbers.

    With the kernels of heads, heads_pixels and heads_patches this makes their bounds hold in the
    limit. Not covered: attention that depends on the image, and layers near the convolution at a
    single interior query only. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention image grid patches rank.
From Convattn.foundation Require Import flattened_kernel lower_bound near_identity near_layers.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory Num.Theory Order.Theory.
Local Open Scope ring_scope.

Theorem heads_limit (F : numFieldType) (In Out : finType) (p1 p2 m n r1 r2 : nat)
    (W : nat -> nat -> In -> Out -> F) :
  (r1 <= p1 * m)%N -> (r2 <= p2 * n)%N ->
  exists2 eps, 0 < eps &
  forall (Head : finType) (rows columns a b : nat)
      (A : Head -> bare_grid rows columns -> ringed_grid rows columns a b -> F)
      (M : Head -> patch_feature p1 p2 In -> patch_feature p1 p2 Out -> F)
      (bias : patch_feature p1 p2 Out -> F),
    (m < rows)%N -> (n < columns)%N ->
    (#|Head| < family_rank (flattened_kernel p1 p2 m n r1 r2 W))%N ->
    exists (X : nat -> nat -> In -> bool) (q : bare_grid rows columns) (t : patch_feature p1 p2 Out),
      eps < output_error r1 r2 A M bias W (binary_image F X) q t.
Proof.
move=> reach1 reach2; pose kernel := flattened_kernel p1 p2 m n r1 r2 W.
have [ball pos nearby] := family_rank_nearby kernel.
have pos2 : 0 < ball / 2%:R by rewrite divr_gt0 ?ltr0n.
exists (ball / 2%:R) => // Head rows columns a b A M bias large1 large2 few.
apply: (off_somewhere bias reach1 reach2 (large1 := large1) (large2 := large2)) pos2 _ => near.
suff : (family_rank kernel <= #|Head|)%N by rewrite leqNgt few.
apply: leq_trans (nearby (layer_map A M large1 large2) _) (family_rank_product (fun _ _ => erefl)).
by move=> st d; rewrite [X in _ <= X](splitr ball).
Qed.
