(** A19.equivariance (as amended): on a bare grid, commuting with the shifts leaves multiples of I.

    On a finite bare grid, of any number of axes and nodes, let Φ_mn be the action of the node m on the
    node n, a tensor of any shape T (its channels). It commutes with the truncated shifts by one node,
    ΦA_d = A_dΦ for d = e and d = -e on each axis, iff it is a multiple of the identity: Φ_mn = 0 for
    m ≠ n, and Φ_mm = c for all m. So commuting with translations is stronger here than depending on
    n - m alone (equivariance.v), wherever two nodes differ. Over every field.

    The sums are matrix products: in (ΦA_d)_mn one goes from m to any l, and from l to n. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import zify.
From Convattn.foundation Require Import structure shifts.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Section Commutant.

Variables (F : fieldType) (Axis : finType) (S : Axis -> nat) (T : Type).
Implicit Types (m n : node S) (Phi : node S -> node S -> T -> F).

Definition commutes_with_steps Phi : Prop :=
  forall i, commutes_with Phi (shift_matrix F (unit_shift i)) /\
            commutes_with Phi (shift_matrix F (- unit_shift i)).

(** So does the transposed matrix. *)
Lemma transposed_commutes Phi :
  commutes_with_steps Phi -> commutes_with_steps (fun m n => Phi n m).
Proof.
have turn d : commutes_with Phi (shift_matrix F (- d)) ->
    commutes_with (fun m n => Phi n m) (@shift_matrix F _ S d).
  move=> com m n t; have := com n m t.
  under eq_bigr do rewrite shift_matrix_opp mulrC.
  under [in RHS]eq_bigr do rewrite shift_matrix_opp mulrC.
  by move=> ->.
by move=> com i; have [up down] := com i; split; apply: turn; rewrite ?opprK.
Qed.

(** Nothing goes up an axis: go down it to the border, from which no step leads further. *)
Lemma nothing_up Phi i m n t :
  commutes_with_steps Phi -> (m i < n i)%N -> Phi m n t = 0.
Proof.
move=> com; have [_ down] := com i; move: {2}(val (m i)) (leqnn (m i)) => k.
elim: k m n => [|k IH] m n lek lt; have lt0 : (0 < n i)%N by lia.
  have := down m (moved n i (n i).-1) t.
  rewrite (sum_before _ (_ : difference n _ = _)); last exact: difference_down.
  move=> ->; rewrite sum_after0 // => l; apply/eqP => /ffunP/(_ i).
  by rewrite !ffunE eqxx; lia.
have := down m (moved n i (n i).-1) t.
rewrite (sum_before _ (difference_down lt0)) => ->.
have [m0 | lt0m] := posnP (m i).
  rewrite sum_after0 // => l; apply/eqP => /ffunP/(_ i).
  by rewrite !ffunE eqxx m0; lia.
have ltm := ltn_ord (m i); have ltn := ltn_ord (n i).
by rewrite (sum_after _ (difference_down lt0m)) IH // !moved_place ?eqxx; lia.
Qed.

Lemma off_diagonal Phi m n t : commutes_with_steps Phi -> m != n -> Phi m n t = 0.
Proof.
move=> com nmn; have [i ni] : exists i, m i != n i :> nat.
  apply/existsP; apply: contraR nmn => /existsPn e.
  by apply/eqP/eq_node => i; apply/eqP; rewrite -[_ == _]negbK e.
have [lt|lt|e] := ltngtP (m i) (n i); [exact: (nothing_up _ com lt) | | by rewrite e eqxx in ni].
exact: (nothing_up (Phi := fun m n => Phi n m) _ (transposed_commutes com) lt).
Qed.

(** Along the diagonal nothing changes from a node to the one before. *)
Lemma diagonal_step Phi i m t : commutes_with_steps Phi -> (0 < m i)%N ->
  Phi m m t = Phi (moved m i (m i).-1) (moved m i (m i).-1) t.
Proof.
move=> com lt0; have [_ down] := com i; have := down m (moved m i (m i).-1) t.
by rewrite (sum_before _ (difference_down lt0)) (sum_after _ (difference_down lt0)).
Qed.

(** So it is the same at all nodes, as steps lead from each to the first. *)
Lemma diagonal_constant Phi m n t : commutes_with_steps Phi -> Phi m m t = Phi n n t.
Proof.
move=> com; move: {2}(\sum_i (m i + n i))%N (leqnn (\sum_i (m i + n i))%N) => k.
have lower m' i : (0 < m' i)%N -> forall j, (moved m' i (m' i).-1 j <= m' j)%N.
  by have := ltn_ord (m' i) => ? ? j; rewrite moved_place; [case: eqP => [->|]; lia | lia].
have sum_lower (f g : Axis -> nat) i : (forall j, f j <= g j)%N -> (f i < g i)%N ->
    (\sum_j f j < \sum_j g j)%N.
  move=> le lt; rewrite (bigD1 i) //= [X in (_ < X)%N](bigD1 i) //= -addSn.
  by apply: leq_add => //; apply: leq_sum => j _.
elim: k m n => [|k IH] m n le.
  suff -> : m = n by [].
  apply: eq_node => i; move: le; rewrite (bigD1 i) //=; lia.
have [/existsP[i lt0] | /existsPn m0] := boolP [exists i, 0 < m i]%N.
  rewrite (diagonal_step _ com lt0); apply: IH; rewrite -ltnS; apply: leq_trans le.
  apply: (sum_lower _ _ i) => [j|]; first by rewrite leq_add2r lower.
  by rewrite ltn_add2r moved_place ?eqxx; have := ltn_ord (m i); lia.
have [/existsP[i lt0] | /existsPn n0] := boolP [exists i, 0 < n i]%N.
  rewrite [RHS](diagonal_step _ com lt0); apply: IH; rewrite -ltnS; apply: leq_trans le.
  apply: (sum_lower _ _ i) => [j|]; first by rewrite leq_add2l lower.
  by rewrite ltn_add2l moved_place ?eqxx; have := ltn_ord (n i); lia.
suff -> : m = n by [].
by apply: eq_node => i; have := m0 i; have := n0 i; lia.
Qed.

(** Multiples of the identity commute with everything. *)
Lemma scalar_commutes Phi (c : T -> F) A :
  (forall m n t, Phi m n t = if m == n then c t else 0) -> commutes_with Phi A.
Proof.
move=> ePhi m n t; rewrite (bigD1 m) //= [RHS](bigD1 n) //= !ePhi !eqxx.
rewrite big1 => [|l /negbTE nl]; last by rewrite ePhi eq_sym nl mul0r.
rewrite big1 => [|l /negbTE nl]; last by rewrite ePhi nl mulr0.
by rewrite !addr0 mulrC.
Qed.

End Commutant.

Theorem equivariance_bare (F : fieldType) (Axis : finType) (S : Axis -> nat) (T : Type)
    (Phi : node S -> node S -> T -> F) :
  (forall i, commutes_with Phi (shift_matrix F (unit_shift i)) /\
             commutes_with Phi (shift_matrix F (- unit_shift i))) <->
  exists c : T -> F, forall m n t, Phi m n t = if m == n then c t else 0.
Proof.
split=> [com | [c ePhi] i]; last by split; apply: scalar_commutes ePhi.
exists (fun t => if [pick m : node S] is Some m then Phi m m t else 0) => m n t.
case: eqP => [<-|/eqP nmn]; last exact: off_diagonal.
by case: pickP => [m' _ | /(_ m) //]; exact: diagonal_constant.
Qed.
