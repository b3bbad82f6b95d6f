(** S.kernel in the limit: without a nonnegative row the rank is not enough.

    Let m ≥ r₁ / p₁ and n ≥ r₂ / p₂, let F be the flattened form of the kernel W over an ordered field, let F
    not be zero, and let there be numbers z_δ > 0, one for each offset, with Σ_δ F_δ z_δ = 0 in every
    row. Such z exist if and only if the row space of F contains no vector
    y ≥ 0 but zero (kernel_limit_iff). Then there is an ε > 0 such that every layer of at most rank F
    heads whose attention weights are not negative is off the zero-padded convolution by more than
    ε, at some output of some image of zeros and ones; so no such layers tend to it, whether
    their values stay bounded or not. The ε serves all layers, all image sizes of more than m rows and
    n columns of patches, with a ring of any width or with none, any attention that does not
    depend on the image, and any bias.

    For example the taps a, 0 and -b of one channel, a, b > 0, with z = (b, 1, a): one head does not do.
    That rank F heads do where there is a vector y is kernel_limit; both as one equivalence are kernel_limit_iff. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention image grid patches bare rank.
From Convattn.foundation Require Import flattened_kernel lower_bound near_layers nonnegative_factor.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory Num.Theory Order.Theory.
Local Open Scope ring_scope.

Theorem kernel_limit_necessary (F : realFieldType) (In Out : finType) (p1 p2 m n r1 r2 : nat)
    (W : nat -> nat -> In -> Out -> F) (z : token_offset m n -> F) :
  (r1 <= p1 * m)%N -> (r2 <= p2 * n)%N ->
  (forall d, 0 < z d) ->
  (forall st, \sum_d flattened_kernel p1 p2 m n r1 r2 W st d * z d = 0) ->
  (0 < family_rank (flattened_kernel p1 p2 m n r1 r2 W))%N ->
  exists2 eps, 0 < eps &
  forall (Head : finType) (rows columns a b : nat)
      (A : Head -> bare_grid rows columns -> ringed_grid rows columns a b -> F)
      (M : Head -> patch_feature p1 p2 In -> patch_feature p1 p2 Out -> F)
      (bias : patch_feature p1 p2 Out -> F),
    (m < rows)%N -> (n < columns)%N ->
    (forall h q k, 0 <= A h q k) ->
    (#|Head| <= family_rank (flattened_kernel p1 p2 m n r1 r2 W))%N ->
    exists (X : nat -> nat -> In -> bool) (q : bare_grid rows columns) (t : patch_feature p1 p2 Out),
      eps < output_error r1 r2 A M bias W (binary_image F X) q t.
Proof.
move=> reach1 reach2 posz zero nonzero; pose kernel := flattened_kernel p1 p2 m n r1 r2 W.
pose column : 'cV[F]_#|token_offset m n| := \col_d z (enum_val d).
have [d|||ball pos far] := @nonnegative_far F _ _ (family_matrix kernel) column.
- by rewrite mxE.
- apply/matrixP => i j; rewrite !mxE -[RHS](zero (enum_val i)) -[RHS]sum_enum_val.
  by apply: eq_bigr => d _; rewrite !mxE.
- exact: nonzero.
have pos2 : 0 < ball / 2%:R by rewrite divr_gt0 ?ltr0n.
exists (ball / 2%:R) => // Head rows columns a b A M bias large1 large2 nonneg few.
apply: (off_somewhere bias reach1 reach2 (large1 := large1) (large2 := large2)) pos2 _ => near.
pose L st h := M h st.1 st.2.
pose R h d := A h (joined_query large1 large2 d) (image_key a b (joined_key large1 large2 d)).
apply: (far _ (family_matrix L) (family_matrix R) _ few) => i d; first by rewrite mxE nonneg.
rewrite family_matrix_product !mxE [X in _ <= X](splitr ball); exact: near.
Qed.
