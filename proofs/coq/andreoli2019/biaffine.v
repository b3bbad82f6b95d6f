(** A19.biaffine: eq. 8 in its two forms, and in a third.

    Bi-affine attention x′Λy′ᵀ + (x′μ) ⊗ 1_N + 1_M ⊗ (y′ν) + ξ 1_M ⊗ 1_N, with x′ of shape ⟨M, P′⟩ and y′
    of shape ⟨N, Q′⟩, has the entries Σ_pq Λ_pq x′_mp y′_nq + Σ_p μ_p x′_mp + Σ_q ν_q y′_nq + ξ. It is
    (x′, 1) Ξ (y′, 1)ᵀ with Ξ = [[Λ, μ], [νᵀ, ξ]], so its rank is at most min(P′, Q′) + 1 whatever M and
    N; and Ξ is determined by it if (x′, 1) and (y′, 1) have independent columns. Over every field,
    for all sizes.

    Under the column-wise softmax, of whatever exponential, ν and ξ are redundant, and under the
    row-wise one μ and ξ. An exponential is a function that takes sums to products and is never
    zero. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Convattn.foundation Require Import attention common_factor.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Section Definitions.

Variables (F : fieldType) (M N P Q : nat).

(** The parameter Ξ = [[Λ, μ], [νᵀ, ξ]] of shape ⟨P′ + 1, Q′ + 1⟩. *)
Definition bi_affine_parameter (Lambda : 'M[F]_(P, Q)) (mu : 'cV[F]_P) (nu : 'cV[F]_Q) (xi : F) :
    'M[F]_(P + 1, Q + 1) :=
  block_mx Lambda mu nu^T xi%:M.

(** Eq. 8, the outer products with ones written as products of a column and a row. *)
Definition bi_affine (x : 'M[F]_(M, P)) (y : 'M[F]_(N, Q))
    (Lambda : 'M[F]_(P, Q)) (mu : 'cV[F]_P) (nu : 'cV[F]_Q) (xi : F) : 'M[F]_(M, N) :=
  x *m Lambda *m y^T + (x *m mu) *m const_mx 1 + const_mx 1 *m (y *m nu)^T +
    xi *: (const_mx 1 : 'cV_M) *m (const_mx 1 : 'rV_N).

(** x with a column of ones beside it. *)
Definition with_one (R C : nat) (x : 'M[F]_(R, C)) : 'M[F]_(R, C + 1) := row_mx x (const_mx 1).

(** Column-wise and row-wise softmax of a matrix of scores. *)
Definition column_softmax (E : F -> F) (A : 'M[F]_(M, N)) (m : 'I_M) (n : 'I_N) : F :=
  softmax (fun k => E (A k n)) m.
Definition row_softmax (E : F -> F) (A : 'M[F]_(M, N)) (m : 'I_M) (n : 'I_N) : F :=
  softmax (fun k => E (A m k)) n.

End Definitions.

Section Forms.

Variables (F : fieldType) (M N P Q : nat).
Variables (x : 'M[F]_(M, P)) (y : 'M[F]_(N, Q)).
Implicit Types (Lambda : 'M[F]_(P, Q)) (mu : 'cV[F]_P) (nu : 'cV[F]_Q).

Lemma bi_affine_augmented Lambda mu nu xi :
  bi_affine x y Lambda mu nu xi = with_one x *m bi_affine_parameter Lambda mu nu xi *m (with_one y)^T.
Proof.
rewrite /with_one /bi_affine_parameter tr_row_mx mul_row_block mul_row_col !mulmxDl.
rewrite /bi_affine trmx_mul !mulmxA mul_mx_scalar trmx_const -!addrA; congr (_ + _).
by rewrite addrCA.
Qed.

Lemma bi_affine_entries Lambda mu nu xi m n :
  bi_affine x y Lambda mu nu xi m n =
    \sum_p \sum_q Lambda p q * x m p * y n q + \sum_p mu p 0 * x m p + \sum_q nu q 0 * y n q + xi.
Proof.
rewrite /bi_affine !mxE !big_ord1 !mxE; congr (_ + _ + _ + _); last by rewrite !mulr1.
- under eq_bigr do rewrite !mxE big_distrl /=.
  rewrite exchange_big; apply: eq_bigr => p _; apply: eq_bigr => q _ /=.
  by rewrite [x m p * _]mulrC.
- by rewrite mulr1; apply: eq_bigr => p _; rewrite mulrC.
by rewrite mul1r; apply: eq_bigr => q _; rewrite mulrC.
Qed.

(** Only a number is added to all scores of a column by ν and ξ. *)
Lemma bi_affine_column Lambda mu nu xi m n :
  bi_affine x y Lambda mu nu xi m n =
    bi_affine x y Lambda mu 0 0 m n + (\sum_q nu q 0 * y n q + xi).
Proof.
rewrite !bi_affine_entries [X in _ + _ + X + 0]big1 ?addr0 => [|q _]; last by rewrite mxE mul0r.
by rewrite addrA.
Qed.

Lemma bi_affine_row Lambda mu nu xi m n :
  bi_affine x y Lambda mu nu xi m n =
    bi_affine x y Lambda 0 nu 0 m n + (\sum_p mu p 0 * x m p + xi).
Proof.
rewrite !bi_affine_entries [X in _ + X + _ + 0]big1 ?addr0 => [|q _]; last by rewrite mxE mul0r.
ring.
Qed.

End Forms.

Theorem biaffine (F : fieldType) (M N P Q : nat) (x : 'M[F]_(M, P)) (y : 'M[F]_(N, Q))
    (Lambda : 'M[F]_(P, Q)) (mu : 'cV[F]_P) (nu : 'cV[F]_Q) (xi : F) :
  let A := bi_affine x y Lambda mu nu xi in
  [/\ forall m n, A m n =
        \sum_p \sum_q Lambda p q * x m p * y n q + \sum_p mu p 0 * x m p + \sum_q nu q 0 * y n q + xi,
      A = with_one x *m bi_affine_parameter Lambda mu nu xi *m (with_one y)^T
        /\ (\rank A <= minn P Q + 1)%N,
      \rank (with_one x) = (P + 1)%N -> \rank (with_one y) = (Q + 1)%N ->
        forall Lambda' mu' nu' xi', bi_affine x y Lambda' mu' nu' xi' = A ->
          [/\ Lambda' = Lambda, mu' = mu, nu' = nu & xi' = xi] &
      forall E, exponential_law E -> forall m n,
        column_softmax E A m n = column_softmax E (bi_affine x y Lambda mu 0 0) m n /\
        row_softmax E A m n = row_softmax E (bi_affine x y Lambda 0 nu 0) m n].
Proof.
move=> A; split=> [m n | | fullx fully Lambda' mu' nu' xi' e | E expE m n].
- exact: bi_affine_entries.
- split; first exact: bi_affine_augmented.
  rewrite /A bi_affine_augmented addn_minl leq_min; apply/andP; split.
    by rewrite -mulmxA; exact: mulmx_max_rank.
  exact: mulmx_max_rank.
- move: e; rewrite /A !bi_affine_augmented => /row_free_inj e.
  have freex : row_free (with_one x)^T by rewrite /row_free mxrank_tr fullx.
  have /e/(congr1 trmx) : row_free (with_one y)^T by rewrite /row_free mxrank_tr fully.
  rewrite !trmx_mul => /(row_free_inj freex)/trmx_inj/eq_block_mx[-> -> /trmx_inj -> exi].
  by split=> //; have /matrixP/(_ 0 0) := exi; rewrite !mxE.
have scores (Key : finType) (s : Key -> F) c k :
    softmax (fun k => E (s k + c)) k = softmax (fun k => E (s k)) k.
  have := softmax_common_score s c (fun=> 1) expE k.
  by under eq_softmax do rewrite mulr1; under [in RHS]eq_softmax do rewrite mulr1.
split.
  rewrite -[RHS](scores _ _ (\sum_q nu q 0 * y n q + xi)).
  by apply: eq_softmax => k; rewrite -bi_affine_column.
rewrite -[RHS](scores _ _ (\sum_p mu p 0 * x m p + xi)).
by apply: eq_softmax => k; rewrite -bi_affine_row.
Qed.
