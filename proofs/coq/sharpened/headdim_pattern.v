(** S.headdim (3), what it rests on: heads drop out by substitution.

    Let m ≥ r₁ / p₁ and n ≥ r₂ / p₂, T = (2m+1)(2n+1), let o be one of the offsets, the maps M_δ of the other T - 1
    linearly independent, and let M_o + Σ_(δ≠o) c_δ M_δ have at least the rank k ≥ 1, whatever the numbers c_δ. Then a
    layer whose value maps go through d ≥ 1 features and that is the zero-padded convolution for all images has at
    least (T - 1) + ⌈k / d⌉ heads; and one more if no attention weight is zero, as with a softmax at finite scores,
    and some query has a token of the image outside its receptive field, or some offset has the map zero. This
    holds over every field, for more than m rows and n columns of patches, with a ring of any width or with
    none, whatever the attention, so long as it does not depend on the image, and with any bias.

    Kernels that are like this are in headdim_triangular. Not covered: limits. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring zify.
From Convattn.foundation Require Import attention image heads grid bare rank head_dimension.
From Convattn.foundation Require Import flattened_kernel independent lower_bound split_heads.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

(** Columns without a relation, and independent ones. *)
Lemma full_columns (F : fieldType) (Row Column : finType) (M : Row -> Column -> F) :
  (forall x, (forall i, \sum_d M i d * x d = 0) -> forall d, x d = 0) -> family_rank M = #|Column|.
Proof.
move=> free; apply/eqP; rewrite /family_rank -mxrank_tr -/(row_free _) -kermx_eq0; apply/eqP/row_matrixP => j.
rewrite row0; have : row j (kermx (family_matrix M)^T) *m (family_matrix M)^T = 0.
  by rewrite -row_mul mulmx_ker row0.
move: (row j _) => v zero; apply/rowP => d; rewrite [RHS]mxE -(enum_valK d).
apply: (free (fun d => v ord0 (enum_rank d))) => i.
have /rowP/(_ (enum_rank i)) := zero; rewrite [RHS]mxE mxE => e; rewrite -[RHS]e.
rewrite -(sum_enum_val (fun d => M i d * v ord0 (enum_rank d))).
by apply: eq_bigr => d' _; rewrite !mxE enum_rankK enum_valK mulrC.
Qed.

Lemma no_relation (F : fieldType) (Row Column : finType) (M : Row -> Column -> F) (x : Column -> F) :
  family_rank M = #|Column| -> (forall i, \sum_d M i d * x d = 0) -> forall d, x d = 0.
Proof.
move=> full; apply: (@independent_columns F _ _ _ M M (fun h j => (h == j)%:R)) => [i j|].
  by rewrite (bigD1 j) //= eqxx mulr1 big1 ?addr0 // => h /negbTE ->; rewrite mulr0.
by rewrite full.
Qed.

Section Substitution.

Variables (F : fieldType) (Head Column : finType) (a : Head -> Column -> F).
Hypothesis full : family_rank a = #|Column|.

(** As many heads as columns can be made to vanish. *)
Lemma vanishing (b : Head -> F) : exists c : Column -> F,
  (#|[pred h | (b h + \sum_d a h d * c d != 0)%R]| + #|Column| <= #|Head|)%N.
Proof.
pose B := rowsub (maxrankfun (family_matrix a)) (family_matrix a).
pose y := rowsub (maxrankfun (family_matrix a)) (family_matrix (fun h (_ : unit) => b h)).
pose x := - (pinvmx B *m y).
have solved : y + B *m x = 0 by rewrite /x mulmxN mulmxA mulmxVp ?maxrowsub_free // mul1mx subrr.
exists (fun d => x (enum_rank d) (enum_rank tt)).
pose f i := enum_val (maxrankfun (family_matrix a) i).
have f_inj : injective f by move=> i i' /enum_val_inj /maxrankfun_inj.
have zero i : b (f i) + \sum_d a (f i) d * x (enum_rank d) (enum_rank tt) = 0.
  have /matrixP/(_ i (enum_rank tt)) := solved; rewrite !mxE => e; rewrite -[RHS]e; congr (_ + _).
  rewrite -(sum_enum_val (fun d => a (f i) d * x (enum_rank d) (enum_rank tt))).
  by apply: eq_bigr => d _; rewrite !mxE enum_valK.
have size : #|codom f| = #|Column| by rewrite card_codom // card_ord; exact: full.
rewrite -(cardC (mem (codom f))) [in leqRHS]size addnC leq_add2l.
apply: subset_leq_card; apply/subsetP => h.
by rewrite !inE; apply: contraNN => /codomP [i ->]; rewrite zero.
Qed.

Lemma substitution (In Out : finType) (dim k : nat) (b : Head -> F)
    (V : Head -> In -> 'I_dim -> F) (U : Head -> 'I_dim -> Out -> F) : (0 < dim)%N ->
  (forall c : Column -> F,
    (k <= family_rank (fun i o => (\sum_h (b h + \sum_d a h d * c d) * through (V h) (U h) i o)%R))%N) ->
  (#|Column| + heads_for_rank dim k <= #|Head|)%N.
Proof.
move=> lt0 rank; have [c few] := vanishing b.
apply: leq_trans few; rewrite addnC leq_add2r; apply: heads_for_rank_least => //.
apply: leq_trans (rank c) _.
have e i o : \sum_h (b h + \sum_d a h d * c d) * through (V h) (U h) i o =
    \sum_(h | b h + \sum_d a h d * c d != 0) (b h + \sum_d a h d * c d) * through (V h) (U h) i o.
  rewrite [RHS]big_mkcond; apply: eq_bigr => h _; case: eqP => [->|] //=.
  by rewrite mul0r.
rewrite (eq_family_rank e); apply: leq_trans (family_rank_sum _ _) _.
rewrite -sum1_card big_distrl /=; apply: leq_sum => h _.
apply: leq_trans (family_rank_scale _ _) _; rewrite mul1n -[X in (_ <= X)%N](card_ord dim).
exact: (family_rank_product (L := V h) (R := U h)).
Qed.

End Substitution.

Theorem headdim_pattern (F : fieldType) (In Out Head : finType)
    (rows columns p1 p2 a b m n r1 r2 dim k : nat) (base : token_offset m n)
    (A : Head -> bare_grid rows columns -> ringed_grid rows columns a b -> F)
    (V : Head -> patch_feature p1 p2 In -> 'I_dim -> F)
    (U : Head -> 'I_dim -> patch_feature p1 p2 Out -> F)
    (bias : patch_feature p1 p2 Out -> F) (W : nat -> nat -> In -> Out -> F) :
  let kernel := flattened_kernel p1 p2 m n r1 r2 W in
  (r1 <= p1 * m)%N -> (r2 <= p2 * n)%N -> (m < rows)%N -> (n < columns)%N -> (0 < dim)%N -> (0 < k)%N ->
  family_rank (fun st (d : {d | d != base}) => kernel st (val d)) = #|token_offset m n|.-1 ->
  (forall c : token_offset m n -> F,
    (k <= family_rank (fun s t => (kernel (s, t) base + \sum_(d | d != base) c d * kernel (s, t) d)%R))%N) ->
  expresses r1 r2 A (fun h => through (V h) (U h)) bias W ->
  (#|token_offset m n|.-1 + heads_for_rank dim k <= #|Head|)%N /\
  ((forall h q k, A h q k != 0) ->
    (m.+1 < rows)%N \/ (n.+1 < columns)%N \/ (exists d, forall st, kernel st d = 0) ->
    (#|token_offset m n| + heads_for_rank dim k <= #|Head|)%N).
Proof.
move=> kernel reach1 reach2 large1 large2 lt0 lt0k independent rank equal.
pose weight h d := A h (joined_query large1 large2 d) (image_key a b (joined_key large1 large2 d)).
have map_of s t d : \sum_h weight h d * through (V h) (U h) s t = kernel (s, t) d.
  exact: (expresses_offset reach1 reach2 equal large1 large2).
have card_others : #|[finType of {d : token_offset m n | d != base}]| = #|token_offset m n|.-1.
  by rewrite card_sig (eq_card (B := predC1 base)) ?cardC1.
have others (c : {d : token_offset m n | d != base} -> F) (g : token_offset m n -> F) :
    \sum_(d : {d | d != base}) c d * g (val d) =
    \sum_(d | d != base) (if insub d is Some d' then c d' else 0) * g d.
  rewrite [RHS](@reindex_omap _ _ _ _ [finType of {d : token_offset m n | d != base}] val insub) => [|d ne]; last by rewrite insubT.
  apply: eq_big => [d|d _]; last by rewrite valK.
  by rewrite valK eqxx (valP d).
have relation (x : {d | d != base} -> F) s t :
    \sum_h (\sum_d weight h (val d) * x d) * through (V h) (U h) s t =
      \sum_(d : {d | d != base}) x d * kernel (s, t) (val d).
  under eq_bigr do rewrite big_distrl; rewrite exchange_big; apply: eq_bigr => d _ /=.
  by rewrite -map_of big_distrr; apply: eq_bigr => h _ /=; rewrite mulrAC mulrC.
have first : (#|token_offset m n|.-1 + heads_for_rank dim k <= #|Head|)%N.
  rewrite -card_others; apply: (@substitution F Head _ (fun h (d : {d | d != base}) => weight h (val d))
      _ _ _ dim k (fun h => weight h base) V U lt0) => [|c].
    apply/eqP; rewrite eqn_leq rank_leq_col card_others -independent.
    apply: (family_rank_right (L := fun st h => through (V h) (U h) st.1 st.2)) => -[s t] d.
    by rewrite -map_of; apply: eq_bigr => h _; rewrite mulrC.
  pose c' d := if insub d is Some d' then c d' else 0.
  apply: leq_trans (rank c') _; apply: eq_leq; apply: eq_family_rank => s t.
  rewrite -(others c (fun d => kernel (s, t) d)) -map_of -relation -big_split.
  by apply: eq_bigr => h _; rewrite mulrDl.
split=> // nz some_zero; have [q [key zero]] := zero_map reach1 reach2 equal large1 large2 some_zero.
have [h0 _] : exists h : Head, true.
  have : (0 < #|Head|)%N.
    apply: leq_trans first; apply: leq_trans (leq_addl _ _).
    by rewrite /heads_for_rank divn_gt0 //; lia.
  by case/card_gt0P => h _; exists h.
pose w h (d : option {d | d != base}) := if d is Some d then weight h (val d) else A h q (image_key a b key).
have card_all : #|[finType of option {d : token_offset m n | d != base}]| = #|token_offset m n|.
  by rewrite card_option card_others prednK //; apply/card_gt0P; exists base.
have relation_all (x : option {d | d != base} -> F) s t :
    \sum_h (\sum_d w h d * x d) * through (V h) (U h) s t =
      \sum_(d : {d | d != base}) x (Some d) * kernel (s, t) (val d).
  rewrite -relation; under eq_bigr do rewrite sum_option mulrDl mulrAC.
  by rewrite big_split -big_distrl /= zero mul0r add0r.
have full : family_rank w = #|[finType of option {d : token_offset m n | d != base}]|.
  apply: full_columns => x none.
  have zero_others d : x (Some d) = 0.
    apply: (no_relation (x := fun d => x (Some d)) (etrans independent (esym card_others))) => -[s t].
    under eq_bigr do rewrite mulrC; rewrite -relation_all big1 // => h _.
    by rewrite none mul0r.
  case=> [d|]; first exact: zero_others.
  have := none h0; rewrite sum_option big1 ?addr0 => [|d _]; last by rewrite zero_others mulr0.
  by move/eqP; rewrite mulf_eq0 (negbTE (nz _ _ _)) => /eqP.
rewrite -card_all; apply: (substitution full (b := fun h => weight h base) (V := V) (U := U) lt0) => c.
pose c' d := if insub d is Some d' then c (Some d') else 0.
apply: leq_trans (rank c') _; apply: eq_leq; apply: eq_family_rank => s t.
rewrite -(others (fun d => c (Some d)) (fun d => kernel (s, t) d)) -map_of -relation_all -big_split.
by apply: eq_bigr => h _; rewrite mulrDl.
Qed.
