(** S.linear: how large the state of a linear recurrence must be, and how much it must forget.

    A recurrent layer with n state numbers has s_q = s_(q-1) A_q + x_q B_q and y_q = s_q C_q + x_q D_q, with
    matrices that depend on the position q alone and s_(-1) = 0. Let it be, on N ≥ 2T - 1 tokens and for all
    of their values, the causal convolution y_q = Σ_(j<T) x_(q-j) M_j, in which missing tokens are zero. Write
    ρ for the rank of the last tap, M_(T-1). (1) If D = 0, then n is at least the rank of the Hankel matrix
    with the blocks M_(i+j), 0 ≤ i, j < T (zero for i + j ≥ T), which is at least T ρ. (2) If D = 0 or T ≥ 2,
    then n and the dimensions that A_T, …, A_(N-T) lose, n - rank A_q each, add up to (N - T + 1) ρ at least.
    So n ≥ T ρ at N = 2T - 1, and n ≥ (N - T + 1) ρ if all these A_q are invertible.

    Tokens are rows of numbers of any field. Not covered: that as many state numbers are enough
    (linear_exact), layers of heads (linear_attention), and parameters that depend on the tokens. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import zify.
From Convattn.foundation Require Import rank recurrence.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Section Space.

Variable F : fieldType.

(** A map that kills one space, and of another keeps a rank. *)
Lemma killed_and_kept (m d n o : nat) (V : 'M[F]_(m, n)) (K : 'M[F]_(d, n)) (C : 'M[F]_(n, o)) :
  V *m C = 0 -> (\rank V + \rank (K *m C) <= \rank (V + K)%MS)%N.
Proof.
move=> zero; rewrite -(mxrank_mul_ker (V + K)%MS C) addnC leq_add //.
  by rewrite mxrankS // submxMr // addsmxSr.
by rewrite mxrankS // sub_capmx addsmxSl; apply/sub_kermxP.
Qed.

End Space.

Section Bounds.

Variables (F : fieldType) (d e n T N : nat).
Variables (A : nat -> 'M[F]_n) (B : nat -> 'M[F]_(d, n)) (C : nat -> 'M[F]_(n, e)) (D M : nat -> 'M[F]_(d, e)).
Hypothesis equal : forall X q, (q < N)%N -> recurrent_layer A B C D X q = matrix_convolution T M X q.

(** From a token to a later output. *)
Lemma recurrent_entry k q : (k <= q < N)%N ->
  contribution A B k q.+1 *m C q + (if k == q then D q else 0) = if (q - k < T)%N then M (q - k) else 0.
Proof.
case/andP => le lt; apply/row_matrixP => a; rewrite !rowE.
pose X i : 'rV[F]_d := if i == k then delta_mx 0 a else 0.
have := equal X lt; rewrite /recurrent_layer state_contributions.
have -> : \sum_(i < q.+1) X i *m contribution A B i q.+1 = delta_mx 0 a *m contribution A B k q.+1.
  rewrite (bigD1 (inord k : 'I_q.+1)) //= inordK ?ltnS // {1}/X eqxx big1 ?addr0 // => i ne.
  rewrite /X; case: eqP => [ei|]; last by rewrite mul0mx.
  by case/eqP: ne; apply: val_inj; rewrite /= inordK ?ltnS.
have -> : X q *m D q = delta_mx 0 a *m (if k == q then D q else 0).
  by rewrite /X eq_sym; case: eqP; rewrite ?mul0mx ?mulmx0.
rewrite -mulmxA -mulmxDr => ->; rewrite /matrix_convolution.
case: ifP => [ltT | /negbT geT]; last first.
  rewrite mulmx0 big1 // => j lej; rewrite /X; case: eqP => [ei|]; last by rewrite mul0mx.
  by move: (ltn_ord j); lia.
rewrite (bigD1 (Ordinal ltT)) /= ?leq_subr // {1}/X subKn // eqxx big1 ?addr0 // => j.
case/andP => lej /eqP ne; rewrite /X; case: eqP => [ei|]; last by rewrite mul0mx.
by case: ne; apply: val_inj => /=; lia.
Qed.

Lemma hankel_bound : (forall q, D q = 0) -> (0 < T)%N -> (T.*2 <= N.+1)%N ->
  (family_rank (hankel T M) <= n)%N.
Proof.
move=> none posT le; rewrite -(card_ord n).
apply: (family_rank_product (L := fun (ia : 'I_T * 'I_d) s => contribution A B (T.-1 - ia.1) T ia.2 s)
  (R := fun s (jo : 'I_T * 'I_e) => (evolution A T jo.1 *m C (T + jo.1).-1) s jo.2)).
case=> i a [j o] /=; have [lti ltj] := (ltn_ord i, ltn_ord j).
transitivity ((contribution A B (T.-1 - i) T *m (evolution A T j *m C (T + j).-1)) a o); last by rewrite mxE.
rewrite mulmxA -contribution_later; last by lia.
have e1 : (T + j = (T + j).-1.+1)%N by lia.
have lek : (T.-1 - i <= (T + j).-1 < N)%N by lia.
rewrite {1}e1; have := recurrent_entry lek; rewrite none if_same addr0 => ->.
have -> : ((T + j).-1 - (T.-1 - i) = i + j)%N by lia.
by rewrite /hankel /=; case: ifP; rewrite ?mxE.
Qed.

Hypothesis last : (1 < T)%N \/ forall q, D q = 0.

(** A token at distance T - 1 from a later output, and one further away. *)
Lemma later_entry k t q : (0 < T)%N -> (k < t)%N -> (t <= q.+1)%N -> (k + T <= q.+1)%N -> (q < N)%N ->
  contribution A B k t *m (evolution A t (q.+1 - t) *m C q) = if (q == k + T.-1)%N then M T.-1 else 0.
Proof.
move=> posT lt le far ltq; rewrite mulmxA -contribution_later // subnKC //.
have lekq : (k <= q < N)%N by rewrite ltq andbT; lia.
have := recurrent_entry lekq; case: (k =P q) => [ekq | _]; last first.
  rewrite addr0 => ->; case: (q =P (k + T.-1)%N) => [eq | ne].
    by have -> : (q - k = T.-1)%N by [lia]; rewrite ifT //; lia.
  by rewrite ifF //; apply/negP => lt'; lia.
have T1 : T = 1%N by lia.
case: last => [|->]; first by rewrite T1.
by rewrite addr0 => ->; rewrite -ekq subnn T1 addn0 eqxx.
Qed.

(** The space of what the first j tokens have added to the state after t. *)
Definition past (j t : nat) : 'M[F]_n := (\sum_(k < j) <<contribution A B k t>>)%MS.

Lemma past_killed j t q : (0 < T)%N -> (j <= t <= q.+1)%N -> (j + T <= q.+1)%N -> (q < N)%N ->
  past j t *m (evolution A t (q.+1 - t) *m C q) = 0.
Proof.
move=> posT /andP [lejt let'] far lt; apply/sub_kermxP/sumsmx_subP => k _; rewrite genmxE.
apply/sub_kermxP; have ltk := ltn_ord k; rewrite later_entry //; try lia.
by rewrite ifF //; apply/eqP; lia.
Qed.

(** One token more, where an output is to tell it from all that came before. *)
Lemma past_next j t : (0 < T)%N -> (j < t <= j + T)%N -> (j + T <= N)%N ->
  (\rank (past j t) + \rank (M T.-1) <= \rank (past j.+1 t))%N.
Proof.
move=> posT /andP [lt le] leN; have [lt' let'] : (j + T.-1 < N)%N /\ (t <= (j + T.-1).+1)%N by lia.
pose C' := evolution A t ((j + T.-1).+1 - t) *m C (j + T.-1)%N.
have -> : \rank (M T.-1) = \rank (contribution A B j t *m C').
  by rewrite later_entry ?eqxx //; lia.
apply: leq_trans (killed_and_kept _ _) _; first by rewrite past_killed //; lia.
by rewrite mxrankS // /past big_ord_recr /= addsmxS // genmxE.
Qed.

(** A step loses what the matrix does. *)
Lemma past_step j t : (j <= t)%N -> (\rank (past j t) <= \rank (past j t.+1) + (n - \rank (A t)))%N.
Proof.
move=> le; have : (past j t *m A t <= past j t.+1)%MS.
  rewrite /past sumsmxMr; apply/sumsmx_subP => k _; apply: (sumsmx_sup k) => //=.
  rewrite !genmxE (eqmxMr _ (genmxE _)) (ltn_eqF (leq_trans (ltn_ord k) le)); exact: submx_refl.
move/mxrankS; have := mxrank_mul_min (past j t) (A t); lia.
Qed.

Lemma past_rank j : (0 < T)%N -> (j + T <= N)%N ->
  (j * \rank (M T.-1) <= \rank (past j (j + T)) + \sum_(T <= q < j + T) (n - \rank (A q)))%N.
Proof.
move=> posT; elim: j => [|j IH] le; first by rewrite mul0n.
rewrite addSn big_nat_recr /=; last by lia.
have := IH (ltnW le); have := @past_next j (j + T) posT; have := @past_step j.+1 (j + T).
have -> : (j < j + T)%N by lia.
rewrite leqnn (ltnW le) => /(_ isT) step /(_ isT isT) next; rewrite mulSn; lia.
Qed.

Lemma past_all J i : (0 < T)%N -> (i <= T)%N -> (J + i + T <= N.+1)%N ->
  (\rank (past J (J + T)) + i * \rank (M T.-1) <= \rank (past (J + i) (J + T)))%N.
Proof.
move=> posT; elim: i => [|i IH] lei le; first by rewrite mul0n !addn0.
have := IH (ltnW lei); have := @past_next (J + i) (J + T) posT; rewrite addnS mulSn.
have -> : (J + i < J + T <= J + i + T)%N by lia.
have -> : (J + i + T <= N)%N by lia.
have le' : (J + i + T <= N.+1)%N by lia.
by move=> /(_ isT isT) next /(_ le'); lia.
Qed.

Lemma forgetting : (0 < T)%N -> (T.*2 <= N.+1)%N ->
  ((N - T).+1 * \rank (M T.-1) <= n + \sum_(T <= q < (N - T).+1) (n - \rank (A q)))%N.
Proof.
move=> posT le; have [J eJ] : exists J, (N - T).+1 = (J + T)%N by exists (N.+1 - T.*2)%N; lia.
have [le1 le2] : (J + T <= N)%N /\ (J + T + T <= N.+1)%N by lia.
have := past_rank posT le1; have := past_all posT (leqnn T) le2.
have := rank_leq_col (past (J + T) (J + T)); rewrite eJ mulnDl; lia.
Qed.

End Bounds.

(** Block rows of the Hankel matrix from the last on: each has a last tap in a column block where
    those before are zero. *)
Section Hankel.

Variables (F : fieldType) (d e p : nat) (M : nat -> 'M[F]_(d, e)).

Local Notation H := (hankel p.+1 M).
Local Notation Column := [finType of 'I_p.+1 * 'I_e].

Definition hankel_row (k : nat) : 'M[F]_(d, #|Column|) :=
  \matrix_(a, c) H (inord (p - k), a) (enum_val c).

Definition column_block (j : nat) : 'M[F]_(#|Column|, e) :=
  \matrix_(c, o) (enum_val c == (inord j, o))%:R.

Lemma hankel_entry k j : (k <= p)%N -> (j <= p)%N ->
  hankel_row k *m column_block j = if (j <= k)%N then M (p - k + j)%N else 0.
Proof.
move=> lek lej; apply/matrixP => a o; rewrite !mxE.
transitivity (H (inord (p - k), a) (inord j, o)).
  transitivity (\sum_c H (inord (p - k), a) c * (c == (inord j, o))%:R).
    by rewrite -[RHS]sum_enum_val; apply: eq_bigr => c _; rewrite !mxE.
  by rewrite (bigD1 (inord j, o)) //= eqxx mulr1 big1 ?addr0 // => c /negbTE ->; rewrite mulr0.
rewrite /hankel /= !inordK ?ltnS ?leq_subr //.
have -> : (p - k + j <= p)%N = (j <= k)%N by lia.
by case: ifP => _; rewrite ?mxE.
Qed.

Lemma hankel_row_within k : (hankel_row k <= family_matrix H)%MS.
Proof.
apply/row_subP => a; have -> : row a (hankel_row k) = row (enum_rank (inord (p - k) : 'I_p.+1, a)) (family_matrix H).
  by apply/rowP => c; rewrite !mxE enum_rankK.
exact: row_sub.
Qed.

Lemma hankel_rank : (p.+1 * \rank (M p) <= family_rank H)%N.
Proof.
suff rows m : (m <= p.+1)%N -> (m * \rank (M p) <= \rank (\sum_(k < m) <<hankel_row k>>)%MS)%N.
  apply: leq_trans (rows _ (leqnn _)) _; rewrite mxrankS //; apply/sumsmx_subP => k _.
  by rewrite genmxE hankel_row_within.
elim: m => [|m IH] lt; first by rewrite mul0n.
rewrite mulSn addnC; apply: leq_trans (leq_add (IH (ltnW lt)) (leqnn _)) _.
have -> : M p = hankel_row m *m column_block m by rewrite hankel_entry // leqnn subnK.
apply: leq_trans (killed_and_kept _ _) _; last first.
  by rewrite mxrankS // big_ord_recr /= addsmxS // genmxE.
apply/sub_kermxP/sumsmx_subP => k _; rewrite genmxE; apply/sub_kermxP.
have ltk := ltn_ord k; rewrite hankel_entry //; last by lia.
by rewrite leqNgt ltk.
Qed.

End Hankel.

Theorem linear (F : fieldType) (d e n T N : nat) (A : nat -> 'M[F]_n) (B : nat -> 'M[F]_(d, n))
    (C : nat -> 'M[F]_(n, e)) (D M : nat -> 'M[F]_(d, e)) :
  (0 < T)%N -> (T.*2 <= N.+1)%N ->
  (forall X q, (q < N)%N -> recurrent_layer A B C D X q = matrix_convolution T M X q) ->
  ((forall q, D q = 0) ->
    (T * \rank (M T.-1) <= family_rank (hankel T M))%N /\ (family_rank (hankel T M) <= n)%N) /\
  ((1 < T)%N \/ (forall q, D q = 0) ->
    ((N - T).+1 * \rank (M T.-1) <= n + \sum_(T <= q < (N - T).+1) (n - \rank (A q)))%N).
Proof.
move=> posT le equal; split=> [none | last]; last exact: forgetting equal last posT le.
split; last exact: hankel_bound equal none posT le.
by case: (T) posT => // p _; exact: hankel_rank.
Qed.
