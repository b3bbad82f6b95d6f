(** A certificate of head dimension: r heads can be removed, and the others must have the rank.

    Let heads of dimension d, whose value maps are products over d numbers, put the maps F_0 and F_1,
    …, F_r at some shifts: each is a combination of the value maps with the weights of attention
    there. Let F_1, …, F_r be independent (a minor of order r is not zero), and let F_0 + Σ_j c_j F_j
    have a rank of at least R whatever the numbers c_j are. Then R ≤ (N - r) d for the N heads, and
    r ≤ N: that is N ≥ r + ⌈R/d⌉, the number that [head_dimension.py] gives as necessary: for layers,
    and so for limits whose value maps stay bounded. Over any field; that a triangular kernel has
    R = prod(P) · min(D_in, D_out), and the higher bound at finite scores, are not shown here. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention rank.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

(** A full column rank leaves so many rows on which any column can be met. *)
Lemma meet_rows (F : fieldType) (Head : finType) (r : nat) (a : Head -> 'I_r -> F) (a0 : Head -> F) :
  (r <= family_rank a)%N ->
  exists (S : {set Head}) (c : 'I_r -> F),
    #|S| = r /\ forall h, h \in S -> a0 h + \sum_j a h j * c j = 0.
Proof.
move=> full; pose B : 'M[F]_(#|Head|, r) := \matrix_(i, j) a (enum_val i) j.
have fullB : row_full B.
  rewrite /row_full eqn_leq rank_leq_col /=; apply: leq_trans full _; rewrite /family_rank.
  have -> : family_matrix a = B *m \matrix_(i, j) (i == enum_val j)%:R.
    apply/matrixP => i j; rewrite !mxE (bigD1 (enum_val j)) //= !mxE eqxx mulr1.
    by rewrite big1 ?addr0 // => l /negbTE ne; rewrite !mxE ne mulr0.
  exact: mxrankM_maxl.
pose f := fullrankfun fullB.
pose C := rowsub f B; have unitC : C \in unitmx by exact: fullrowsub_unit.
pose v : 'cV[F]_r := - (invmx C *m \col_i a0 (enum_val (f i))).
exists [set enum_val (f i) | i in 'I_r], (fun j => v j ord0); split=> [|h /imsetP [i _ ->]].
  rewrite card_imset ?card_ord // => i j /enum_val_inj; exact: fullrankfun_inj.
have : (C *m v) i ord0 = - a0 (enum_val (f i)) by rewrite mulmxN mulKVmx // !mxE.
rewrite mxE => eqC; rewrite (eq_bigr (fun j => C i j * v j ord0)) ?eqC ?subrr // => j _.
by rewrite !mxE.
Qed.

Theorem head_dimension (F : fieldType) (Head Dimension In Out : finType) (r R : nat)
    (F0 : In -> Out -> F) (Fj : 'I_r -> In -> Out -> F)
    (a0 : Head -> F) (a : Head -> 'I_r -> F)
    (V : Head -> In -> Dimension -> F) (U : Head -> Dimension -> Out -> F) :
  (forall i o, \sum_h a0 h * (\sum_e V h i e * U h e o) = F0 i o) ->
  (forall j i o, \sum_h a h j * (\sum_e V h i e * U h e o) = Fj j i o) ->
  (r <= family_rank (fun (io : In * Out) j => Fj j io.1 io.2))%N ->
  (forall c : 'I_r -> F, (R <= family_rank (fun i o => (F0 i o + \sum_j c j * Fj j i o)%R))%N) ->
  (r <= #|Head|)%N /\ (R <= (#|Head| - r) * #|Dimension|)%N.
Proof.
move=> eq0 eqj indep rank_any; pose M h i o := \sum_e V h i e * U h e o.
have factors io j : Fj j io.1 io.2 = \sum_h M h io.1 io.2 * a h j.
  by rewrite -eqj; apply: eq_bigr => h _; rewrite mulrC.
have full : (r <= family_rank a)%N.
  apply: leq_trans indep _.
  by rewrite {1}/family_rank (eq_family_matrix factors) -family_matrix_product mxrankM_maxr.
split; first by apply: leq_trans full _; exact: rank_leq_row.
have [S [c [cardS vanish]]] := meet_rows a0 full.
apply: leq_trans (rank_any c) _.
have <- : #|[finType of {h | h \notin S} * Dimension]| = ((#|Head| - r) * #|Dimension|)%N.
  rewrite card_prod card_sig -(cardsC S) cardS addKn; congr (_ * _)%N.
  by apply: eq_card => h; rewrite !inE.
apply: (family_rank_product
  (L := fun i (he : {h | h \notin S} * Dimension) =>
     (a0 (val he.1) + \sum_j a (val he.1) j * c j) * V (val he.1) i he.2)
  (R := fun he o => U (val he.1) he.2 o)) => i o.
transitivity (\sum_h (a0 h + \sum_j a h j * c j) * M h i o).
  rewrite [RHS](eq_bigr (fun h => a0 h * M h i o + \sum_j c j * (a h j * M h i o))) => [|h _].
    rewrite [RHS]big_split /= eq0; congr (_ + _); rewrite [RHS]exchange_big /=.
    by apply: eq_bigr => j _; rewrite -eqj big_distrr.
  rewrite mulrDl big_distrl; congr (_ + _); apply: eq_bigr => j _ /=.
  by rewrite mulrA [c j * _]mulrC.
rewrite (bigID (fun h => h \in S)) /= big1 ?add0r => [|h inS]; last by rewrite vanish ?mul0r.
rewrite -(pair_bigA _ (fun (h : {h | h \notin S}) e =>
  (a0 (val h) + \sum_j a (val h) j * c j) * V (val h) i e * U (val h) e o)) /=.
rewrite (reindex_omap (val : {h | h \notin S} -> Head) insub) /= => [|h notS]; last first.
  by rewrite insubT.
rewrite (eq_bigl xpredT) => [|h]; last by rewrite (valP h) valK eqxx.
apply: eq_bigr => h _; rewrite /M big_distrr; apply: eq_bigr => e _ /=.
by rewrite mulrA.
Qed.
