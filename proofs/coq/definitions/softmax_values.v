(** What [softmax] means, on concrete numbers: of the exponentials 1, 2 and 5 it is 1/8, 1/4 and
    5/8. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Theorem softmax_values (k : 'I_3) :
  softmax (fun i : 'I_3 => nth 0 [:: 1; 2%:R; 5%:R] i : rat) k =
    nth 0 [:: 1 / 8%:R; 1 / 4%:R; 5%:R / 8%:R] k.
Proof.
rewrite /softmax !big_ord_recl big_ord0 /=.
by case: k => [[|[|[|k]]] ltk] //=; apply/eqP.
Qed.
