(** The maps between tokens of a dilated convolution, in a form that computes. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import zify.
From Convattn.foundation Require Import attention image grid patches dilated pixels.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

(** The tap between two pixels of tokens at the shift [z], or K if there is none. *)
Definition joining_place (P K d : nat) (z : int) (s t : nat) : nat :=
  find (joins P K d z s t) (iota 0 K).

(** With a dilation that is not zero there is at most one. *)
Lemma joins_one (P K d : nat) (z : int) (s t i j : nat) :
  (0 < d)%N -> joins P K d z s t i -> joins P K d z s t j -> i = j.
Proof.
rewrite /joins /tap_shift => lt0d /eqP -> /eqP e.
by have := mulIf _ e; rewrite eqz_nat => /(_ (lt0n_neq0 lt0d)); lia.
Qed.

Lemma joining_sum (R : ringType) (P K d : nat) (z : int) (s t : nat) (g : nat -> R) : (0 < d)%N ->
  \sum_(i < K) (if joins P K d z s t i then g i else 0) =
    if (joining_place P K d z s t < K)%N then g (joining_place P K d z s t) else 0.
Proof.
move=> lt0d; set u := joining_place P K d z s t.
have ltE : (u < K)%N = has (joins P K d z s t) (iota 0 K) by rewrite has_find size_iota.
case: ltnP ltE => [ltu | _] /esym found; last first.
  rewrite big1 // => i _; case: ifP => // join; case/negP: (negbT found).
  by apply/hasP; exists (i : nat); rewrite // mem_iota ltn_ord.
have joined : joins P K d z s t u by have := nth_find 0%N found; rewrite nth_iota.
rewrite (bigD1 (Ordinal ltu)) //= joined big1 ?addr0 // => i ne.
by case: ifP => // join; case/eqP: ne; apply/val_inj/(joins_one lt0d join joined).
Qed.

(** F_δ: one tap of the kernel, or zero. *)
Lemma offset_map_value (R : ringType) (In Out : finType) (p1 p2 K1 K2 d1 d2 : nat)
    (W : nat -> nat -> In -> Out -> R) (z1 z2 : int)
    (s : patch_feature p1 p2 In) (t : patch_feature p1 p2 Out) :
  (0 < d1)%N -> (0 < d2)%N ->
  let u := joining_place p1 K1 d1 z1 s.1.1 t.1.1 in
  let v := joining_place p2 K2 d2 z2 s.1.2 t.1.2 in
  offset_map K1 K2 d1 d2 W z1 z2 s t = if (u < K1)%N && (v < K2)%N then W u v s.2 t.2 else 0.
Proof.
move=> lt0d1 lt0d2 u v; rewrite /offset_map.
transitivity (\sum_(i < K1) if joins p1 K1 d1 z1 s.1.1 t.1.1 i
    then (if (v < K2)%N then W i v s.2 t.2 else 0) else 0).
  apply: eq_bigr => i _; case: (joins p1 K1 d1 z1 _ _ i) => /=; last by rewrite big1.
  by rewrite (joining_sum p2 K2 z2 s.1.2 t.1.2 (fun j => W i j s.2 t.2) lt0d2).
rewrite (joining_sum p1 K1 z1 s.1.1 t.1.1 (fun i => if (v < K2)%N then W i v s.2 t.2 else 0) lt0d1).
by rewrite -/u; case: ifP.
Qed.

Lemma dilated_key_places (rows columns D1 D2 r1 r2 : nat) (q : bare_grid rows columns)
    (d : token_offset r1 r2) :
  (nat_of_ord (dilated_key D1 D2 q d).1, nat_of_ord (dilated_key D1 D2 q d).2) =
    ((q.1 + D1 * d.1)%N, (q.2 + D2 * d.2)%N).
Proof. by []. Qed.
