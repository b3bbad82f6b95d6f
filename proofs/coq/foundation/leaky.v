(** Heads with a fixed leak: the bias knows the number of keys, the value maps do not. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Convattn.foundation Require Import attention heads.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** The exponential of a leaky head's bias. *)
Definition leaky_weight (F : fieldType) (leak : F) (N : nat) : F := 1 + N%:R * (leak^-1 - 1).

(** The maps M_δ / (1 - ε), and -ε / (1 - ε) Σ_δ M_δ for the uniform head. *)
Definition leaky_maps (F : fieldType) (Offset In : finType) (Out : Type)
    (leak : F) (M : Offset -> In -> Out -> F) (h : option Offset) (i : In) (o : Out) : F :=
  if h is Some d then M d i o / (1 - leak) else - (leak / (1 - leak)) * \sum_d M d i o.

Section Leaky.

Variables (F : numFieldType) (leak : F) (N : nat).
Hypothesis range : 0 < leak < 1.
Hypothesis keys : N%:R != 0 :> F.

(** The bias is positive. *)
Lemma leaky_weight_gt1 : 1 < leaky_weight leak N.
Proof.
case/andP: range => leak_gt0 leak_lt1.
by rewrite /leaky_weight ltr_addl mulr_gt0 ?lt0r ?keys ?ler0n // -lt0r subr_gt0 invf_gt1.
Qed.

Lemma leaky_weight_gap : leaky_weight leak N - 1 = N%:R * (1 - leak) / leak.
Proof.
have nz : leak != 0 by case/andP: range => gt0 _; rewrite gt_eqF.
by rewrite /leaky_weight; field.
Qed.

Lemma leaky_weight_total : N%:R + leaky_weight leak N - 1 = N%:R / leak.
Proof.
have nz : leak != 0 by case/andP: range => gt0 _; rewrite gt_eqF.
by rewrite /leaky_weight; field.
Qed.

Lemma leaky_factor : (N%:R + leaky_weight leak N - 1) / (leaky_weight leak N - 1) = (1 - leak)^-1.
Proof.
case/andP: range => gt0 lt1; rewrite leaky_weight_gap leaky_weight_total.
by field; rewrite keys subr_eq0 !gt_eqF.
Qed.

Lemma leaky_uniform_factor : N%:R / (leaky_weight leak N - 1) = leak / (1 - leak).
Proof.
case/andP: range => gt0 lt1; rewrite leaky_weight_gap.
by field; rewrite keys subr_eq0 !gt_eqF.
Qed.

(** They are S.finite's maps for that bias, whatever the number of keys. *)
Lemma leaky_mapsE (Offset In : finType) (Out : Type) (M : Offset -> In -> Out -> F) h i o :
  finite_maps M N (leaky_weight leak N) h i o = leaky_maps leak M h i o.
Proof.
case: h => [d|] /=; first by rewrite leaky_factor mulrC.
by rewrite leaky_uniform_factor.
Qed.

Lemma leaky_nonzero : leaky_weight leak N != 1 /\ N%:R + leaky_weight leak N - 1 != 0.
Proof.
split; first by rewrite gt_eqF // leaky_weight_gt1.
by case/andP: range => gt0 _; rewrite leaky_weight_total mulf_neq0 // invr_eq0 gt_eqF.
Qed.

End Leaky.
