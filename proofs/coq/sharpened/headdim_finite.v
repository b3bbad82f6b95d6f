(** S.headdim, the rank bound at finite scores: N_H · d_H is at least the sum of the two ranks.

    In the setting of headdim, let no attention weight be zero, as with a softmax at finite scores,
    and let some query have a token of the image outside its receptive field, that is, let there be
    more than m + 1 rows or more than n + 1 columns of patches; or let some offset have the map
    zero. Then N_H · d_H ≥ rk_in + rk_out.

    How many heads suffice is headdim_exact. Not covered: limits at finite scores, and layers that are the
    convolution at a single interior query only. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention image grid bare rank.
From Convattn.foundation Require Import flattened_kernel independent lower_bound.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Theorem headdim_finite (F : fieldType) (In Out Head Feature : finType)
    (rows columns p1 p2 a b m n r1 r2 : nat)
    (A : Head -> bare_grid rows columns -> ringed_grid rows columns a b -> F)
    (V : Head -> patch_feature p1 p2 In -> Feature -> F)
    (U : Head -> Feature -> patch_feature p1 p2 Out -> F)
    (bias : patch_feature p1 p2 Out -> F) (W : nat -> nat -> In -> Out -> F) :
  (r1 <= p1 * m)%N -> (r2 <= p2 * n)%N -> (m < rows)%N -> (n < columns)%N ->
  expresses r1 r2 A (fun h s t => \sum_e V h s e * U h e t) bias W ->
  (forall h q k, A h q k != 0) ->
  (m.+1 < rows)%N \/ (n.+1 < columns)%N \/
    (exists d, forall st, flattened_kernel p1 p2 m n r1 r2 W st d = 0) ->
  (family_rank (in_matricisation p1 p2 m n r1 r2 W)
    + family_rank (out_matricisation p1 p2 m n r1 r2 W) <= #|Head| * #|Feature|)%N.
Proof.
move=> reach1 reach2 large1 large2 equal nz some_zero.
have [q [k zero]] := zero_map reach1 reach2 equal large1 large2 some_zero.
pose c h := A h q (image_key a b k); have nzc h : c h != 0 := nz h q _.
pose weight h d := A h (joined_query large1 large2 d) (image_key a b (joined_key large1 large2 d)).
have through s t d := value_factors reach1 reach2 equal large1 large2 s t d (fun _ _ _ => erefl).
rewrite -card_prod.
pose L (s : patch_feature p1 p2 In) (he : Head * Feature) := V he.1 s he.2.
pose R (he : Head * Feature) (t : patch_feature p1 p2 Out) := c he.1 * U he.1 he.2 t.
apply: leq_trans (family_rank_zero_product (L := L) (R := R) _) => [|s t]; last first.
  rewrite -[RHS](zero s t) -(pair_bigA _ (fun h e => V h s e * (c h * U h e t))) /=.
  apply: eq_bigr => h _; rewrite big_distrr; apply: eq_bigr => e _; exact: mulrCA.
apply: leq_add.
  apply: (family_rank_left (R := fun he dt => weight he.1 dt.1 * U he.1 he.2 dt.2)) => s [d t].
  by rewrite /in_matricisation through; apply: eq_bigr => he _; rewrite mulrCA.
apply: (family_rank_right (L := fun ds he => weight he.1 ds.1 * V he.1 ds.2 he.2 / c he.1)).
move=> [d s] t; rewrite /out_matricisation through; apply: eq_bigr => he _.
by rewrite /R [in RHS]mulrA divfK // mulrA.
Qed.
