(** The rank of a product of two families, one on each axis, is the product of
    their ranks. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Convattn.foundation Require Import rank rank_factors.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Section FullRank.

Variables (F : fieldType) (Row Column : finType) (M : Row -> Column -> F).

(** A family with an inverse on both sides has at least that rank. *)
Lemma family_rank_inverse (Chosen : finType) (L : Chosen -> Row -> F) (R : Column -> Chosen -> F) :
  (forall a b, \sum_i \sum_j L a i * M i j * R j b = (a == b)%:R) -> (#|Chosen| <= family_rank M)%N.
Proof.
move=> inverse; have one : family_matrix L *m family_matrix M *m family_matrix R = 1%:M.
  rewrite !family_matrix_product; apply/matrixP => a b; rewrite !mxE.
  rewrite -(inj_eq enum_val_inj) -inverse exchange_big; apply: eq_bigr => j _ /=.
  by rewrite big_distrl.
rewrite -{1}[#|Chosen|](mxrank1 F) -one.
apply: (leq_trans (mxrankM_maxl _ _)); exact: mxrankM_maxr.
Qed.

(** Every family has such, of its rank. *)
Lemma rank_inverse :
  exists (L : 'I_(family_rank M) -> Row -> F) (R : Column -> 'I_(family_rank M) -> F),
  forall a b, \sum_i \sum_j L a i * M i j * R j b = (a == b)%:R.
Proof.
set A := family_matrix M.
have [B eB] := row_fullP (col_base_full A); have [C eC] := row_freeP (row_base_free A).
exists (fun a i => B a (enum_rank i)), (fun j b => C (enum_rank j) b) => a b.
have one : B *m A *m C = 1%:M.
  transitivity (B *m (col_base A *m row_base A) *m C); first by rewrite mulmx_base.
  by rewrite mulmxA eB mul1mx eC.
have /matrixP/(_ a b) := one; rewrite !mxE => <-.
rewrite exchange_big -(sum_enum_val (fun j => \sum_i B a (enum_rank i) * M i j * C (enum_rank j) b)) /=.
apply: eq_bigr => j _; rewrite !mxE big_distrl enum_valK /=.
rewrite -(sum_enum_val (fun i => B a (enum_rank i) * M i (enum_val j) * C j b)).
by apply: eq_bigr => i _; rewrite !mxE enum_valK.
Qed.

(** If only zero is a combination of zero, all columns count. *)
Lemma family_rank_columns :
  (forall f : Column -> F, (forall i, \sum_j M i j * f j = 0) -> forall j, f j = 0) ->
  family_rank M = #|Column|.
Proof.
move=> inj; apply/eqP; rewrite /family_rank -mxrank_tr; apply: inj_row_free => v zero.
apply/rowP => j; rewrite mxE -[j]enum_valK; apply: (inj (fun j => v 0 (enum_rank j))) => i.
have /rowP/(_ (enum_rank i)) := zero; rewrite [RHS]mxE => zero_i; rewrite -[RHS]zero_i mxE.
rewrite -sum_enum_val; apply: eq_bigr => j' _.
by rewrite !mxE enum_valK enum_rankK mulrC.
Qed.

Lemma family_rank_transposed : family_rank (fun j i => M i j) = family_rank M.
Proof. by rewrite /family_rank -mxrank_tr; congr (\rank _); apply/matrixP => i j; rewrite !mxE. Qed.

End FullRank.

Lemma family_rank_tensor (F : fieldType) (Row1 Column1 Row2 Column2 : finType)
    (M1 : Row1 -> Column1 -> F) (M2 : Row2 -> Column2 -> F) :
  family_rank (fun (i : Row1 * Row2) (j : Column1 * Column2) => M1 i.1 j.1 * M2 i.2 j.2) =
    (family_rank M1 * family_rank M2)%N.
Proof.
apply/eqP; rewrite eqn_leq -[X in (_ <= X * _)%N]card_ord -[X in (_ <= _ * X)%N]card_ord.
rewrite -[X in (X * _ <= _)%N]card_ord -[X in (_ * X <= _)%N]card_ord -!card_prod.
have [L1 [R1 e1]] := rank_factors M1; have [L2 [R2 e2]] := rank_factors M2.
have [P1 [Q1 o1]] := rank_inverse M1; have [P2 [Q2 o2]] := rank_inverse M2.
apply/andP; split.
  apply: (family_rank_product (L := fun i h => L1 i.1 h.1 * L2 i.2 h.2)
    (R := fun h j => R1 h.1 j.1 * R2 h.2 j.2)) => i j.
  rewrite e1 e2 big_distrl -(pair_bigA _ (fun h h' => L1 i.1 h * L2 i.2 h' * (R1 h j.1 * R2 h' j.2))) /=.
  by apply: eq_bigr => h _; rewrite big_distrr; apply: eq_bigr => h' _; rewrite mulrACA.
apply: (family_rank_inverse (L := fun a i => P1 a.1 i.1 * P2 a.2 i.2)
  (R := fun j b => Q1 j.1 b.1 * Q2 j.2 b.2)) => a b.
rewrite -pair_eqE /pair_eq -mulnb natrM -o1 -o2 big_distrl.
rewrite -(pair_bigA _ (fun i i' => \sum_j P1 a.1 i * P2 a.2 i' * (M1 i j.1 * M2 i' j.2) *
  (Q1 j.1 b.1 * Q2 j.2 b.2))) /=.
apply: eq_bigr => i _; rewrite big_distrr; apply: eq_bigr => i' _ /=.
rewrite big_distrl -(pair_bigA _ (fun j j' => P1 a.1 i * P2 a.2 i' * (M1 i j * M2 i' j') *
  (Q1 j b.1 * Q2 j' b.2))) /=.
apply: eq_bigr => j _; rewrite big_distrr; apply: eq_bigr => j' _ /=.
by ring.
Qed.
