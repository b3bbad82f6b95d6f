(** Linear recurrences over tokens, and the causal convolution: with parameters that depend on the
    position alone, what each token adds to the state, and what the state makes of it later. *)

From mathcomp Require Import all_ssreflect all_algebra.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Section Recurrence.

Variables (F : fieldType) (d e n : nat).
Variables (A : nat -> 'M[F]_n) (B : nat -> 'M[F]_(d, n)) (C : nat -> 'M[F]_(n, e)) (D : nat -> 'M[F]_(d, e)).
Implicit Types (X : nat -> 'rV[F]_d).

(** The state after the first t tokens: s_q = s_(q-1) A_q + x_q B_q from zero. *)
Fixpoint state X (t : nat) : 'rV[F]_n :=
  if t is q.+1 then state X q *m A q + X q *m B q else 0.

(** y_q = s_q C_q + x_q D_q. *)
Definition recurrent_layer X (q : nat) : 'rV[F]_e := state X q.+1 *m C q + X q *m D q.

(** What token k adds to the state after t tokens, as a map of the token. *)
Fixpoint contribution (k t : nat) : 'M[F]_(d, n) :=
  if t is q.+1 then if k == q then B q else contribution k q *m A q else 0.

Lemma contribution_future k t : (t <= k)%N -> contribution k t = 0.
Proof.
elim: t => //= t IH lt; rewrite IH ?mul0mx 1?ltnW //.
by case: eqP lt => // ->; rewrite ltnn.
Qed.

Lemma state_contributions X t : state X t = \sum_(k < t) X k *m contribution k t.
Proof.
elim: t => [|t IH]; first by rewrite big_ord0.
rewrite big_ord_recr /= eqxx IH mulmx_suml; congr (_ + _); apply: eq_bigr => k _.
by rewrite (ltn_eqF (ltn_ord k)) mulmxA.
Qed.

(** What j further steps make of the state after t tokens. *)
Fixpoint evolution (t j : nat) : 'M[F]_n :=
  if j is i.+1 then evolution t i *m A (t + i) else 1%:M.

Lemma contribution_later k t j : (k < t)%N ->
  contribution k (t + j) = contribution k t *m evolution t j.
Proof.
move=> lt; elim: j => [|j IH]; first by rewrite addn0 mulmx1.
rewrite addnS /= IH mulmxA ifF //; apply/negbTE; rewrite neq_ltn.
by rewrite (leq_trans lt) // leq_addr.
Qed.

End Recurrence.

(** y_q = Σ_(j<T) x_(q-j) M_j, where missing tokens are zero. *)
Definition matrix_convolution (F : fieldType) (d e T : nat) (M : nat -> 'M[F]_(d, e))
    (X : nat -> 'rV[F]_d) (q : nat) : 'rV[F]_e :=
  \sum_(j < T | (j <= q)%N) X (q - j)%N *m M j.

(** The Hankel matrix of the taps: the block (i, j) is M_(i+j), or zero from T on. *)
Definition hankel (F : fieldType) (d e T : nat) (M : nat -> 'M[F]_(d, e))
    (ia : 'I_T * 'I_d) (jo : 'I_T * 'I_e) : F :=
  if (ia.1 + jo.1 < T)%N then M (ia.1 + jo.1)%N ia.2 jo.2 else 0.

Arguments hankel {F d e} T M ia jo.
