(** A softmax does not see a factor that all keys share, nor a score added to all of them. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

(** All that matters of an exponential here: it takes sums to products, and is never zero. *)
Definition exponential_law (F : fieldType) (E : F -> F) : Prop :=
  (forall s t, E (s + t) = E s * E t) /\ (forall s, E s != 0).

Section CommonFactor.

Variables (F : fieldType) (Key : finType).

Lemma eq_softmax (w w' : Key -> F) : w =1 w' -> softmax w =1 softmax w'.
Proof. by move=> e k; rewrite /softmax e; congr (_ / _); apply: eq_bigr => l _. Qed.

Lemma softmax_common_factor (c : F) (w : Key -> F) : c != 0 ->
  softmax (fun k => c * w k) =1 softmax w.
Proof.
move=> nz k; rewrite /softmax -big_distrr /=.
by rewrite -mulf_div divff // mul1r.
Qed.

(** With weights that a mask, or anything else, multiplies. *)
Lemma softmax_common_score (E : F -> F) (s : Key -> F) (c : F) (mask : Key -> F) :
  exponential_law E ->
  softmax (fun k => E (s k + c) * mask k) =1 softmax (fun k => E (s k) * mask k).
Proof.
case=> add nz k; rewrite -[RHS](softmax_common_factor _ (nz c)); apply: eq_softmax => l.
by rewrite add mulrA [E c * _]mulrC.
Qed.

End CommonFactor.
