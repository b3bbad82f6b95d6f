(** Where a head looks: the key at an offset from a query, on a ringed grid,
    where it always exists, and on a bare one, where it may not. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import zify.
From Convattn.foundation Require Import image.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

(** Queries, and the keys of a grid without a ring. *)
Definition bare_grid (rows columns : nat) : finType :=
  [finType of 'I_rows * 'I_columns].

(** Offsets from -m to m and from -n to n, counted from 0. *)
Definition token_offset (m n : nat) : finType :=
  [finType of 'I_m.*2.+1 * 'I_n.*2.+1].

Lemma ringed_bound (rows m : nat) (y : 'I_rows) (i : 'I_m.*2.+1) : y + i < rows + m.*2.
Proof. by case: y i => y ltyr [i ltim] /=; lia. Qed.

(** The key at query + offset, in coordinates that count the ring. *)
Definition ringed_key (rows columns m n : nat)
    (q : bare_grid rows columns) (d : token_offset m n) : ringed_grid rows columns m n :=
  (Ordinal (ringed_bound q.1 d.1), Ordinal (ringed_bound q.2 d.2)).

Definition ringed_target (rows columns m n : nat)
    (q : bare_grid rows columns) (d : token_offset m n) : option (ringed_grid rows columns m n) :=
  Some (ringed_key q d).

(** The place [y + i - m] among [side] ones, if it is there. *)
Definition axis_target (side m : nat) (y i : nat) : option 'I_side :=
  if m <= y + i then insub (y + i - m) else None.

Definition bare_target (rows columns m n : nat)
    (q : bare_grid rows columns) (d : token_offset m n) : option (bare_grid rows columns) :=
  if axis_target rows m q.1 d.1 is Some y then
    if axis_target columns n q.2 d.2 is Some x then Some (y, x) else None
  else None.
