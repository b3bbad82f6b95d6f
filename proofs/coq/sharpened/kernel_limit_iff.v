(** S.kernel in the limit: as many heads as the rank suffice if and only if some row combination is nonnegative.

    Let m ≥ r₁ / p₁ and n ≥ r₂ / p₂, let F be the flattened form of the kernel W over an ordered field, F ≠ 0. The
    following are equivalent. (1) The row space of F contains a vector y ≥ 0 that is not zero. (2) For every
    ε > 0 there are rank F heads at finite scores, one set of numbers w_hδ ≥ 0 and of value maps for all sizes, whose
    layer is off the zero-padded convolution by at most ε, at every output of every image whose pixels lie
    between -1 and 1, of any number of patches, with a ring of m × n zero patches (the heads of kernel_limit).
    (3) For every ε > 0 there is some layer of at most rank F heads, whose attention weights are not negative and
    do not depend on the image, with any value maps and bias and a ring of any width or none, on some number of
    more than m rows and n columns of patches, that is off by at most ε at every output of every image of zeros
    and ones. What joins kernel_limit and kernel_limit_necessary is Gordan's theorem in Stiemke's form.

    Values may grow without bound as ε vanishes. Not covered: the condition for values that stay bounded. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention image grid patches bare rank total_variation.
From Convattn.foundation Require Import flattened_kernel lower_bound near_layers offset_heads alternative.
From Convattn.sharpened Require Import kernel_limit kernel_limit_necessary.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory Num.Theory Order.Theory.
Local Open Scope ring_scope.

(** The two cases of Stiemke's theorem, for families. *)
Lemma stiemke_family (F : realFieldType) (Row Column : finType) (M : Row -> Column -> F) :
  (exists y : Column -> F, [/\ forall d, 0 <= y d, exists d, y d != 0
    & exists c : Row -> F, forall d, y d = \sum_i c i * M i d]) \/
  (exists z : Column -> F, (forall d, 0 < z d) /\ forall i, \sum_d M i d * z d = 0).
Proof.
have [[c [ge0 nz]]|[z [gt0 zero]]] := stiemke (family_matrix M).
  have entry d : (c *m family_matrix M) ord0 (enum_rank d) = \sum_i c ord0 (enum_rank i) * M i d.
    by rewrite mxE -[RHS]sum_enum_val; apply: eq_bigr => i _; rewrite mxE enum_rankK enum_valK.
  left; exists (fun d => (c *m family_matrix M) ord0 (enum_rank d)); split=> [d|| ]; first exact: ge0.
    have [j nzj] : exists j, (c *m family_matrix M) ord0 j != 0.
      apply/existsP; apply: contraNT nz; rewrite negb_exists => /forallP none.
      by apply/eqP/rowP => j; rewrite [RHS]mxE; apply/eqP; move: (none j); rewrite negbK.
    by exists (enum_val j); rewrite enum_valK.
  by exists (fun i => c ord0 (enum_rank i)).
right; exists (fun d => z (enum_rank d) ord0); split=> // i.
have /colP/(_ (enum_rank i)) := zero; rewrite [RHS]mxE mxE => e.
rewrite -[RHS]e -(sum_enum_val (fun d => M i d * z (enum_rank d) ord0)).
by apply: eq_bigr => j _; rewrite mxE enum_rankK enum_valK.
Qed.

Theorem kernel_limit_iff (F : realFieldType) (In Out : finType) (p1 p2 m n r1 r2 : nat)
    (W : nat -> nat -> In -> Out -> F) :
  let kernel := flattened_kernel p1 p2 m n r1 r2 W in
  let nonnegative_row := exists y : token_offset m n -> F, [/\ forall d, 0 <= y d, exists d, y d != 0
    & exists c : patch_feature p1 p2 In * patch_feature p1 p2 Out -> F,
        forall d, y d = \sum_st c st * kernel st d] in
  let near_at_all_sizes := forall eps, 0 < eps ->
    exists (Head : finType) (w : Head -> token_offset m n -> F)
        (M : Head -> patch_feature p1 p2 In -> patch_feature p1 p2 Out -> F),
      [/\ #|Head| = family_rank kernel,
          forall h d, 0 <= w h d,
          forall (rows columns : nat) h (q : bare_grid rows columns) k, 0 < offset_weights (w h) q k
        & forall (rows columns : nat) (X : image_type F In) (q : bare_grid rows columns)
              (t : patch_feature p1 p2 Out),
            (forall y x c, `|X y x c| <= 1) ->
            `|attention_layer
                (fun h (q : bare_grid rows columns) => softmax (offset_weights (w h) q))
                M (patch_token X) q t -
              convolution (p1 * rows) (p2 * columns) r1 r2 W X
                (p1 * q.1 + t.1.1)%N (p2 * q.2 + t.1.2)%N t.2| <= eps] in
  let near_at_some_size := forall eps, 0 < eps ->
    exists (Head : finType) (rows columns a b : nat)
        (A : Head -> bare_grid rows columns -> ringed_grid rows columns a b -> F)
        (M : Head -> patch_feature p1 p2 In -> patch_feature p1 p2 Out -> F)
        (bias : patch_feature p1 p2 Out -> F),
      [/\ (m < rows)%N, (n < columns)%N, forall h q k, 0 <= A h q k,
          (#|Head| <= family_rank kernel)%N
        & forall (X : nat -> nat -> In -> bool) (q : bare_grid rows columns) (t : patch_feature p1 p2 Out),
            output_error r1 r2 A M bias W (binary_image F X) q t <= eps] in
  (r1 <= p1 * m)%N -> (r2 <= p2 * n)%N -> (0 < family_rank kernel)%N ->
  (nonnegative_row <-> near_at_all_sizes) /\ (nonnegative_row <-> near_at_some_size).
Proof.
move=> kernel nonnegative_row near_at_all_sizes near_at_some_size le1 le2 nonzero.
have upper : nonnegative_row -> near_at_all_sizes.
  case=> y [ge0 nz [c in_rows]] eps pos; exact: (kernel_limit le1 le2 ge0 nz in_rows pos).
have specialised : near_at_all_sizes -> near_at_some_size.
  move=> near eps /near [Head [w [M [card ge0 gt0 close]]]].
  exists Head, m.+1, n.+1, m, n, (fun h q => softmax (offset_weights (w h) q)), M, (fun=> 0).
  split=> // [h q k||X q t]; first by apply: softmax_nonnegative => k'; exact/ltW/gt0.
    by rewrite card.
  rewrite /output_error addr0; apply: close => y x c.
  by rewrite /binary_image; case: (X y x c); rewrite ?normr1 ?normr0 ?ler01.
have lower : near_at_some_size -> nonnegative_row.
  move=> near; have [//|[z [gt0 zero]]] := stiemke_family kernel.
  have [eps pos far] := kernel_limit_necessary le1 le2 gt0 zero nonzero.
  have [Head [rows [columns [a [b [A [M [bias [large1 large2 ge0 few close]]]]]]]]] := near eps pos.
  have [X [q [t]]] := far Head rows columns a b A M bias large1 large2 ge0 few.
  by rewrite ltNge close.
by split; split=> [row|near]; [exact: upper | exact/lower/specialised | exact/specialised/upper | exact: lower].
Qed.
