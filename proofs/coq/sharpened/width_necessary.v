(** S.width (1), what is needed: N_H · d_H is at least the rank of every map, in the limit too.

    Let m ≥ r₁ / p₁ and n ≥ r₂ / p₂, and let M_o be the map of the kernel at one of the offsets. There is an ε > 0 such
    that every layer whose N_H value maps go through d_H features, with N_H · d_H < rank M_o, is off the
    zero-padded convolution by more than ε: at some output of some image of zeros and ones, whether the values
    stay bounded or not. What the ε serves is as in headdim_limit. With a regular M_o of 768 features and heads of
    width 64 fewer than twelve stay away. That fourteen are needed for some kernel is not covered. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention image grid rank head_dimension.
From Convattn.foundation Require Import flattened_kernel independent lower_bound near_layers.
From Convattn.sharpened Require Import headdim_limit.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory Num.Theory Order.Theory.
Local Open Scope ring_scope.

Theorem width_necessary (F : numFieldType) (In Out : finType) (p1 p2 m n r1 r2 : nat)
    (W : nat -> nat -> In -> Out -> F) (base : token_offset m n) :
  (r1 <= p1 * m)%N -> (r2 <= p2 * n)%N ->
  exists2 eps, 0 < eps &
  forall (Head Feature : finType) (rows columns a b : nat)
      (A : Head -> bare_grid rows columns -> ringed_grid rows columns a b -> F)
      (V : Head -> patch_feature p1 p2 In -> Feature -> F)
      (U : Head -> Feature -> patch_feature p1 p2 Out -> F)
      (bias : patch_feature p1 p2 Out -> F),
    (m < rows)%N -> (n < columns)%N ->
    (#|Head| * #|Feature| <
      family_rank (fun s t => flattened_kernel p1 p2 m n r1 r2 W (s, t) base))%N ->
    exists (X : nat -> nat -> In -> bool) (q : bare_grid rows columns) (t : patch_feature p1 p2 Out),
      eps < output_error r1 r2 A (fun h => through (V h) (U h)) bias W (binary_image F X) q t.
Proof.
move=> reach1 reach2; have [eps pos off] := headdim_limit W reach1 reach2.
exists eps => // Head Feature rows columns a b A V U bias large1 large2 few.
apply: off => //; apply: leq_trans few _; apply: leq_trans (leq_maxl _ _).
apply: (family_rank_left (R := fun (dt : token_offset m n * patch_feature p1 p2 Out) t => (dt == (base, t))%:R)).
move=> s t; rewrite (bigD1 (base, t)) //= eqxx mulr1 big1 ?addr0 // => dt /negbTE ->.
by rewrite mulr0.
Qed.
