(** The checker's minors: a minor of integers that is not zero bounds the rank from below.

    Let M be a family of integers, and choose n of its rows and n of its columns (repetitions are
    allowed: they make the determinant zero). If the determinant of the n × n minor, an integer, is
    not zero, then over every field of characteristic zero the rank of M is at least n. The minor is
    what [lower_bound.py], [kernel_heads.py] and [head_dimension.py] compute, without fractions. In
    characteristic p the determinant must not be divisible by p, and nothing is said of that here. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import rank integer_minor.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Theorem minor (F : fieldType) (Row Column : finType) (M : Row -> Column -> int)
    (n : nat) (row : 'I_n -> Row) (column : 'I_n -> Column) :
  [char F] =i pred0 ->
  \det (\matrix_(i, j) M (row i) (column j)) != 0 ->
  (n <= family_rank (fun r c => (M r c)%:~R : F))%N.
Proof.
move=> char0 nz; apply: (rank_of_minor (row := row) (column := column)).
by rewrite intr_eq0_char0.
Qed.
