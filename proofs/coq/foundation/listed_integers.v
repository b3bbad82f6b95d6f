(** Computing with Coq's binary integers, and what it means in the integers of the proofs.

    The programs that are extracted compute with lists of binary integers, [Z]. [int_of_Z] maps them
    to the integers [int] of the Mathematical Components library, and from there to any field. *)

From Coq Require Import BinInt.
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ssrZ zify.
From Convattn.foundation Require Import image dilated.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Lemma int_of_ZD a b : int_of_Z (Z.add a b) = int_of_Z a + int_of_Z b.
Proof. exact: (rmorphD [rmorphism of int_of_Z]). Qed.

Lemma int_of_ZB a b : int_of_Z (Z.sub a b) = int_of_Z a - int_of_Z b.
Proof. exact: (rmorphB [rmorphism of int_of_Z]). Qed.

Lemma int_of_ZM a b : int_of_Z (Z.mul a b) = int_of_Z a * int_of_Z b.
Proof. exact: (rmorphM [rmorphism of int_of_Z]). Qed.

Lemma int_of_Z_nat n : int_of_Z (Z.of_nat n) = n%:Z.
Proof. exact: (Z_of_intK n%:Z). Qed.

Lemma int_of_Z_inj : injective int_of_Z.
Proof. exact: can_inj int_of_ZK. Qed.

Lemma int_of_Z_eq a b : Z.eqb a b = (int_of_Z a == int_of_Z b).
Proof. by rewrite (inj_eq int_of_Z_inj). Qed.

Lemma int_of_Z_eq0 a : (int_of_Z a == 0) = Z.eqb a Z0.
Proof. by rewrite int_of_Z_eq. Qed.

Lemma int_of_Z_le a b : Z.leb a b = (int_of_Z a <= int_of_Z b).
Proof. lia. Qed.

Lemma int_of_Z_lt a b : Z.ltb a b = (int_of_Z a < int_of_Z b).
Proof. lia. Qed.

(** A sum over 0, ..., n - 1. *)
Definition sum_below (n : nat) (f : nat -> Z) : Z := foldr (fun i s => Z.add (f i) s) Z0 (iota 0 n).

Lemma sum_belowE n f : int_of_Z (sum_below n f) = \sum_(i < n) int_of_Z (f i).
Proof.
rewrite -(big_mkord xpredT (fun i => int_of_Z (f i))) /index_iota subn0 /sum_below.
by elim: (iota 0 n) => [|i s IH]; rewrite ?big_nil // big_cons /= int_of_ZD IH.
Qed.

(** Sums of lists, entry by entry. *)
Definition add_rows (a b : seq Z) : seq Z := [seq Z.add x.1 x.2 | x <- zip a b].

Lemma nth_add_rows a b j : size a = size b ->
  int_of_Z (nth Z0 (add_rows a b) j) = int_of_Z (nth Z0 a j) + int_of_Z (nth Z0 b j).
Proof.
move=> same; have [ltj|lej] := ltnP j (size a); last first.
  by rewrite !nth_default ?addr0 // ?size_map ?size_zip -?same ?minnn.
rewrite (nth_map (Z0, Z0)) ?size_zip -?same ?minnn //.
by rewrite nth_zip // int_of_ZD.
Qed.

(** How far on a tap reads, and where it stands between two pixels: [tap_shift] and [joins]. *)
Definition tap_distance (K d i : nat) : Z :=
  Z.mul (Z.sub (Z.of_nat i) (Z.of_nat (K.-1 %/ 2))) (Z.of_nat d).

Definition tap_joins (P K d : nat) (z : Z) (s t i : nat) : bool :=
  Z.eqb (Z.sub (Z.add (Z.mul (Z.of_nat P) z) (Z.of_nat s)) (Z.of_nat t)) (tap_distance K d i).

Lemma tap_distanceE K d i : int_of_Z (tap_distance K d i) = tap_shift K d i.
Proof. by rewrite /tap_distance int_of_ZM int_of_ZB !int_of_Z_nat. Qed.

Lemma tap_joinsE P K d z s t i : tap_joins P K d z s t i = joins P K d (int_of_Z z) s t i.
Proof.
by rewrite /tap_joins int_of_Z_eq tap_distanceE int_of_ZB int_of_ZD int_of_ZM !int_of_Z_nat.
Qed.
