(** A19.graph: Chebyshev polynomials and powers of the Laplacian span the same matrices.

    Let L be any matrix, the Laplacian of a graph for one, and let T_k be the Chebyshev polynomials of
    M = a L + b I, a ≠ 0: T_0 = I, T_1 = M, T_(k+2) = 2 M T_(k+1) - T_k (for M = 2L/λ - I, or L itself).
    Then the combinations of T_0, …, T_K are those of I, L, …, L^K, for every K. So the class of
    convolutions of these sizes is the same. Over every field in which 2 ≠ 0; graphs have at least
    one node. *)

From mathcomp Require Import all_ssreflect all_algebra.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

(** T_k and T_(k+1), in any ring. *)
Definition chebyshev_pair (R : ringType) (x : R) (k : nat) : R * R :=
  iter k (fun p => (p.2, 2%:R * x * p.2 - p.1)) (1, x).

Definition chebyshev (R : ringType) (x : R) (k : nat) : R := (chebyshev_pair x k).1.

(** The recurrence of the polynomials. *)
Lemma chebyshev_recurrence (R : ringType) (x : R) k :
  [/\ chebyshev x 0 = 1, chebyshev x 1 = x &
      chebyshev x k.+2 = 2%:R * x * chebyshev x k.+1 - chebyshev x k].
Proof. by []. Qed.

Section Spans.

Variables (F : fieldType) (n : nat) (L : 'M[F]_n.+1).

(** Polynomials of the degrees 0, 1, 2, … combine to all polynomials. *)
Lemma triangular_span (p : nat -> {poly F}) K (q : {poly F}) :
  (forall k, size (p k) = k.+1) -> (size q <= K)%N ->
  exists c : nat -> F, q = \sum_(k < K) c k *: p k.
Proof.
move=> sp; elim: K q => [|K IH] q le.
  by exists (fun=> 0); rewrite big_ord0; apply/eqP; rewrite -size_poly_leq0.
have nz : (p K)`_K != 0 by have := lead_coef_eq0 (p K); rewrite lead_coefE sp -size_poly_eq0 sp => ->.
pose r := q - (q`_K / (p K)`_K) *: p K.
have [c er] : exists c : nat -> F, r = \sum_(k < K) c k *: p k.
  apply: IH; apply/leq_sizeP => j; rewrite leq_eqVlt => /orP[/eqP <- | lt].
    by rewrite coefB coefZ divfK // subrr.
  have leq := leq_trans le lt; have lep : (size (p K) <= j)%N by rewrite sp.
  by rewrite coefB coefZ [q`_j]nth_default // [(p K)`_j]nth_default // mulr0 subrr.
exists (fun k => if (k < K)%N then c k else q`_K / (p K)`_K).
rewrite big_ord_recr /= ltnn -[LHS](subrK ((q`_K / (p K)`_K) *: p K)) -/r er; congr (_ + _).
by apply: eq_bigr => k _; rewrite ltn_ord.
Qed.

(** Chebyshev polynomials of a polynomial of degree one have the degrees 0, 1, 2, … *)
Lemma size_chebyshev (x : {poly F}) k : 2%:R != 0 :> F -> size x = 2%N ->
  size (chebyshev x k) = k.+1.
Proof.
move=> nz sx; have nzx : x != 0 by rewrite -size_poly_eq0 sx.
have step (p q : {poly F}) : (size p < size q)%N -> size (2%:R * x * q - p) = (size q).+1.
  move=> lt; have nzq : q != 0 by rewrite -size_poly_gt0 (leq_ltn_trans _ lt).
  have s2 : size (2%:R * x * q) = (size q).+1.
    by rewrite -mulrA mulr_natl -scaler_nat size_scale // size_mul // sx.
  by rewrite size_addl ?s2 // size_opp ltnW.
suff [] : size (chebyshev_pair x k).1 = k.+1 /\ size (chebyshev_pair x k).2 = k.+2 by [].
elim: k => [|k [IH1 IH2]]; first by rewrite size_poly1.
by split=> //=; rewrite step ?IH1 ?IH2.
Qed.

(** Chebyshev polynomials of a matrix are those of the polynomial it is the value of. *)
Lemma chebyshev_horner (x : {poly F}) k :
  chebyshev (horner_mx L x) k = horner_mx L (chebyshev x k).
Proof.
suff [] : (chebyshev_pair (horner_mx L x) k).1 = horner_mx L (chebyshev_pair x k).1 /\
          (chebyshev_pair (horner_mx L x) k).2 = horner_mx L (chebyshev_pair x k).2 by [].
elim: k => [|k [IH1 IH2]]; first by rewrite /= rmorph1.
by rewrite /= rmorphB !rmorphM rmorph_nat IH1 IH2.
Qed.

(** What two such families of matrices span is the same. *)
Lemma same_span (p q : nat -> {poly F}) K (c : nat -> F) :
  (forall k, size (p k) = k.+1) -> (forall k, size (q k) = k.+1) ->
  exists c' : nat -> F,
    \sum_(k < K) c k *: horner_mx L (p k) = \sum_(k < K) c' k *: horner_mx L (q k).
Proof.
move=> sp sq; pose r := \sum_(k < K) c k *: p k.
have [|c' er] := triangular_span (q := r) (K := K) sq.
  apply: (leq_trans (size_sum _ _ _)); apply/bigmax_leqP => k _.
  by rewrite (leq_trans (size_scale_leq _ _)) // sp; exact: ltn_ord.
have value (d : nat -> F) (s : nat -> {poly F}) :
    \sum_(k < K) d k *: horner_mx L (s k) = horner_mx L (\sum_(k < K) d k *: s k).
  by rewrite linear_sum; apply: eq_bigr => k _; rewrite linearZ.
by exists c'; rewrite !value -er.
Qed.

End Spans.

Theorem graph_chebyshev (F : fieldType) (n : nat) (L : 'M[F]_n.+1) (a b : F) (K : nat) :
  2%:R != 0 :> F -> a != 0 ->
  let T := chebyshev (a *: L + b%:M) in
  (forall c : nat -> F, exists c' : nat -> F,
     \sum_(k < K.+1) c k *: T k = \sum_(k < K.+1) c' k *: L ^+ k) /\
  (forall c : nat -> F, exists c' : nat -> F,
     \sum_(k < K.+1) c k *: L ^+ k = \sum_(k < K.+1) c' k *: T k).
Proof.
move=> nz nza T; pose x : {poly F} := a *: 'X + b%:P.
have sx : size x = 2%N.
  by rewrite size_addl size_scale ?size_polyX // (leq_ltn_trans (size_polyC_leq1 _)).
have ex : horner_mx L x = a *: L + b%:M by rewrite linearD linearZ /= horner_mx_X horner_mx_C.
have eT k : T k = horner_mx L (chebyshev x k) by rewrite -chebyshev_horner ex.
have eL k : L ^+ k = horner_mx L 'X^k by rewrite rmorphX /= horner_mx_X.
have sT k := size_chebyshev k nz sx; have sX k := size_polyXn F k.
split=> c.
  have [c' e] := same_span L K.+1 c sT sX; exists c'.
  under eq_bigr do rewrite eT; rewrite e.
  by apply: eq_bigr => k _; rewrite eL.
have [c' e] := same_span L K.+1 c sX sT; exists c'.
under eq_bigr do rewrite eL; rewrite e.
by apply: eq_bigr => k _; rewrite eT.
Qed.
