(** S.linear: linear attention by position needs more features as sequences grow.

    Causal heads of linear attention with r features of positions and w value columns make y_q = Σ_h Σ_(k ≤ q)
    (φ_h(q)·ψ_h(k)) x_k V_h U_h. Let them be, on N ≥ 2T - 1 tokens and for all of their values, the causal
    convolution y_q = Σ_(j<T) x_(q-j) M_j, in which missing tokens are zero. Then H r w is at least
    (N - T + 1) ρ, with ρ the rank of the last tap, and at least the rank of the Hankel matrix with the blocks
    M_(i+j). Features are any numbers of any field, so that a normaliser that depends on the head and the query
    alone is a part of φ, and decay by nonzero factors of positions is a part of both. Not covered: features
    that depend on the tokens, and heads that forget exactly (linear). *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import rank recurrence.
From Convattn.sharpened Require Import linear.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

(** Unnormalised causal linear attention whose features are those of positions. *)
Definition linear_heads (F : fieldType) (Head : finType) (d e r w : nat)
    (phi psi : Head -> nat -> 'I_r -> F) (V : Head -> 'M[F]_(d, w)) (U : Head -> 'M[F]_(w, e))
    (X : nat -> 'rV[F]_d) (q : nat) : 'rV[F]_e :=
  \sum_h \sum_(k < q.+1) (\sum_a phi h q a * psi h k a) *: (X k *m V h *m U h).

Section Heads.

Variables (F : fieldType) (Head : finType) (d e r w : nat).
Variables (phi psi : Head -> nat -> 'I_r -> F) (V : Head -> 'M[F]_(d, w)) (U : Head -> 'M[F]_(w, e)).

Local Notation State := [finType of Head * 'I_r * 'I_w].

(** The sums of ψ(k) x_k V are the state: it is added to, and nothing is lost. *)
Definition head_write (k : nat) : 'M[F]_(d, #|State|) :=
  \matrix_(i, s) let: (h, a, c) := enum_val s : State in psi h k a * V h i c.

Definition head_read (q : nat) : 'M[F]_(#|State|, e) :=
  \matrix_(s, o) let: (h, a, c) := enum_val s : State in phi h q a * U h c o.

Lemma head_contribution k t : (k < t)%N -> contribution (fun=> 1%:M) head_write k t = head_write k.
Proof.
elim: t => //= t IH; rewrite ltnS leq_eqVlt => /orP [/eqP -> | lt]; first by rewrite eqxx.
by rewrite (ltn_eqF lt) mulmx1 IH.
Qed.

Lemma head_write_read k q : head_write k *m head_read q = \sum_h (\sum_a phi h q a * psi h k a) *: (V h *m U h).
Proof.
apply/matrixP => i o; rewrite !mxE summxE.
pose f (s : State) := let: (h, a, c) := s in psi h k a * V h i c * (phi h q a * U h c o).
transitivity (\sum_s f s).
  by rewrite -[RHS]sum_enum_val; apply: eq_bigr => s _; rewrite !mxE /f; case: (enum_val s) => [[h a] c].
transitivity (\sum_h \sum_a \sum_c f (h, a, c)).
  by rewrite !pair_bigA; apply: eq_bigr => -[[h a] c].
apply: eq_bigr => h _; rewrite mxE big_distrl /=; apply: eq_bigr => a _.
by rewrite mxE big_distrr /=; apply: eq_bigr => c _; rewrite /f mulrACA [psi _ _ _ * _]mulrC.
Qed.

Lemma heads_recurrent X q :
  linear_heads phi psi V U X q = recurrent_layer (fun=> 1%:M) head_write head_read (fun=> 0) X q.
Proof.
rewrite /recurrent_layer mulmx0 addr0 state_contributions mulmx_suml /linear_heads exchange_big.
apply: eq_bigr => k _; rewrite (head_contribution (ltn_ord k)) -mulmxA head_write_read mulmx_sumr.
by apply: eq_bigr => h _; rewrite -scalemxAr mulmxA.
Qed.

End Heads.

Theorem linear_attention (F : fieldType) (Head : finType) (d e r w T N : nat)
    (phi psi : Head -> nat -> 'I_r -> F) (V : Head -> 'M[F]_(d, w)) (U : Head -> 'M[F]_(w, e))
    (M : nat -> 'M[F]_(d, e)) :
  (0 < T)%N -> (T.*2 <= N.+1)%N ->
  (forall X q, (q < N)%N -> linear_heads phi psi V U X q = matrix_convolution T M X q) ->
  (family_rank (hankel T M) <= #|Head| * r * w)%N /\ ((N - T).+1 * \rank (M T.-1) <= #|Head| * r * w)%N.
Proof.
move=> posT le equal; have number : #|[finType of Head * 'I_r * 'I_w]| = (#|Head| * r * w)%N.
  by rewrite !card_prod !card_ord.
have := @linear F d e _ T N (fun=> 1%:M) (head_write psi V) (head_read phi U) (fun=> 0) M posT le.
case=> [X q lt | bound lost]; first by rewrite -heads_recurrent equal.
rewrite -number; split; first by have [] := bound (fun=> erefl).
apply: leq_trans (lost (or_intror (fun=> erefl))) _.
by rewrite big1 ?addn0 // => q _; rewrite mxrank1 subnn.
Qed.
