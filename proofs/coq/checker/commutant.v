(** What commutes with a shift: the equations that the checker writes down, and no others.

    On any set of nodes let [ahead] lead from a node to the one a shift further on, if there is one,
    and [behind] back: n is ahead of m exactly if m is behind n. So it is on a bare grid, where a
    shift may leave the grid, and on a torus. Let A be the matrix of the shift, A_mn = 1 if n is
    ahead of m, else 0. A matrix Φ has Φ A = A Φ if and only if for all nodes m and n

        Φ(m, n behind) = Φ(m ahead, n),

    where a term without its node is 0. [commutant.py] counts the dimension of the solutions of
    these equations for all its shifts. Any field. *)

From mathcomp Require Import all_ssreflect all_algebra.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

(** The matrix of a shift. *)
Definition ahead_entry (F : fieldType) (Node : eqType) (ahead : Node -> option Node) (m n : Node) : F :=
  (ahead m == Some n)%:R.

Theorem commutant (F : fieldType) (Node : finType) (ahead behind : Node -> option Node)
    (Phi : Node -> Node -> F) :
  (forall m n, (ahead m == Some n) = (behind n == Some m)) ->
  (forall m n, \sum_k Phi m k * ahead_entry F ahead k n = \sum_k ahead_entry F ahead m k * Phi k n) <->
  (forall m n, (if behind n is Some k then Phi m k else 0) = (if ahead m is Some k then Phi k n else 0)).
Proof.
move=> inverse.
have left_entry m n : \sum_k Phi m k * ahead_entry F ahead k n =
    if behind n is Some k then Phi m k else 0.
  under eq_bigr do rewrite /ahead_entry inverse.
  case: (behind n) => [k|]; last by rewrite big1 // => k _; rewrite mulr0.
  rewrite (bigD1 k) //= eqxx mulr1 big1 ?addr0 // => k' ne.
  by rewrite (inj_eq Some_inj) eq_sym (negbTE ne) mulr0.
have right_entry m n : \sum_k ahead_entry F ahead m k * Phi k n =
    if ahead m is Some k then Phi k n else 0.
  rewrite /ahead_entry; case: (ahead m) => [k|]; last by rewrite big1 // => k _; rewrite mul0r.
  rewrite (bigD1 k) //= eqxx mul1r big1 ?addr0 // => k' ne.
  by rewrite (inj_eq Some_inj) eq_sym (negbTE ne) mul0r.
by split=> eqs m n; have := eqs m n; rewrite left_entry right_entry.
Qed.
