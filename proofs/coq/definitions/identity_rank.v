(** What [family_rank] means: the identity of n numbers has rank n. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import rank.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Theorem identity_rank (F : fieldType) (T : finType) :
  family_rank (fun i j : T => (i == j)%:R : F) = #|T|.
Proof.
rewrite /family_rank -[RHS](mxrank1 F); congr (\rank _).
by apply/matrixP => i j; rewrite !mxE (inj_eq enum_val_inj).
Qed.
