(** Heads that favour each offset by a number of its own, at finite scores, and
    a basis of a flattened kernel's rows to choose these numbers from. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Convattn.foundation Require Import attention image grid bare rank.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory Num.Theory Order.Theory.
Local Open Scope ring_scope.

(** The weights of a head that favours the offset δ by N w_δ. *)
Definition offset_weights (F : fieldType) (rows columns m n : nat) (w : token_offset m n -> F)
    (q : bare_grid rows columns) (k : ringed_grid rows columns m n) : F :=
  1 + #|ringed_grid rows columns m n|%:R * \sum_(d | k == ringed_key q d) w d.

Section Attend.

Variables (F : fieldType) (rows columns m n : nat) (w : token_offset m n -> F).
Variable q : bare_grid rows columns.

(** A sum over the offsets, by their keys. *)
Lemma sum_by_key (g : ringed_grid rows columns m n -> F) :
  \sum_k (\sum_(d | k == ringed_key q d) w d) * g k = \sum_d w d * g (ringed_key q d).
Proof.
under eq_bigr do rewrite big_distrl big_mkcond /=.
rewrite exchange_big; apply: eq_bigr => d _ /=.
by rewrite -big_mkcond (big_pred1 (ringed_key q d)).
Qed.

(** Such a head gives (Σ_δ w_δ X_(q+δ) + mean) / (1 + Σ_δ w_δ). *)
Lemma attend_offsets (In : Type) (X : ringed_grid rows columns m n -> In -> F) i :
  #|ringed_grid rows columns m n|%:R != 0 :> F -> 1 + \sum_d w d != 0 ->
  attend (softmax (offset_weights w q)) X i =
    (\sum_d w d * X (ringed_key q d) i + mean_token X i) / (1 + \sum_d w d).
Proof.
set N : F := #|_|%:R => nzN nzZ; have total : \sum_k offset_weights w q k = N * (1 + \sum_d w d).
  rewrite big_split sum_one -big_distrr mulrDr mulr1; congr (_ + _ * _).
  under [RHS]eq_bigr do rewrite -[w _]mulr1.
  by rewrite -(sum_by_key (fun=> 1)); apply: eq_bigr => k _; rewrite mulr1.
rewrite /attend /softmax total; under eq_bigr do rewrite mulrAC.
rewrite -big_distrl /= -(sum_by_key (fun k => X k i)).
have -> : mean_token X i = (\sum_k X k i) / N by [].
set plain := \sum_k X k i; set favoured := \sum_k _ * X k i.
have -> : \sum_k offset_weights w q k * X k i = plain + N * favoured.
  rewrite big_distrr -big_split; apply: eq_bigr => k _ /=.
  by rewrite mulrDl mul1r -mulrA.
by field; rewrite nzZ nzN.
Qed.

End Attend.

(** With the maps (1 + Σ_δ w_hδ) C_h a layer of them is Σ_δ X_(q+δ) (Σ_h w_hδ C_h) + mean · Σ_h C_h. *)
Lemma offset_layer (F : fieldType) (Head In : finType) (Out : Type) (rows columns m n : nat)
    (w : Head -> token_offset m n -> F) (C : Head -> In -> Out -> F)
    (X : ringed_grid rows columns m n -> In -> F) (q : bare_grid rows columns) t :
  #|ringed_grid rows columns m n|%:R != 0 :> F -> (forall h, 1 + \sum_d w h d != 0) ->
  attention_layer (fun h (q : bare_grid rows columns) => softmax (offset_weights (w h) q))
      (fun h s t => (1 + \sum_d w h d) * C h s t) X q t =
    \sum_d feature_map (fun s t => \sum_h w h d * C h s t) (X (ringed_key q d)) t
      + feature_map (fun s t => \sum_h C h s t) (mean_token X) t.
Proof.
move=> nzN nz; rewrite /feature_map exchange_big -big_split /=.
rewrite /attention_layer /feature_map exchange_big; apply: eq_bigr => s _ /=.
transitivity (\sum_h (\sum_d w h d * X (ringed_key q d) s + mean_token X s) * C h s t).
  by apply: eq_bigr => h _; rewrite attend_offsets // mulrA divfK.
under eq_bigr do rewrite mulrDl; rewrite big_split /= -big_distrr /=; congr (_ + _).
under eq_bigr do rewrite big_distrl /=; rewrite exchange_big; apply: eq_bigr => d _ /=.
by rewrite big_distrr; apply: eq_bigr => h _ /=; rewrite mulrCA mulrA.
Qed.

Section Positive.

Variables (F : numFieldType) (m n : nat) (w : token_offset m n -> F).
Hypothesis ge0 : forall d, 0 <= w d.

(** The weights are positive, so their logarithms are finite scores. *)
Lemma offset_weights_gt0 (rows columns : nat) (q : bare_grid rows columns) k :
  0 < offset_weights w q k.
Proof.
by rewrite /offset_weights ltr_paddr ?ltr01 // mulr_ge0 ?ler0n // sumr_ge0.
Qed.

Lemma offset_total_neq0 : 1 + \sum_d w d != 0.
Proof. by rewrite lt0r_neq0 // ltr_paddr ?ltr01 // sumr_ge0. Qed.

Lemma keys_neq0 (rows columns : nat) (q : bare_grid rows columns) :
  #|ringed_grid rows columns m n|%:R != 0 :> F.
Proof. by rewrite pnatr_eq0 -lt0n; apply/card_gt0P; exists (image_key m n q). Qed.

End Positive.

Section Basis.

Variables (F : realFieldType) (Row Column : finType) (M : Row -> Column -> F).

(** A basis of the row space, and the coordinates of the rows. *)
Definition basis (i : 'I_(family_rank M)) (d : Column) : F :=
  row_base (family_matrix M) i (enum_rank d).
Definition coordinate (i : 'I_(family_rank M)) (st : Row) : F :=
  col_base (family_matrix M) (enum_rank st) i.

Lemma family_in_basis st d : M st d = \sum_i coordinate i st * basis i d.
Proof.
have := mulmx_base (family_matrix M).
by move/matrixP/(_ (enum_rank st) (enum_rank d)); rewrite !mxE !enum_rankK => <-.
Qed.

(** What makes every entry of the basis nonnegative when it is added. *)
Definition lift_amount : F := \sum_i \sum_d `|basis i d|.

Lemma lift_ge0 : 0 <= lift_amount.
Proof. by rewrite sumr_ge0 // => i _; rewrite sumr_ge0. Qed.

Lemma lift_basis i d : 0 <= basis i d + lift_amount.
Proof.
have : `|basis i d| <= lift_amount.
  rewrite /lift_amount (bigD1 i) //= (bigD1 d) //= -addrA ler_addl.
  by rewrite addr_ge0 ?sumr_ge0 // => j _; rewrite sumr_ge0.
move=> le; rewrite -ler_subl_addl sub0r; apply: le_trans le.
by rewrite -normrN ler_norm.
Qed.

End Basis.

Arguments basis {F Row Column} M i d.
Arguments coordinate {F Row Column} M i st.
