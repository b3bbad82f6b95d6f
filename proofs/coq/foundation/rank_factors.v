(** A matrix is a product through as many numbers as its rank, or through more. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import rank.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Section Factors.

Variables (F : fieldType) (Row Column : finType).

(** Through any type of at least so many members. *)
Lemma low_rank_factors (Inner : finType) (M : Row -> Column -> F) :
  (family_rank M <= #|Inner|)%N ->
  exists (L : Row -> Inner -> F) (R : Inner -> Column -> F), forall i j, M i j = \sum_h L i h * R h j.
Proof.
rewrite /family_rank; set B := family_matrix M => le.
pose U := col_base B *m (pid_mx (\rank B) : 'M_(_, #|Inner|)).
pose V := (pid_mx (\rank B) : 'M_(#|Inner|, _)) *m row_base B.
have eB : U *m V = B.
  by rewrite /U /V -mulmxA (mulmxA (pid_mx _)) pid_mx_id // pid_mx_1 mul1mx mulmx_base.
exists (fun i h => U (enum_rank i) (enum_rank h)), (fun h j => V (enum_rank h) (enum_rank j)).
move=> i j; have /matrixP/(_ (enum_rank i) (enum_rank j)) := eB.
rewrite [B _ _]mxE !enum_rankK => <-; rewrite mxE -[RHS]sum_enum_val.
by apply: eq_bigr => h _; rewrite enum_valK.
Qed.

(** Rank at most that of the inner type, in other words. *)
Lemma low_rank_iff (Inner : finType) (M : Row -> Column -> F) :
  (family_rank M <= #|Inner|)%N <->
  exists (L : Row -> Inner -> F) (R : Inner -> Column -> F), forall i j, M i j = \sum_h L i h * R h j.
Proof. by split=> [|[L [R eM]]]; [exact: low_rank_factors | exact: family_rank_product eM]. Qed.

Lemma rank_factors (M : Row -> Column -> F) :
  exists (L : Row -> 'I_(family_rank M) -> F) (R : 'I_(family_rank M) -> Column -> F),
    forall i j, M i j = \sum_h L i h * R h j.
Proof. by apply: low_rank_factors; rewrite card_ord. Qed.

End Factors.
