(** What the theorems on finite sharpness need of an exponential: it is positive, takes sums to
    products, and does not decrease. The real exponential is one. *)

From mathcomp Require Import all_ssreflect all_algebra.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Record is_exponential (R : realFieldType) (E : R -> R) : Prop := IsExponential {
  exponential_positive : forall x, 0 < E x;
  exponential_add : forall x y, E (x + y) = E x * E y;
  exponential_monotone : forall x y, x <= y -> E x <= E y
}.

Section Exponential.

Variables (R : realFieldType) (E : R -> R).
Hypothesis E_exp : is_exponential E.

Lemma exponential_nonzero x : E x != 0.
Proof. by rewrite gt_eqF // exponential_positive. Qed.

Lemma exponential_zero : E 0 = 1.
Proof.
by apply: (mulfI (exponential_nonzero 0)); rewrite -exponential_add // addr0 mulr1.
Qed.

End Exponential.
