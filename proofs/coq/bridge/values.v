(** From the proofs to the programs: the entries of the constructions, in a form that computes.

    Big operators and ordinals do not reduce in Coq's virtual machine, so that a test could not
    print a row of [softmax] as it stands. The definitions here do reduce. For [place],
    [finite_weight] and [finite_scale] the lemma beneath says that the values are those of the
    definition in the theorems; beneath [block_taps] stands how the blocks of W^O depend on the
    taps that it lists. [tap_number] and [fraction] only say how an entry is printed. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import zify.
From Convattn.foundation Require Import attention image heads grid.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

(** The number of an entry of a table in which 0 stands for "absent". *)
Definition tap_number (width : nat) (tap : option (nat * nat)) : nat :=
  if tap is Some uv then (uv.1 * width + uv.2).+1 else 0.

(** The taps of one block of W^O, row by row: rows are the pixels s of the key's patch, columns the
    pixels t of the query's. *)
Definition block_taps (p1 p2 m n r1 r2 i j : nat) : seq (seq nat) :=
  let pixels := [seq (s1, s2) | s1 <- iota 0 p1, s2 <- iota 0 p2] in
  [seq [seq tap_number r2.*2.+1 (joining_tap p1 p2 m n r1 r2 i j s t) | t <- pixels] | s <- pixels].

Lemma output_block_value (F : fieldType) (In Out : finType) (p1 p2 m n r1 r2 : nat)
    (W : nat -> nat -> In -> Out -> F) i j
    (s : patch_feature p1 p2 In) (t : patch_feature p1 p2 Out) :
  output_block m n r1 r2 W i j s t =
    if joining_tap p1 p2 m n r1 r2 i j (val s.1.1, val s.1.2) (val t.1.1, val t.1.2) is Some uv
    then W uv.1 uv.2 s.2 t.2 else 0.
Proof. by []. Qed.

(** The place of the key at [y + i - m] among [side], or [side] if there is none. *)
Definition place (side m y i : nat) : nat :=
  if (m <= y + i)%N && (y + i - m < side)%N then (y + i - m)%N else side.

Lemma axis_target_place (side m y i : nat) :
  (if axis_target side m y i is Some k then nat_of_ord k else side) = place side m y i.
Proof.
rewrite /axis_target /place; case: ifP => //= _.
by case: insubP => [k -> <-|/negbTE ->].
Qed.

Lemma ringed_key_place (rows columns m n : nat)
    (q : bare_grid rows columns) (d : token_offset m n) :
  (nat_of_ord (ringed_key q d).1, nat_of_ord (ringed_key q d).2) =
    ((q.1 + d.1)%N, (q.2 + d.2)%N).
Proof. by []. Qed.

(** A row of the attention of S.finite: the weight at the target, and the weight elsewhere. *)
Definition finite_weight (keys : nat) (e : rat) (at_target : bool) : rat :=
  (if at_target then e else 1) / (keys%:R + e - 1).

Lemma softmax_finite_weight (Key : finType) (e : rat) (t k : Key) :
  softmax (bias_weights e (Some t)) k = finite_weight #|Key| e (k == t).
Proof.
rewrite /softmax sum_bias_weights /finite_weight /bias_weights.
by rewrite (inj_eq Some_inj).
Qed.

(** What the maps of S.finite multiply M_δ by: for the head of δ, and for the uniform head. *)
Definition finite_scale (keys : nat) (e : rat) (biased : bool) : rat :=
  if biased then (keys%:R + e - 1) / (e - 1) else - (keys%:R / (e - 1)).

Lemma finite_maps_scale (Offset In : finType) (Out : Type) (M : Offset -> In -> Out -> rat)
    keys e h i o :
  finite_maps M keys e h i o =
    finite_scale keys e (h != None) * (if h is Some d then M d i o else \sum_d M d i o).
Proof. by case: h. Qed.

(** A rational number, as it is printed: whether it is negative, numerator, denominator. *)
Definition fraction (x : rat) : bool * nat * nat := (numq x < 0, absz (numq x), absz (denq x)).
