(** What [attention_layer] means, on concrete numbers: two heads, two keys and two features. The head h
    takes the rows A_h of attention, then its value map W_h; the heads are added. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Theorem attention_values (F : fieldType) :
  attention_layer (fun (h : 'I_2) (_ : unit) (k : 'I_2) => (2 * h + k + 1)%:R)
    (fun (h : 'I_2) (i : 'I_2) (_ : unit) => (2 * h + i + 1)%:R)
    (fun (k i : 'I_2) => (2 * k + i + 1)%:R : F) tt tt = 160%:R.
Proof.
rewrite /attention_layer /feature_map /attend !big_ord_recl !big_ord0 /= ?mul0r ?addr0 ?add0r -!(natrM, natrD).
by congr (_%:R).
Qed.
