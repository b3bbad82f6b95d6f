(** S.headdim (1), exactly: ⌈rank(Σ_δ M_δ) / d⌉ heads more, without any bias.

    Let m ≥ r₁ / p₁ and n ≥ r₂ / p₂, let M_δ be the maps of the kernel W over an ordered field, d ≥ 1 and
    0 < ε < 1. There are Σ_δ ⌈rank(M_δ) / d⌉ + ⌈rank(Σ_δ M_δ) / d⌉ heads with maps through d features, each with an
    offset or with none, such that for every number of patches, with a ring of m × n zero patches, the layer is
    the zero-padded convolution, for every image: a head with an offset has the bias log e there and 0
    elsewhere, e = 1 + N (1/ε - 1) with the number N of keys, and one without attends to all keys alike. One set
    of offsets and maps serves all sizes. The second number is at most ⌈min(c, c') / d⌉, c and c' being the
    numbers of features of a token in and out. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention image heads grid patches rank head_dimension.
From Convattn.foundation Require Import flattened_kernel lower_bound offset_heads split_heads leaky.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Theorem headdim_exact (F : numFieldType) (In Out : finType) (p1 p2 m n r1 r2 dim : nat) (leak : F)
    (W : nat -> nat -> In -> Out -> F) :
  let maps d s t := flattened_kernel p1 p2 m n r1 r2 W (s, t) d in
  let uniform := heads_for_rank dim (family_rank (fun s t => \sum_d maps d s t)) in
  (r1 <= p1 * m)%N -> (r2 <= p2 * n)%N -> (0 < dim)%N -> 0 < leak < 1 ->
  (exists (Head : finType) (look : Head -> option (token_offset m n))
      (V : Head -> patch_feature p1 p2 In -> 'I_dim -> F)
      (U : Head -> 'I_dim -> patch_feature p1 p2 Out -> F),
    #|Head| = (\sum_d heads_for_rank dim (family_rank (maps d)) + uniform)%N /\
    forall rows columns : nat, expresses r1 r2
      (fun h => finite_attention (@ringed_target rows columns m n)
        (leaky_weight leak #|ringed_grid rows columns m n|) (look h))
      (fun h => through (V h) (U h)) (fun=> 0) W) /\
  (uniform <= heads_for_rank dim (minn #|patch_feature p1 p2 In| #|patch_feature p1 p2 Out|))%N.
Proof.
move=> maps uniform le1 le2 lt0 range; split; last first.
  by apply: heads_for_rank_monotone; rewrite leq_min rank_leq_row rank_leq_col.
pose count h := if h is Some d then heads_for_rank dim (family_rank (maps d)) else uniform.
have [h|V [U split]] := @split_maps F _ _ _ dim count (leaky_maps leak maps).
  case: h => [d|] /=; last first.
    exact: leq_trans (family_rank_scale _ _) (heads_for_rank_enough _ lt0).
  apply: leq_trans (heads_for_rank_enough _ lt0).
  apply: leq_trans (family_rank_scale (1 - leak)^-1 _); apply: eq_leq.
  by apply: eq_family_rank => s t; rewrite mulrC.
exists (split_head count), (fun h => tag h), V, U; split.
  rewrite card_split_head (bigD1 None) //= addnC; congr (_ + _)%N.
  by rewrite (reindex_omap Some id) /= => [|[]//]; apply: eq_bigl => d; rewrite eqxx.
move=> rows columns X q t; rewrite addr0.
set e := leaky_weight _ _.
rewrite (split_layer (finite_attention (@ringed_target rows columns m n) e) _ _ _ split).
have keys : #|ringed_grid rows columns m n|%:R != 0 :> F := keys_neq0 F m n q.
have [ne1 nz] := leaky_nonzero range keys.
rewrite -(convolution_of_tokens W X q t le1 le2).
transitivity (attention_layer (finite_attention (@ringed_target rows columns m n) e)
    (finite_maps maps #|ringed_grid rows columns m n| e) (patch_token X) q t).
  by apply: eq_bigr => h _; apply: eq_feature_map => // i; rewrite leaky_mapsE.
by rewrite finite_heads.
Qed.
