(** The rank of a family of numbers indexed by two finite types. *)

From mathcomp Require Import all_ssreflect all_algebra.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Section Rank.

Variable F : fieldType.

(** The family as a matrix, rows and columns in the order of their types. *)
Definition family_matrix (Row Column : finType) (M : Row -> Column -> F) :
    'M[F]_(#|Row|, #|Column|) :=
  \matrix_(i, j) M (enum_val i) (enum_val j).

Definition family_rank (Row Column : finType) (M : Row -> Column -> F) : nat :=
  \rank (family_matrix M).

Lemma sum_enum_val (T : finType) (f : T -> F) : \sum_(i < #|T|) f (enum_val i) = \sum_t f t.
Proof.
rewrite [RHS](reindex_onto enum_val enum_rank) /= => [|t _]; last exact: enum_rankK.
by apply: eq_bigl => i; rewrite enum_valK eqxx.
Qed.

(** Product of families. *)
Lemma family_matrix_product (Row Inner Column : finType)
    (L : Row -> Inner -> F) (R : Inner -> Column -> F) :
  family_matrix L *m family_matrix R = family_matrix (fun i j => \sum_h L i h * R h j).
Proof.
apply/matrixP => i j; rewrite !mxE -[RHS]sum_enum_val.
by apply: eq_bigr => h _; rewrite !mxE.
Qed.

Lemma eq_family_matrix (Row Column : finType) (M M' : Row -> Column -> F) :
  (forall i j, M i j = M' i j) -> family_matrix M = family_matrix M'.
Proof. by move=> eM; apply/matrixP => i j; rewrite !mxE. Qed.

(** A sum of so many products has at most that rank. *)
Lemma family_rank_product (Row Inner Column : finType) (M : Row -> Column -> F)
    (L : Row -> Inner -> F) (R : Inner -> Column -> F) :
  (forall i j, M i j = \sum_h L i h * R h j) -> (family_rank M <= #|Inner|)%N.
Proof.
move=> eM; rewrite /family_rank (eq_family_matrix eM) -family_matrix_product.
exact: mulmx_max_rank.
Qed.

(** Columns that have a left inverse are independent. *)
Lemma family_rank_left_inverse (Row Column Chosen : finType) (M : Row -> Column -> F)
    (L : Chosen -> Row -> F) (choose : Chosen -> Column) :
  (forall a b, \sum_i L a i * M i (choose b) = (a == b)%:R) ->
  (#|Chosen| <= family_rank M)%N.
Proof.
move=> inverse; pose R j b : F := (j == choose b)%:R.
have eMR i b : \sum_j M i j * R j b = M i (choose b).
  rewrite (bigD1 (choose b)) //= /R eqxx mulr1 big1 ?addr0 // => j /negbTE ->.
  by rewrite mulr0.
have one : family_matrix L *m family_matrix M *m family_matrix R = 1%:M.
  rewrite -mulmxA !family_matrix_product; apply/matrixP => a b; rewrite !mxE.
  under eq_bigr do rewrite eMR.
  by rewrite inverse (inj_eq enum_val_inj).
rewrite -{1}[#|Chosen|](mxrank1 F) -one.
apply: (leq_trans (mxrankM_maxl _ _)); exact: mxrankM_maxr.
Qed.

End Rank.
