(** Independent columns: minors with a left inverse, their products over two
    axes, what a factorisation of full rank leaves no room for, and how seldom
    a family on a line has a smaller rank than the line's direction. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import rank.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Section Minors.

Variable F : fieldType.

(** A minor that has a left inverse bounds the rank from below. *)
Lemma family_rank_minor (Row Column Picked Chosen : finType) (M : Row -> Column -> F)
    (L : Chosen -> Picked -> F) (pick : Picked -> Row) (choose : Chosen -> Column) :
  (forall a b, \sum_r L a r * M (pick r) (choose b) = (a == b)%:R) ->
  (#|Chosen| <= family_rank M)%N.
Proof.
move=> inverse.
apply: (@family_rank_left_inverse F _ _ _ M (fun a i => \sum_r L a r * (i == pick r)%:R) choose).
move=> a b; rewrite -inverse; under eq_bigr do rewrite big_distrl /=.
rewrite exchange_big; apply: eq_bigr => r _ /=.
rewrite (bigD1 (pick r)) //= eqxx mulr1 big1 ?addr0 // => i /negbTE ->.
by rewrite mulr0 mul0r.
Qed.

(** Left inverses on two axes make one of the product. *)
Lemma left_inverse_product (Picked1 Chosen1 Picked2 Chosen2 : finType)
    (L1 : Chosen1 -> Picked1 -> F) (N1 : Picked1 -> Chosen1 -> F)
    (L2 : Chosen2 -> Picked2 -> F) (N2 : Picked2 -> Chosen2 -> F) :
  (forall a b, \sum_r L1 a r * N1 r b = (a == b)%:R) ->
  (forall a b, \sum_r L2 a r * N2 r b = (a == b)%:R) ->
  forall a b : Chosen1 * Chosen2,
    \sum_(r : Picked1 * Picked2) L1 a.1 r.1 * L2 a.2 r.2 * (N1 r.1 b.1 * N2 r.2 b.2) =
      (a == b)%:R.
Proof.
move=> inverse1 inverse2 [a1 a2] [b1 b2] /=.
rewrite -pair_eqE /= -mulnb natrM -inverse1 -inverse2 big_distrl /=.
rewrite -(pair_bigA _ (fun r1 r2 => L1 a1 r1 * L2 a2 r2 * (N1 r1 b1 * N2 r2 b2))) /=.
by apply: eq_bigr => r1 _; rewrite big_distrr; apply: eq_bigr => r2 _; rewrite mulrACA.
Qed.

(** No more rows than the rank of the product: the columns are independent. *)
Lemma independent_columns (Row Inner Column : finType) (M : Row -> Column -> F)
    (L : Row -> Inner -> F) (R : Inner -> Column -> F) (c : Inner -> F) :
  (forall i j, M i j = \sum_h L i h * R h j) -> (#|Inner| <= family_rank M)%N ->
  (forall i, \sum_h L i h * c h = 0) -> forall h, c h = 0.
Proof.
move=> eM full zero h.
have free : row_full (family_matrix L).
  rewrite /row_full eqn_leq rank_leq_col (leq_trans full) //.
  rewrite /family_rank (eq_family_matrix eM) -family_matrix_product; exact: mxrankM_maxl.
have : family_matrix L *m family_matrix (fun h (_ : unit) => c h) = 0.
  rewrite family_matrix_product; apply/matrixP => i j; rewrite !mxE; exact: zero.
move/(congr1 (mulmx (pinvmx (family_matrix L)))).
rewrite mulmxA mulVpmx // mul1mx mulmx0 => /matrixP/(_ (enum_rank h) (enum_rank tt)).
by rewrite !mxE enum_rankK.
Qed.

(** A product has at most the rank of either factor. *)
Lemma family_rank_left (Row Inner Column : finType) (M : Row -> Column -> F)
    (L : Row -> Inner -> F) (R : Inner -> Column -> F) :
  (forall i j, M i j = \sum_h L i h * R h j) -> (family_rank M <= family_rank L)%N.
Proof.
move=> eM; rewrite /family_rank (eq_family_matrix eM) -family_matrix_product.
exact: mxrankM_maxl.
Qed.

Lemma family_rank_right (Row Inner Column : finType) (M : Row -> Column -> F)
    (L : Row -> Inner -> F) (R : Inner -> Column -> F) :
  (forall i j, M i j = \sum_h L i h * R h j) -> (family_rank M <= family_rank R)%N.
Proof.
move=> eM; rewrite /family_rank (eq_family_matrix eM) -family_matrix_product.
exact: mxrankM_maxr.
Qed.

(** Sylvester: factors of a zero product share the inner dimension between them. *)
Lemma family_rank_zero_product (Row Inner Column : finType)
    (L : Row -> Inner -> F) (R : Inner -> Column -> F) :
  (forall i j, \sum_h L i h * R h j = 0) -> (family_rank L + family_rank R <= #|Inner|)%N.
Proof.
move=> zero; have none : family_matrix (fun i j => \sum_h L i h * R h j) = 0.
  by apply/matrixP => i j; rewrite !mxE.
have := mxrank_mul_min (family_matrix L) (family_matrix R).
by rewrite family_matrix_product none mxrank0 leqn0 subn_eq0.
Qed.

(** On the line through V in the direction of W all but rank W families have at least W's rank. *)
Lemma family_rank_line (Row Column : finType) (V W : Row -> Column -> F) (ts : seq F) :
  uniq ts -> (forall t, t \in ts -> (family_rank (fun i j => V i j + t * W i j)%R < family_rank W)%N) ->
  (size ts <= family_rank W)%N.
Proof.
move=> distinct smaller; pose N := family_matrix V; pose D := family_matrix W.
pose P := pinvmx (col_base D); pose Q := pinvmx (row_base D).
have one : P *m D *m Q = 1%:M.
  transitivity (P *m (col_base D *m row_base D) *m Q); first by rewrite mulmx_base.
  by rewrite mulmxA mulVpmx ?col_base_full // mul1mx mulmxVp ?row_base_free.
pose B := - (P *m N *m Q); rewrite -ltnS -(size_char_poly B).
apply: max_poly_roots distinct; first by rewrite -size_poly_gt0 size_char_poly.
apply/allP => t /smaller few; rewrite -eigenvalue_root_char /eigenvalue /eigenspace.
apply: contraTN few => /eqP free; rewrite -leqNgt /family_rank.
have sum : family_matrix (fun i j => V i j + t * W i j) = N + t *: D.
  by apply/matrixP => i j; rewrite !mxE.
have -> : \rank D = \rank (B - t%:M).
  by have := kermx_eq0 (B - t%:M); rewrite free eqxx => /esym/eqP ->.
have -> : B - t%:M = - (P *m (N + t *: D) *m Q).
  by rewrite mulmxDr mulmxDl -scalemxAr -scalemxAl one scalemx1 opprD.
rewrite mxrank_opp sum; exact: leq_trans (mxrankM_maxl _ _) (mxrankM_maxr _ _).
Qed.

End Minors.
