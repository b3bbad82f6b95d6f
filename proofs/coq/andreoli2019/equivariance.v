(** A19.equivariance (as amended): what the span of the shift matrices is on a bare grid.

    On every finite bare grid, of any number of axes, let Φ_mn be the action of the node m on the node
    n, a tensor of any shape T (its channels). It depends on n - m alone iff Φ is in the span of the
    shift matrices, Φ = Σ_d A_d ⊗ Θ_d. If d runs over the shifts that occur, from -(n_i - 1) to n_i - 1
    on each axis i of n_i nodes, Θ is then determined by Φ. Locality: for every set D of shifts,
    Φ_mn = 0 for all n - m outside D iff Θ_d = 0 for all d outside D. Over every field.

    This is "equipollence", the printed definition of translation equivariance. Commuting with
    translations is the same on a torus (equivariance_torus.v), and stronger on a bare grid
    (equivariance_bare.v). *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import structure shifts.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

(** Σ_d A_d ⊗ Θ_d over the shifts that occur. *)
Definition shift_combination (F : fieldType) (Axis : finType) (S : Axis -> nat) (T : Type)
    (Theta : occurring S -> T -> F) (m n : node S) (t : T) : F :=
  mixed_product (fun d s => shift_matrix F (occurring_shift d) s.1 s.2) Theta (m, n) t.

(** A combination takes at (m, n) the parameter of n - m. *)
Lemma shift_combination_entry (F : fieldType) (Axis : finType) (S : Axis -> nat) (T : Type)
    (Theta : occurring S -> T -> F) (d : occurring S) (m n : node S) (t : T) :
  difference m n = occurring_shift d -> shift_combination Theta m n t = Theta d t.
Proof.
move=> e; rewrite /shift_combination /mixed_product (bigD1 d) //= /shift_matrix e eqxx mul1r.
rewrite big1 ?addr0 // => d' nd.
by rewrite (inj_eq (@occurring_shift_inj _ S)) eq_sym (negbTE nd) mul0r.
Qed.

Theorem equivariance (F : fieldType) (Axis : finType) (S : Axis -> nat) (T : Type)
    (Phi : node S -> node S -> T -> F) :
  (forall m n m' n', difference m n = difference m' n' -> forall t, Phi m n t = Phi m' n' t) <->
  exists Theta : occurring S -> T -> F,
    [/\ forall m n t, Phi m n t = shift_combination Theta m n t,
        forall Theta', (forall m n t, Phi m n t = shift_combination Theta' m n t) ->
          forall d t, Theta' d t = Theta d t &
        forall (D : pred (shift Axis)) t,
          (forall m n, ~~ D (difference m n) -> Phi m n t = 0) <->
          (forall d, ~~ D (occurring_shift d) -> Theta d t = 0)].
Proof.
have read (Theta : occurring S -> T -> F) m n t :
    shift_combination Theta m n t = Theta (difference_index m n) t.
  by apply: shift_combination_entry; rewrite difference_index_shift.
split=> [dep | [Theta [ePhi _ _]] m n m' n' e t]; last first.
  rewrite !ePhi !read; congr (Theta _ t).
  by apply: occurring_shift_inj; rewrite !difference_index_shift.
have [Theta eTheta] : exists Theta : occurring S -> T -> F,
    forall d m n, difference m n = occurring_shift d -> forall t, Phi m n t = Theta d t.
  apply: (fin_all_exists (P := fun d (u : T -> F) =>
    forall m n, difference m n = _ -> forall t, _ = u t)) => d.
  have [m [n e]] := occurs d; exists (Phi m n) => m' n' e' t.
  by apply: dep; rewrite e e'.
have ePhi m n t : Phi m n t = shift_combination Theta m n t.
  by rewrite read; apply: eTheta; rewrite difference_index_shift.
exists Theta; split=> // [Theta' e d t | D t].
  have [m [n emn]] := occurs d.
  by rewrite -(shift_combination_entry Theta' t emn) -e (eTheta _ _ _ emn).
split=> [zero d nD | zero m n nD].
  by have [m [n e]] := occurs d; rewrite -(eTheta _ _ _ e); apply: zero; rewrite e.
by rewrite ePhi read zero // difference_index_shift.
Qed.
