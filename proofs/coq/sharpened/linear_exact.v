(** S.linear: as many state numbers as the Hankel matrix has rank are enough.

    For all taps M_0, …, M_(T-1) there are constant matrices A, B and C with as many state numbers as the rank
    of the Hankel matrix with the blocks M_(i+j) (zero for i + j ≥ T), such that the recurrent layer s_q =
    s_(q-1) A + x_q B, y_q = s_q C is the causal convolution Σ_(j<T) x_(q-j) M_j at every token of every
    sequence of any length. This is Ho and Kalman's realisation (1966): the state is a vector of the row space
    of the Hankel matrix, which holds all that the tokens so far add to this and the later outputs; a step
    shifts it by one block. Over any field; parameters do not depend on the length. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import zify.
From Convattn.foundation Require Import rank recurrence.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Section Realisation.

Variables (F : fieldType) (d e p : nat) (M : nat -> 'M[F]_(d, e)).

Local Notation H := (hankel p.+1 M).
Local Notation Column := [finType of 'I_p.+1 * 'I_e].
Local Notation G := (family_matrix H).
Local Notation base := (row_base G).

(** What a token adds to this output and the later ones, j tokens on. *)
Definition ahead (j : nat) : 'M[F]_(d, #|Column|) :=
  \matrix_(a, c) let: (i, o) := enum_val c : Column in if (j + i <= p)%N then M (j + i)%N a o else 0.

Definition shift_ahead : 'M[F]_#|Column| :=
  \matrix_(c, c') (((enum_val c : Column).1 == (enum_val c' : Column).1.+1 :> nat) &&
                   ((enum_val c : Column).2 == (enum_val c' : Column).2))%:R.

Definition first_block : 'M[F]_(#|Column|, e) := \matrix_(c, o) ((enum_val c : Column) == (ord0, o))%:R.

Lemma ahead_shift j : ahead j *m shift_ahead = ahead j.+1.
Proof.
apply/matrixP => a c'; rewrite !mxE; case ec: (enum_val c') => [l o].
pose f (c : Column) := (let: (i, o) := c in if (j + i <= p)%N then M (j + i)%N a o else 0) *
  ((c.1 == l.+1 :> nat) && (c.2 == o))%:R.
transitivity (\sum_c f c); first by rewrite -[RHS]sum_enum_val; apply: eq_bigr => c _; rewrite !mxE ec.
case: (ltnP l p) => [lt | ge]; last first.
  rewrite ifF; last by apply/negbTE; lia.
  apply: big1 => -[i u] _; rewrite /f /=; case: eqP => [ei|]; last by rewrite mulr0.
  by have := ltn_ord i; rewrite ei; lia.
rewrite (bigD1 (inord l.+1, o)) //= {1}/f /= inordK // !eqxx mulr1 addnS big1 ?addr0 //.
case=> i u ne; rewrite /f /=; case: eqP => [ei|]; last by rewrite mulr0.
case: eqP => [eu|]; last by rewrite mulr0.
by case/negP: ne; rewrite eu -ei inord_val.
Qed.

Lemma ahead_first j : ahead j *m first_block = if (j <= p)%N then M j else 0.
Proof.
apply/matrixP => a o; rewrite !mxE.
pose f (c : Column) := (let: (i, o) := c in if (j + i <= p)%N then M (j + i)%N a o else 0) * (c == (ord0, o))%:R.
transitivity (\sum_c f c); first by rewrite -[RHS]sum_enum_val; apply: eq_bigr => c _; rewrite !mxE.
rewrite (bigD1 (ord0, o)) //= {1}/f /= eqxx mulr1 addn0 big1 ?addr0 => [|c /negbTE ne].
  by case: ifP; rewrite ?mxE.
by rewrite /f ne mulr0.
Qed.

Lemma ahead_within j : (ahead j <= base)%MS.
Proof.
rewrite eq_row_base; apply/row_subP => a; case: (leqP j p) => [le | lt].
  have -> : row a (ahead j) = row (enum_rank (inord j : 'I_p.+1, a)) G.
    by apply/rowP => c; rewrite !mxE enum_rankK /hankel /= inordK //; case: (enum_val c).
  exact: row_sub.
have -> : row a (ahead j) = 0; last exact: sub0mx.
by apply/rowP => c; rewrite !mxE; case: (enum_val c) => i o; rewrite ifF //; apply/negbTE; lia.
Qed.

Lemma base_shift : (base *m shift_ahead <= base)%MS.
Proof.
rewrite (eqmxMr _ (eq_row_base _)) eq_row_base; apply/row_subP => r.
case er: (enum_val r) => [i a]; rewrite row_mul.
have -> : row r G = row a (ahead i) by apply/rowP => c; rewrite !mxE er /hankel /=; case: (enum_val c).
by rewrite -row_mul ahead_shift; apply: submx_trans (row_sub a _) _; rewrite -(eq_row_base G) ahead_within.
Qed.

Definition realised_step := base *m shift_ahead *m pinvmx base.
Definition realised_write := ahead 0 *m pinvmx base.
Definition realised_read := base *m first_block.

(** In coordinates of the base the state is the row itself. *)
Lemma realised_contribution k t : (k < t)%N ->
  contribution (fun=> realised_step) (fun=> realised_write) k t *m base = ahead (t.-1 - k).
Proof.
elim: t => //= t IH; rewrite ltnS leq_eqVlt => /orP [/eqP -> | lt].
  by rewrite eqxx subnn mulmxKpV // ahead_within.
rewrite (ltn_eqF lt) -mulmxA mulmxKpV ?base_shift // mulmxA IH // ahead_shift; congr ahead.
by lia.
Qed.

Lemma realised X q :
  recurrent_layer (fun=> realised_step) (fun=> realised_write) (fun=> realised_read) (fun=> 0) X q =
    matrix_convolution p.+1 M X q.
Proof.
rewrite /recurrent_layer mulmx0 addr0 state_contributions mulmx_suml.
transitivity (\sum_(k < q.+1 | (q - k <= p)%N) X k *m M (q - k)%N).
  rewrite [RHS]big_mkcond; apply: eq_bigr => k _.
  rewrite /realised_read -mulmxA [contribution _ _ _ _ *m _]mulmxA realised_contribution //=.
  by rewrite ahead_first; case: ifP; rewrite ?mulmx0.
rewrite (reindex_inj rev_ord_inj) /= /matrix_convolution.
transitivity (\sum_(k < q.+1 | (k <= p)%N) X (q - k)%N *m M k).
  by apply: eq_big => k; have := ltn_ord k; rewrite ltnS => le; rewrite subSS subKn.
have both (a b : nat) (f : nat -> 'rV[F]_e) : (a <= b)%N ->
    \sum_(k < a | (k < b)%N) f k = \sum_(k < b | (k < a)%N) f k.
  move=> le; by rewrite (big_ord_widen_cond b (fun k => (k < b)%N) f le); apply: eq_bigl => k; rewrite ltn_ord.
pose f k := X (q - k)%N *m M k.
case: (leqP q.+1 p.+1) => [le | /ltnW le]; first exact: (both _ _ f le).
exact: (esym (both _ _ f le)).
Qed.

End Realisation.

Theorem linear_exact (F : fieldType) (d e T : nat) (M : nat -> 'M[F]_(d, e)) :
  let n := family_rank (hankel T M) in
  exists (A : 'M[F]_n) (B : 'M[F]_(d, n)) (C : 'M[F]_(n, e)),
  forall X q, recurrent_layer (fun=> A) (fun=> B) (fun=> C) (fun=> 0) X q = matrix_convolution T M X q.
Proof.
case: T => [|p] n; last first.
  by exists (realised_step p M), (realised_write p M), (realised_read p M) => X q; exact: realised.
exists 0, 0, 0 => X q; rewrite /recurrent_layer !mulmx0 addr0 /matrix_convolution big_ord0 //.
Qed.
