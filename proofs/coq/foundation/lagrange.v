(** Lagrange's polynomials by their coefficients, as a recursion that computes. *)

From mathcomp Require Import all_ssreflect all_algebra.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

(** Coefficient h of Π (z - node) / (base - node) over the nodes other than [base]: it is one at
    [base], and zero at every other node. *)
Fixpoint lagrange_coefficient (F : fieldType) (nodes : seq F) (base : F) (h : nat) : F :=
  if nodes is node :: rest then
    if node == base then lagrange_coefficient rest base h
    else ((if h is h'.+1 then lagrange_coefficient rest base h' else 0)
            - node * lagrange_coefficient rest base h) / (base - node)
  else (h == 0%N)%:R.

Section Lagrange.

Variable F : fieldType.
Implicit Types (nodes : seq F) (base z : F).

(** The value at z, as the sum of the first n coefficients times powers. *)
Definition lagrange_value nodes base (n : nat) z : F :=
  \sum_(h < n) lagrange_coefficient nodes base h * z ^+ h.

(** The degree is at most the number of nodes other than the base. *)
Lemma lagrange_coefficient_large nodes base h :
  (count (predC1 base) nodes < h)%N -> lagrange_coefficient nodes base h = 0.
Proof.
elim: nodes h => [|node rest IH] [|h] //=.
case: eqVneq => [_ | ne] /=; first by rewrite add0n; exact: IH.
by rewrite add1n ltnS => lt; rewrite !IH ?mulr0 ?subr0 ?mul0r //; exact: ltnW.
Qed.

Lemma lagrange_value_cons node nodes base n z : node != base ->
  (count (predC1 base) nodes < n)%N ->
  lagrange_value (node :: nodes) base n.+1 z =
    (z - node) / (base - node) * lagrange_value nodes base n z.
Proof.
move=> ne lt; rewrite /lagrange_value /= (negbTE ne).
under eq_bigr do rewrite mulrAC mulrBl.
rewrite -big_distrl sumrB /= [RHS]mulrAC; congr (_ / _).
rewrite big_ord_recl mul0r add0r [X in _ - X]big_ord_recr /=.
rewrite (lagrange_coefficient_large lt) mulr0 mul0r addr0 mulrBl !big_distrr /=.
congr (_ - _); apply: eq_bigr => h _; last by rewrite mulrA.
by rewrite /bump add1n exprS mulrCA.
Qed.

(** One at the base, zero at the other nodes. *)
Lemma lagrange_at nodes base n z : (count (predC1 base) nodes < n)%N ->
  (z \in nodes) || (z == base) -> lagrange_value nodes base n z = (z == base)%:R.
Proof.
elim: nodes n => [|node rest IH] [|n] //=.
  move=> _ /eqP ->; rewrite eqxx /lagrange_value big_ord_recl /= mul1r expr0 big1 ?addr0 //.
  by move=> h _; rewrite mul0r.
case: (eqVneq node base) => [-> | ne] /=; rewrite in_cons.
  rewrite add0n => lt member.
  have -> : lagrange_value (base :: rest) base n.+1 z = lagrange_value rest base n.+1 z.
    by apply: eq_bigr => h _; rewrite /= eqxx.
  by apply: IH => //; case: (z == base) member; rewrite ?orbT.
rewrite add1n ltnS => lt member; rewrite lagrange_value_cons //.
case: (eqVneq z node) member => [-> _ | nz /= member].
  by rewrite subrr !mul0r (negbTE ne).
rewrite IH //; case: eqVneq => [-> | _]; last by rewrite mulr0.
by rewrite mulr1 divff // subr_eq0 eq_sym.
Qed.

End Lagrange.
