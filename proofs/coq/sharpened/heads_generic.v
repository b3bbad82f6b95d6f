(** S.heads for all kernels but few: one kernel that takes many heads makes them the rule.

    Let m ≥ r₁ / p₁ and n ≥ r₂ / p₂, let W be a kernel and ρ the rank of its flattened form. Whatever
    the kernel V, there are at most ρ numbers t for which some layer with fewer than ρ heads is the
    zero-padded convolution with V + t W, for all images, on some image size of more than m rows and n
    columns of patches, with some ring or with none. So on every line of kernels in the direction of W
    all but ρ take at least ρ heads, which over an infinite field is the sense of "for a generic
    kernel" here; W is the kernel of heads, heads_pixels or heads_patches. This holds over every field,
    whatever the attention, so long as it does not depend on the image, and with any value maps and
    bias. Not covered: that the other kernels are a null set, attention that depends on the image, and
    layers that are the convolution at a single interior query only. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention image grid rank.
From Convattn.foundation Require Import flattened_kernel independent lower_bound.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Theorem heads_generic (F : fieldType) (In Out : finType) (p1 p2 m n r1 r2 : nat)
    (V W : nat -> nat -> In -> Out -> F) (ts : seq F) :
  (r1 <= p1 * m)%N -> (r2 <= p2 * n)%N ->
  let rho := family_rank (flattened_kernel p1 p2 m n r1 r2 W) in
  uniq ts ->
  (forall t, t \in ts ->
    exists (Head : finType) (rows columns a b : nat)
        (A : Head -> bare_grid rows columns -> ringed_grid rows columns a b -> F)
        (M : Head -> patch_feature p1 p2 In -> patch_feature p1 p2 Out -> F)
        (bias : patch_feature p1 p2 Out -> F),
      [/\ (m < rows)%N, (n < columns)%N, (#|Head| < rho)%N
        & expresses r1 r2 A M bias (fun i j c o => V i j c o + t * W i j c o)]) ->
  (size ts <= rho)%N.
Proof.
move=> reach1 reach2 rho distinct few; apply: (@family_rank_line _ _ _
  (flattened_kernel p1 p2 m n r1 r2 V) (flattened_kernel p1 p2 m n r1 r2 W) ts distinct) => t.
move=> /few [Head [rows [columns [a [b [A [M [bias [large1 large2 less equal]]]]]]]]].
apply: leq_ltn_trans less; apply: leq_trans (head_bound reach1 reach2 equal large1 large2).
rewrite /family_rank (eq_family_matrix (flattened_line _ _ _ _ _)); exact: leqnn.
Qed.
