(** S.headdim (1): one-hot heads of width d number at least Σ_δ ⌈rank(M_δ) / d⌉.

    Let m ≥ r₁ / p₁ and n ≥ r₂ / p₂, let each head attend to the key at an offset of its own with weight one, and
    let its map go through d features. If the layer is the zero-padded convolution for all images of some
    number of more than m rows and n columns of patches, with a ring of m × n zero patches, then it has at
    least Σ_δ ⌈rank(M_δ) / d⌉ heads: those of an offset add up to its map. This holds over every field and
    with any bias. That so many suffice is headdim_sufficient.

    Not covered: heads that attend to anything else. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention image heads grid bare rank head_dimension.
From Convattn.foundation Require Import flattened_kernel lower_bound split_heads.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Theorem headdim_one_hot (F : fieldType) (In Out Head : finType) (rows columns p1 p2 m n r1 r2 dim : nat)
    (look : Head -> token_offset m n)
    (V : Head -> patch_feature p1 p2 In -> 'I_dim -> F)
    (U : Head -> 'I_dim -> patch_feature p1 p2 Out -> F)
    (bias : patch_feature p1 p2 Out -> F) (W : nat -> nat -> In -> Out -> F) :
  let maps d s t := flattened_kernel p1 p2 m n r1 r2 W (s, t) d in
  (r1 <= p1 * m)%N -> (r2 <= p2 * n)%N -> (m < rows)%N -> (n < columns)%N -> (0 < dim)%N ->
  expresses r1 r2 (fun h q => hard_attention F (@ringed_target rows columns m n) (look h) q)
    (fun h => through (V h) (U h)) bias W ->
  (\sum_d heads_for_rank dim (family_rank (maps d)) <= #|Head|)%N.
Proof.
move=> maps le1 le2 large1 large2 lt0 equal.
have -> : #|Head| = (\sum_d \sum_(h | look h == d) 1)%N.
  by rewrite -sum1_card (partition_big look xpredT).
apply: leq_sum => d _; apply: heads_for_rank_least => //; rewrite big_distrl /=.
have own s t : maps d s t = \sum_(h | look h == d) through (V h) (U h) s t.
  rewrite /maps -(expresses_offset le1 le2 equal large1 large2) [RHS]big_mkcond; apply: eq_bigr => h _.
  rewrite /hard_attention /one_hot /ringed_target (inj_eq Some_inj) eq_sym joined_only.
  by case: eqP => _; rewrite ?mul1r ?mul0r.
rewrite (eq_family_rank own); apply: leq_trans (family_rank_sum _ _) _.
apply: leq_sum => h _; rewrite mul1n -[X in (_ <= X)%N](card_ord dim).
exact: (family_rank_product (L := V h) (R := U h)).
Qed.
