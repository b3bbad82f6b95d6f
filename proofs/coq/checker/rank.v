(** A certificate of a head's rank: at most the head dimension, and the rank that was computed.

    A head's map is the product of a value map of D_in × D_h integers and an output map of D_h × D_out.
    Over every field its rank is at most D_h. Let n chosen rows and columns of the product have a
    minor different from zero, with n = min(D_in, D_h): the largest rank that such a head can have.
    Then over every field of characteristic zero the rank is n. So with D_h < D_out and
    n ≠ D_out - D_h it is not D_out - D_h. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import rank integer_minor.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Theorem rank (F : fieldType) (In Inner Out : finType) (V : In -> Inner -> int)
    (U : Inner -> Out -> int) (row : 'I_(minn #|In| #|Inner|) -> In)
    (column : 'I_(minn #|In| #|Inner|) -> Out) :
  let map i o := \sum_d V i d * U d o in
  [char F] =i pred0 ->
  \det (\matrix_(i, j) map (row i) (column j)) != 0 ->
  family_rank (fun i o => (map i o)%:~R : F) = minn #|In| #|Inner|.
Proof.
move=> map char0 nz; apply/eqP; rewrite eqn_leq; apply/andP; split.
  rewrite leq_min; apply/andP; split; first exact: rank_leq_row.
  apply: (family_rank_product (L := fun i d => (V i d)%:~R) (R := fun d o => (U d o)%:~R)) => i o.
  by rewrite rmorph_sum; apply: eq_bigr => d _ /=; rewrite intrM.
by apply: (rank_of_minor (row := row) (column := column)); rewrite intr_eq0_char0.
Qed.
