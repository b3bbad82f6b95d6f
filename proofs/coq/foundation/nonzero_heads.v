(** Heads that look at every key, as a softmax at finite scores does: they need
    to be more than the independent maps they compute.

    Where the coefficients of a layer contain the maps of all offsets, which are
    independent, and somewhere a zero one, as many heads as offsets would all
    have to be zero there. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention image grid rank bare shared_map.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Section NonzeroHeads.

Variable F : fieldType.

(** Independent rows that are sums over h of [R h] are fewer than the h, if
    the [R h] have a linear relation. *)
Lemma rank_of_related_rows (Row Inner Column : finType)
    (M : Row -> Column -> F) (L : Row -> Inner -> F) (R : Inner -> Column -> F)
    (z : Inner -> F) (h0 : Inner) :
  (forall i j, M i j = \sum_h L i h * R h j) -> family_rank M = #|Row| ->
  z h0 != 0 -> (forall j, \sum_h z h * R h j = 0) -> (#|Row| < #|Inner|)%N.
Proof.
move=> eM full nz rel; rewrite ltnNge; apply/negP => few.
have free : row_free (family_matrix R).
  rewrite /row_free eqn_leq rank_leq_row (leq_trans few) // -full /family_rank.
  by rewrite (eq_family_matrix eM) -family_matrix_product mxrankM_maxr.
pose z' := \row_(j < #|Inner|) z (enum_val j); have zero : z' *m family_matrix R = 0.
  apply/rowP => j; rewrite !mxE -[RHS](rel (enum_val j)) -[RHS]sum_enum_val.
  by apply: eq_bigr => h _; rewrite !mxE.
have /rowP/(_ (enum_rank h0)) : z' = 0.
  by apply: (row_free_inj free); rewrite zero mul0mx.
by rewrite !mxE enum_rankK; move/eqP: nz.
Qed.

Variables (Head Offset Key In Out : finType) (Query : Type).
Variables (M : Offset -> In -> Out -> F).
Variables (A : Head -> Query -> Key -> F) (V : Head -> In -> Out -> F).

(** The coefficients of the layer are the maps of all offsets, which are
    independent, and zero at a key that all heads look at. *)
Lemma nonzero_heads (d0 : Offset) (q0 : Query) (k0 : Key) :
  family_rank (fun d (st : In * Out) => M d st.1 st.2) = #|Offset| ->
  (forall d, exists q k, forall s t, \sum_h A h q k * V h s t = M d s t) ->
  (forall s t, \sum_h A h q0 k0 * V h s t = 0) -> (forall h, A h q0 k0 != 0) ->
  (#|Offset| < #|Head|)%N.
Proof.
move=> full /fin_all_exists[q /fin_all_exists[k eM]] zero nz.
pose L d h := A h (q d) (k d); pose R h (st : In * Out) := V h st.1 st.2.
have eML d st : M d st.1 st.2 = \sum_h L d h * R h st by rewrite eM.
have [h0 _|none] := pickP Head.
  by apply: (rank_of_related_rows (z := fun h => A h q0 k0) eML full (nz h0)) => -[s t]; apply: zero.
have := family_rank_product eML; rewrite full (eq_card0 none) leqn0 => /eqP/card0_eq none_d.
by have := none_d d0; rewrite inE.
Qed.

End NonzeroHeads.

Section BareGrid.

Variables (F : fieldType) (rows columns m n : nat).

Section Coefficients.

Variables (Head Feature : finType) (Output : Type) (q : bare_grid rows columns).
Variables (M : token_offset m n -> Feature -> Output -> F).
Variables (A : Head -> bare_grid rows columns -> bare_grid rows columns -> F).
Variables (V : Head -> Feature -> Output -> F).
Hypothesis computes : forall X o, attention_layer A V X q o = bare_convolution M X q o.

Lemma bare_coefficients k s t :
  \sum_h A h q k * V h s t =
    \sum_(d : token_offset m n) one_hot F (bare_target q d) k * M d s t.
Proof.
by move: k s; apply/layer_is_targets => X; exact: computes.
Qed.

Lemma coefficient_at_offset d k s t :
  bare_target q d = Some k -> \sum_h A h q k * V h s t = M d s t.
Proof.
by move=> target_d; rewrite bare_coefficients (sum_one_target (fun d => M d s t) target_d).
Qed.

Lemma coefficient_off_field k s t :
  (forall d : token_offset m n, bare_target q d != Some k) -> \sum_h A h q k * V h s t = 0.
Proof.
move=> off; rewrite bare_coefficients big1 // => d _.
by rewrite /one_hot eq_sym (negbTE (off d)) mul0r.
Qed.

End Coefficients.

(** What holds for the tokens of all images holds for all tokens. *)
Lemma computes_on_all_tokens (In Out Head : finType) (p1 p2 r1 r2 : nat)
    (W : nat -> nat -> In -> Out -> F)
    (A : Head -> bare_grid rows columns -> bare_grid rows columns -> F)
    (V : Head -> patch_feature p1 p2 In -> patch_feature p1 p2 Out -> F) q :
  (r1 <= p1 * m)%N -> (r2 <= p2 * n)%N ->
  (forall X t, attention_layer A V (bare_token X) q t =
    convolution (p1 * rows) (p2 * columns) r1 r2 W X
      (p1 * q.1 + t.1.1)%N (p2 * q.2 + t.1.2)%N t.2) ->
  forall X t, attention_layer A V X q t =
    bare_convolution (fun d : token_offset m n => output_block m n r1 r2 W d.1 d.2) X q t.
Proof.
move=> le1 le2 computes X t; have := computes (image_of_tokens X) t.
rewrite -(convolution_of_bare_tokens _ _ _ _ le1 le2) => eX.
transitivity (attention_layer A V (bare_token (image_of_tokens X)) q t).
  apply: eq_bigr => h _; apply: eq_feature_map => // s; apply: eq_bigr => k _.
  by rewrite bare_token_image.
rewrite eX; apply: eq_bigr => d _; apply: eq_feature_map => // s.
by case: (bare_target q d) => // k; rewrite bare_token_image.
Qed.

End BareGrid.
