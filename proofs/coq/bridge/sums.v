(** Sums over finite types as sums over lists, and whole numbers as binary ones: both compute. *)

From Coq Require Import BinInt.
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ssrZ zify.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Definition listed_sum (R : zmodType) (T : Type) (f : T -> R) (s : seq T) : R :=
  foldr (fun x total => f x + total) 0 s.

Lemma listed_sumE (R : zmodType) (T : Type) (f : T -> R) (s : seq T) :
  \sum_(x <- s) f x = listed_sum f s.
Proof. by elim: s => [|x s IH]; rewrite ?big_nil // big_cons IH. Qed.

Lemma listed_sum_ord (R : zmodType) (f : nat -> R) (a : nat) :
  \sum_(i < a) f i = listed_sum f (iota 0 a).
Proof. by rewrite -(big_mkord xpredT f) listed_sumE /index_iota subn0. Qed.

(** The pairs of places on two axes, row by row. *)
Definition places (a b : nat) : seq (nat * nat) := [seq (i, j) | i <- iota 0 a, j <- iota 0 b].

Lemma listed_sum_places (R : zmodType) (f : nat -> nat -> R) (a b : nat) :
  \sum_(d : 'I_a * 'I_b) f d.1 d.2 = listed_sum (fun ij => f ij.1 ij.2) (places a b).
Proof.
rewrite -listed_sumE big_allpairs -(pair_bigA _ (fun (i : 'I_a) (j : 'I_b) => f i j)) /=.
rewrite (listed_sum_ord (fun i => \sum_(j < b) f i j)) -listed_sumE.
by apply: eq_bigr => i _; rewrite listed_sum_ord -listed_sumE.
Qed.

Lemma codom_places (T : Type) (f : nat -> nat -> T) (a b : nat) :
  codom (fun d : 'I_a * 'I_b => f d.1 d.2) = [seq f ij.1 ij.2 | ij <- places a b].
Proof.
rewrite /codom /image_mem enumT unlock /= /prod_enum /places -!val_enum_ord.
by elim: (enum 'I_a) => //= i s IH; rewrite !map_cat IH -!map_comp.
Qed.

(** A binary whole number in a ring. *)
Definition number_in (R : ringType) (z : Z) : R := (int_of_Z z)%:~R.

Lemma number_is_additive (R : ringType) : additive (number_in R).
Proof. by move=> x y; rewrite /number_in !raddfB. Qed.
Canonical number_additive (R : ringType) := Additive (number_is_additive R).

Lemma number_is_multiplicative (R : ringType) : multiplicative (number_in R).
Proof. by split=> [x y|]; rewrite /number_in ?rmorph1 // !rmorphM. Qed.
Canonical number_rmorphism (R : ringType) := AddRMorphism (number_is_multiplicative R).

Lemma number_inj (R : numDomainType) : injective (number_in R).
Proof. by move=> x y /intr_inj /(can_inj int_of_ZK). Qed.

Lemma number_nat (R : ringType) (n : nat) : number_in R (Z_of_int n%:Z) = n%:R.
Proof. by rewrite /number_in Z_of_intK. Qed.

Lemma number_sum (R : ringType) (T : Type) (f : T -> Z) (s : seq T) :
  number_in R (listed_sum f s) = listed_sum (fun x => number_in R (f x)) s.
Proof. by rewrite -!listed_sumE rmorph_sum. Qed.
