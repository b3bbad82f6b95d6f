(** S.kernel, necessity: finite heads take one more than the rank of the flattened kernel.

    Let m ≥ r₁ / p₁ and n ≥ r₂ / p₂, let the image have more than m rows and n columns of patches,
    and let the kernel's flattened form F (one column for each offset in {-m..m} × {-n..n}) not be
    zero. Let some query have a token of the image outside its receptive field, that is, let there
    be more than m + 1 rows or more than n + 1 columns; or let some offset have the map zero. Then a
    layer all of whose attention weights differ from zero, as those of a softmax at finite scores
    do, has more than rank F heads if it is the zero-padded convolution for all images. This holds
    over every field, with a ring of any width or with none, whatever the attention, so long as it
    does not depend on the image, and with any value maps and bias.

    That rank F + 1 heads suffice is kernel_sufficient. Not covered: what S.kernel says of limits, and
    layers that are the convolution at a single interior query only. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention image grid rank.
From Convattn.foundation Require Import flattened_kernel lower_bound.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Theorem kernel (F : fieldType) (In Out Head : finType)
    (rows columns p1 p2 a b m n r1 r2 : nat)
    (A : Head -> bare_grid rows columns -> ringed_grid rows columns a b -> F)
    (M : Head -> patch_feature p1 p2 In -> patch_feature p1 p2 Out -> F)
    (bias : patch_feature p1 p2 Out -> F) (W : nat -> nat -> In -> Out -> F) :
  (r1 <= p1 * m)%N -> (r2 <= p2 * n)%N -> (m < rows)%N -> (n < columns)%N ->
  expresses r1 r2 A M bias W ->
  (forall h q k, A h q k != 0) ->
  (0 < family_rank (flattened_kernel p1 p2 m n r1 r2 W))%N ->
  (m.+1 < rows)%N \/ (n.+1 < columns)%N \/
    (exists d, forall st, flattened_kernel p1 p2 m n r1 r2 W st d = 0) ->
  (family_rank (flattened_kernel p1 p2 m n r1 r2 W) < #|Head|)%N.
Proof.
move=> reach1 reach2 large1 large2 equal nz pos some_zero.
have [q [k zero]] := zero_map reach1 reach2 equal large1 large2 some_zero.
exact: (one_more_head reach1 reach2 equal large1 large2 pos (fun h => nz h q _) zero).
Qed.
