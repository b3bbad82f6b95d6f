(** A minor that is invertible modulo p bounds the rank over the rationals.

    Let M be a family of integers, and choose n of its rows and n of its columns. If some integer
    matrix B is an inverse of this n × n minor A modulo some p > 1, prime or not, that is A·B = 1
    modulo p entry by entry, then over every field of characteristic zero the rank of M is at least
    n. This is how a minor can be certified by numbers below p, whatever the size of its
    determinant; over a field of characteristic p or another prime nothing is said. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import rank integer_minor.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

(** Integers that agree modulo p > 1 are the same in Z/p. *)
Lemma intr_modulo (p : nat) (a b : int) : (1 < p)%N -> (a = b %[mod p])%Z -> a%:~R = b%:~R :> 'Z_p.
Proof.
move=> lt1p eqab; rewrite (divz_eq a p) (divz_eq b p) eqab !rmorphD !rmorphM /=.
by rewrite -pmulrn char_Zp // !mulr0.
Qed.

Lemma det_modulo (p n : nat) (A B : 'M[int]_n) : (1 < p)%N ->
  (forall i j, ((A *m B) i j = (i == j)%:R %[mod p])%Z) -> \det A != 0.
Proof.
move=> lt1p inverse; apply/eqP => det0.
pose f := [rmorphism of (intmul 1 : int -> 'Z_p)].
have one : map_mx f (A *m B) = 1%:M.
  apply/matrixP => i j; rewrite [LHS]mxE [LHS](intr_modulo lt1p (inverse i j)) mxE.
  by case: (i == j).
have := congr1 (determinant (n := n)) one.
rewrite det1 det_map_mx det_mulmx det0 mul0r rmorph0 => /eqP.
by rewrite eq_sym oner_eq0.
Qed.

Theorem minor_modulo (F : fieldType) (Row Column : finType) (M : Row -> Column -> int)
    (n p : nat) (row : 'I_n -> Row) (column : 'I_n -> Column) (B : 'I_n -> 'I_n -> int) :
  [char F] =i pred0 -> (1 < p)%N ->
  (forall i k, ((\sum_j M (row i) (column j) * B j k) = (i == k)%:R %[mod p])%Z) ->
  (n <= family_rank (fun r c => (M r c)%:~R : F))%N.
Proof.
move=> char0 lt1p inverse; apply: (rank_of_minor (row := row) (column := column)).
rewrite intr_eq0_char0 //; apply: (@det_modulo p n _ (\matrix_(j, k) B j k)) => // i k.
by rewrite mxE -inverse; congr (_ %% _)%Z; apply: eq_bigr => j _; rewrite !mxE.
Qed.
