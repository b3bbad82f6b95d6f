(** A19.graph (as amended): the matrix of a GCN is not the normalised Laplacian.

    For a graph of weights A ≥ 0 let D be the degrees, the sums of the rows of A, and D̃ those of A + I.
    The GCN's matrix is Â = D̃^(-1/2) (A + I) D̃^(-1/2), the normalised Laplacian
    L = I - D^(-1/2) A D^(-1/2), which asks for D > 0. Then L annihilates the signal √D 1, and Â
    reproduces √D̃ 1. On two nodes with an edge all entries of Â are 1/2, and those of L are 1 and -1,
    so that no factor takes one to the other. Over every real closed field. *)

From mathcomp Require Import all_ssreflect all_algebra.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Matrices.

Variables (R : rcfType) (Node : finType).
Implicit Types (A : Node -> Node -> R) (m n : Node).

Definition degree A m : R := \sum_n A m n.

Definition with_loops A m n : R := A m n + (m == n)%:R.

(** D^(-1/2) A D^(-1/2). *)
Definition gcn_normalised A m n : R := A m n / (Num.sqrt (degree A m) * Num.sqrt (degree A n)).

Definition gcn_matrix A m n : R := gcn_normalised (with_loops A) m n.

Definition laplacian A m n : R := (m == n)%:R - gcn_normalised A m n.

Lemma normalised_root A m : (forall m, 0 < degree A m) ->
  \sum_n gcn_normalised A m n * Num.sqrt (degree A n) = Num.sqrt (degree A m).
Proof.
move=> pos; have nz n : Num.sqrt (degree A n) != 0 by rewrite gt_eqF // sqrtr_gt0.
transitivity (\sum_n A m n / Num.sqrt (degree A m)).
  by apply: eq_bigr => n _; rewrite /gcn_normalised invfM mulrA divfK.
by rewrite -big_distrl /= -/(degree A m) -{1}(sqr_sqrtr (ltW (pos m))) expr2 mulfK.
Qed.

Lemma laplacian_annihilates A m : (forall m, 0 < degree A m) ->
  \sum_n laplacian A m n * Num.sqrt (degree A n) = 0.
Proof.
move=> pos; under eq_bigr do rewrite mulrBl.
rewrite sumrB normalised_root // (bigD1 m) //= eqxx mul1r big1 ?addr0 ?subrr // => n /negbTE nm.
by rewrite eq_sym nm mul0r.
Qed.

(** With loops every degree is positive, also that of an isolated node. *)
Lemma degree_with_loops A m : (forall m n, 0 <= A m n) -> 0 < degree (with_loops A) m.
Proof.
move=> ge0; rewrite /degree /with_loops (bigD1 m) //= eqxx ltr_paddr //; last first.
  by rewrite ltr_paddl ?ltr01.
by apply: sumr_ge0 => n _; rewrite addr_ge0 ?ler0n.
Qed.

End Matrices.

(** Two nodes with an edge. *)
Definition edge (R : rcfType) (m n : bool) : R := (m != n)%:R.

Lemma edge_gcn (R : rcfType) m n : gcn_matrix (@edge R) m n = 2%:R^-1.
Proof.
have two k : degree (with_loops (@edge R)) k = 2%:R.
  by rewrite /degree big_bool /with_loops /edge; case: k; rewrite /= ?add0r ?addr0.
rewrite /gcn_matrix /gcn_normalised !two -expr2 sqr_sqrtr ?ler0n //.
by rewrite /with_loops /edge; case: m n => -[]; rewrite /= ?add0r ?addr0 div1r.
Qed.

Lemma edge_laplacian (R : rcfType) m n : laplacian (@edge R) m n = if m == n then 1 else - 1.
Proof.
have one k : degree (@edge R) k = 1 by rewrite /degree big_bool /edge; case: k; rewrite /= ?add0r ?addr0.
rewrite /laplacian /gcn_normalised !one sqrtr1 mulr1 divr1 /edge.
by case: (m == n); rewrite /= ?subr0 ?sub0r.
Qed.

Theorem graph_gcn (R : rcfType) :
  [/\ forall (Node : finType) (A : Node -> Node -> R) m, (forall m, 0 < degree A m) ->
        \sum_n laplacian A m n * Num.sqrt (degree A n) = 0,
      forall (Node : finType) (A : Node -> Node -> R) m, (forall m n, 0 <= A m n) ->
        \sum_n gcn_matrix A m n * Num.sqrt (degree (with_loops A) n) =
          Num.sqrt (degree (with_loops A) m) &
      [/\ forall m n, gcn_matrix (@edge R) m n = 2%:R^-1,
          forall m n, laplacian (@edge R) m n = if m == n then 1 else - 1,
          forall c, ~ (forall m n, gcn_matrix (@edge R) m n = c * laplacian (@edge R) m n) &
          forall c, ~ (forall m n, laplacian (@edge R) m n = c * gcn_matrix (@edge R) m n)]].
Proof.
have nz : 2%:R^-1 != 0 :> R by rewrite invr_eq0 pnatr_eq0.
split=> [Node A m | Node A m ge0 |]; first exact: laplacian_annihilates.
  by apply: normalised_root => l; exact: degree_with_loops.
split=> [||c e|c e]; [exact: edge_gcn | exact: edge_laplacian | |].
  have := e true false; have := e true true; rewrite !edge_gcn !edge_laplacian /= mulr1 => <-.
  by rewrite mulrN1 => /eqP; rewrite -addr_eq0 -mulr2n mulrn_eq0 (negbTE nz).
have := e true false; have := e true true; rewrite !edge_gcn !edge_laplacian /= => <- /eqP.
by rewrite eq_sym -addr_eq0 -mulr2n mulrn_eq0 oner_eq0.
Qed.
