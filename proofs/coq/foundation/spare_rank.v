(** What part of a map can be moved elsewhere: if S has rank R and n rows, then B has a part Z of any rank
    s ≤ n - R without which B has rank at most n - s, whatever combination of the columns of S is added. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import zify.
From Convattn.foundation Require Import rank rank_factors.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Section Spare.

Variable F : fieldType.

Lemma spare_part (n k o s : nat) (S : 'M[F]_(n, k)) (B : 'M[F]_(n, o)) :
  (s <= n - \rank S)%N ->
  exists2 Z : 'M[F]_(n, o), (\rank Z <= s)%N &
    forall Y : 'M[F]_(k, o), (\rank (B - Z - S *m Y)%R <= n - s)%N.
Proof.
rewrite -mxrank_ker => le; pose V : 'M[F]_(s, n) := pid_mx s *m row_base (kermx S).
have rank_V : \rank V = s by rewrite mxrankMfree ?row_base_free // rank_pid_mx.
have free : row_free V by rewrite /row_free rank_V.
have below : V *m S = 0.
  apply/sub_kermxP; apply: submx_trans (submxMl _ _) _.
  by rewrite eq_row_base.
have [P keep low] : exists2 P : 'M[F]_n, V *m P = V & (\rank P <= s)%N.
  exists (pinvmx V *m V); first by rewrite mulmxA mulmxKpV ?submx_refl.
  by apply: leq_trans (mxrankM_maxr _ _) _; rewrite rank_V.
exists (P *m B) => [|Y]; first exact: leq_trans (mxrankM_maxl _ _) low.
have sub : (V <= kermx (B - P *m B - S *m Y)%R)%MS.
  by apply/sub_kermxP; rewrite !mulmxBr !mulmxA keep below mul0mx subr0 subrr.
have := mxrankS sub; rewrite rank_V mxrank_ker.
by move: (rank_leq_row (B - P *m B - S *m Y)); move: (\rank _) => r; lia.
Qed.

Variables (In Out Group : finType).

(** For families: the maps of a group side by side, and a map beside them. *)
Lemma spare_family (s : nat) (M : Group -> In -> Out -> F) (B : In -> Out -> F) :
  (s <= #|In| - family_rank (fun i (go : Group * Out) => M go.1 i go.2))%N ->
  exists2 Z : In -> Out -> F, (family_rank Z <= s)%N &
    forall c : F, (family_rank (fun i o => (B i o - Z i o - c * \sum_g M g i o)%R) <= #|In| - s)%N.
Proof.
move=> le; have [Z low rest] := spare_part (family_matrix B) le.
exists (fun i o => Z (enum_rank i) (enum_rank o)) => [|c].
  rewrite /family_rank (_ : family_matrix _ = Z) //.
  by apply/matrixP => i o; rewrite !mxE !enum_valK.
have := rest (family_matrix (fun (go : Group * Out) o => c * (go.2 == o)%:R)).
rewrite family_matrix_product /family_rank; apply: leq_trans; apply: eq_leq; congr (\rank _).
apply/matrixP => i o; rewrite !mxE !enum_valK; congr (_ - _).
rewrite -(pair_bigA _ (fun g o' => M g (enum_val i) o' * (c * (o' == enum_val o)%:R))) big_distrr.
apply: eq_bigr => g _ /=; rewrite (bigD1 (enum_val o)) //= eqxx mulr1 big1 ?addr0 ?[c * _]mulrC //.
by move=> o' /negbTE ->; rewrite !mulr0.
Qed.

End Spare.
