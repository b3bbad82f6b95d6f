(** What the theorems on layer normalisation need of a square root. That of the real numbers is one. *)

From mathcomp Require Import all_ssreflect all_algebra.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Definition is_square_root (R : realFieldType) (root : R -> R) : Prop :=
  forall x, 0 <= x -> 0 <= root x /\ root x ^+ 2 = x.

Section SquareRoot.

Variables (R : realFieldType) (root : R -> R).
Hypothesis root_root : is_square_root root.

Lemma root_nonnegative x : 0 <= x -> 0 <= root x.
Proof. by move=> /root_root[]. Qed.

Lemma root_squared x : 0 <= x -> root x ^+ 2 = x.
Proof. by move=> /root_root[]. Qed.

Lemma root_positive x : 0 < x -> 0 < root x.
Proof.
move=> gt0; rewrite lt0r root_nonnegative ?ltW // andbT.
by rewrite -sqrf_eq0 root_squared ?gt_eqF // ltW.
Qed.

Lemma root_of_zero : root 0 = 0.
Proof. by apply/eqP; rewrite -sqrf_eq0 root_squared. Qed.

(** Whose square is at most x is at most root x. *)
Lemma at_most_root y x : y ^+ 2 <= x -> `|y| <= root x.
Proof.
move=> le; have ge0 : 0 <= x by exact: le_trans (sqr_ge0 y) le.
by rewrite -(@ler_pexpn2r _ 2) ?nnegrE ?root_nonnegative // root_squared // real_normK ?num_real.
Qed.

End SquareRoot.
