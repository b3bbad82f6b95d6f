(** The real numbers of Coq's library as an ordered field of MathComp, and their exponential.

    The order and the choice of representatives that MathComp asks for need axioms: those of the reals,
    the excluded middle and Hilbert's epsilon. Only files that speak of the real exponential use this. *)

From Coq Require Import Reals Epsilon FunctionalExtensionality Lra.
From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import exponential sharp_limits.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Local Open Scope R_scope.

Definition eqr (x y : R) : bool := if Req_EM_T x y is left _ then true else false.

Lemma eqrP : Equality.axiom eqr.
Proof. by move=> x y; rewrite /eqr; case: Req_EM_T => [-> | ne]; constructor. Qed.

Canonical R_eqType := EqType R (EqMixin eqrP).

Definition pick_real (P : pred R) (n : nat) : option R :=
  let x := epsilon (inhabits 0) P in if P x then Some x else None.

Lemma pick_realP P n x : pick_real P n = Some x -> P x.
Proof. by rewrite /pick_real; case: ifP => // Px [<-]. Qed.

Lemma pick_real_complete (P : pred R) : (exists x, P x) -> exists n, pick_real P n.
Proof.
move=> exP; exists 0%N; rewrite /pick_real.
by have -> : P (epsilon (inhabits 0) P) by exact: (epsilon_spec (inhabits 0) P exP).
Qed.

Lemma pick_real_ext (P Q : pred R) : P =1 Q -> pick_real P =1 pick_real Q.
Proof. by move=> /functional_extensionality ->. Qed.

Definition R_choiceMixin := Choice.Mixin pick_realP pick_real_complete pick_real_ext.
Canonical R_choiceType := ChoiceType R R_choiceMixin.

Lemma Rplus_A : associative Rplus. Proof. by move=> x y z; rewrite Rplus_assoc. Qed.
Lemma Rmult_A : associative Rmult. Proof. by move=> x y z; rewrite Rmult_assoc. Qed.
Lemma R_one_neq_zero : R1 != R0. Proof. by apply/eqP/R1_neq_R0. Qed.

Canonical R_zmodType :=
  ZmodType R (ZmodMixin Rplus_A Rplus_comm Rplus_0_l Rplus_opp_l).
Canonical R_ringType :=
  RingType R (RingMixin Rmult_A Rmult_1_l Rmult_1_r Rmult_plus_distr_r Rmult_plus_distr_l R_one_neq_zero).
Canonical R_comRingType := ComRingType R Rmult_comm.

Definition inv_real (x : R) : R := if x == 0 then 0 else / x.

Lemma inv_realP (x : R) : x != 0 -> inv_real x * x = 1.
Proof. by move=> ne; rewrite /inv_real (negbTE ne); apply: Rinv_l; exact/eqP. Qed.

Lemma inv_real0 : inv_real 0 = 0.
Proof. by rewrite /inv_real eqxx. Qed.

Definition R_unitMixin := FieldUnitMixin inv_realP inv_real0.
Canonical R_unitRingType := UnitRingType R R_unitMixin.
Canonical R_comUnitRingType := [comUnitRingType of R].

Lemma R_fieldMixin : GRing.Field.mixin_of R_unitRingType.
Proof. by move=> x ne0. Qed.

Canonical R_idomainType := IdomainType R (FieldIdomainMixin R_fieldMixin).
Canonical R_fieldType := FieldType R R_fieldMixin.

Definition leR (x y : R) : bool := if Rle_dec x y is left _ then true else false.
Definition ltR (x y : R) : bool := if Rlt_dec x y is left _ then true else false.

Lemma leRP x y : reflect (x <= y) (leR x y).
Proof. by rewrite /leR; case: Rle_dec => H; constructor. Qed.

Lemma ltRP x y : reflect (x < y) (ltR x y).
Proof. by rewrite /ltR; case: Rlt_dec => H; constructor. Qed.

Lemma leR_add x y : leR 0 x -> leR 0 y -> leR 0 (x + y).
Proof. by move=> /leRP x_ge0 /leRP y_ge0; apply/leRP; exact: Rplus_le_le_0_compat. Qed.

Lemma leR_mul x y : leR 0 x -> leR 0 y -> leR 0 (x * y).
Proof. by move=> /leRP x_ge0 /leRP y_ge0; apply/leRP; exact: Rmult_le_pos. Qed.

Lemma leR_anti x : leR 0 x -> leR x 0 -> x = 0.
Proof. by move=> /leRP x_ge0 /leRP x_le0; exact: Rle_antisym. Qed.

Lemma leR_sub x y : leR 0 (y - x) = leR x y.
Proof. by apply/leRP/leRP => le; lra. Qed.

Lemma leR_total x y : leR x y || leR y x.
Proof. by case: (Rle_or_lt x y) => [/leRP -> // | /Rlt_le /leRP ->]; rewrite orbT. Qed.

Lemma absR_pos x : leR 0 x -> Rabs x = x.
Proof. by move=> /leRP; exact: Rabs_pos_eq. Qed.

Lemma ltR_def x y : ltR x y = (y != x) && leR x y.
Proof.
apply/ltRP/andP => [lt | [/eqP ne /leRP [//|eqxy]]]; last by case: ne.
by split; [apply/eqP; exact: Rgt_not_eq | apply/leRP; exact: Rlt_le].
Qed.

Definition R_leMixin : realLeMixin R_idomainType :=
  RealLeMixin leR_add leR_mul leR_anti leR_sub (leR_total 0) Rabs_Ropp absR_pos ltR_def.

Canonical R_porderType := POrderType ring_display R R_leMixin.
Canonical R_latticeType := LatticeType R R_leMixin.
Canonical R_distrLatticeType := DistrLatticeType R R_leMixin.
Canonical R_orderType := OrderType R leR_total.
Canonical R_numDomainType := NumDomainType R R_leMixin.
Canonical R_normedZmodType := NormedZmodType R R R_leMixin.
Canonical R_numFieldType := [numFieldType of R].
Canonical R_realDomainType := [realDomainType of R].
Canonical R_realFieldType := [realFieldType of R].

(** The exponential of the reals is an exponential. *)
Lemma exp_is_exponential : is_exponential (exp : R -> R).
Proof.
split=> [x | x y | x y].
- by apply/ltRP; exact: exp_pos.
- exact: exp_plus.
by move=> /leRP [lt | ->]; apply/leRP; [exact/Rlt_le/exp_increasing | exact: Rle_refl].
Qed.

(** It exceeds every bound, as the theorems on limits ask. *)
Lemma exp_unbounded : unbounded (exp : R -> R).
Proof. by move=> b; exists b; apply/leRP; have := exp_ineq1_le b; lra. Qed.
