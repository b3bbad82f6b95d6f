(** The rows that a certificate writes down, in a form that computes. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import zify.
From Convattn.foundation Require Import attention grid certified_heads.
From Convattn.bridge Require Import sums.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Section Rows.

Variables (F : fieldType) (Key : finType) (m n : nat) (target : token_offset m n -> Key).
Hypothesis target_inj : injective target.
Variables (c : nat -> nat -> F) (u0 u1 : F).

Let own_row : Key -> F := shared_row target (fun d => c d.1 d.2) u0 u1.

(** The weight of a key among N, [c] that of its offset, zero where none reaches it. *)
Definition row_entry (N : nat) (at_key : F) : F :=
  (at_key + (u0 + u1 * N%:R) / N%:R)
    / (listed_sum (fun ij => c ij.1 ij.2) (places m.*2.+1 n.*2.+1) + u0 + u1 * N%:R).

Lemma row_totalE N : row_total (fun d : token_offset m n => c d.1 d.2) u0 u1 N =
  listed_sum (fun ij => c ij.1 ij.2) (places m.*2.+1 n.*2.+1) + u0 + u1 * N%:R.
Proof. by rewrite /row_total (listed_sum_places c). Qed.

Lemma row_at_target (d : token_offset m n) : own_row (target d) = row_entry #|Key| (c d.1 d.2).
Proof.
rewrite /own_row /shared_row row_totalE /shared_weight (bigD1 d) //= eqxx mulr1 big1 ?addr0 // => d' ne.
by rewrite (inj_eq target_inj) eq_sym (negbTE ne) mulr0.
Qed.

Lemma row_elsewhere k : (forall d, k != target d) -> own_row k = row_entry #|Key| 0.
Proof.
move=> none; rewrite /own_row /shared_row row_totalE /shared_weight big1 // => d _.
by rewrite (negbTE (none d)) mulr0.
Qed.

End Rows.
