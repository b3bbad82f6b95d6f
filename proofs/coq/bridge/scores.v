(** The scores of S.dp2 and of C20's quadratic encoding, for whole numbers, in a form that computes. *)

From Coq Require Import BinInt.
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ssrZ ring zify.
From Convattn.foundation Require Import attention image grid quadratic quadratic_heads.
From Convattn.sharpened Require Import dp2 boundary_clamped.
From Convattn.bridge Require Import sums.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** S.dp2: -α (n - n_Δ)², n and n_Δ the numbers of the two shifts. *)
Definition numbered_score (alpha : Z) (offsets : seq (int * int)) (offset shift : int * int) : Z :=
  - (alpha * (Z_of_int (shift_number offsets shift)%:Z - Z_of_int (shift_number offsets offset)%:Z) ^+ 2).

(** The score is this, up to a number that is the same for all shifts. *)
Lemma enumerated_score_value (R : realFieldType) alpha offsets offset shift :
  enumerated_score (number_in R alpha) offsets offset shift =
    number_in R (numbered_score alpha offsets offset shift)
      + number_in R alpha * (shift_number offsets offset)%:R ^+ 2.
Proof. by rewrite enumerated_scoreE /numbered_score rmorphN rmorphM rmorphX rmorphB /= !number_nat. Qed.

(** C20: -α |δ - Δ|². *)
Definition centred_score (alpha : Z) (centre shift : Z * Z) : Z :=
  - (alpha * ((shift.1 - centre.1) ^+ 2 + (shift.2 - centre.2) ^+ 2)).

Definition number_pair (F : ringType) (z : Z * Z) : F * F := (number_in F z.1, number_in F z.2).

(** Eq. 9's score is this, up to a number that is the same for all shifts. *)
Lemma quadratic_score_value (F : fieldType) (alpha : Z) (centre shift : Z * Z) :
  quadratic_score (number_in F alpha) (number_pair F centre) (number_pair F shift) =
    number_in F (centred_score alpha centre shift)
      + number_in F alpha * square_distance (number_pair F centre) (0, 0).
Proof.
rewrite quadratic_score_square /centred_score /square_distance /=.
by rewrite rmorphN rmorphM rmorphD !rmorphX !rmorphB /= mulNr.
Qed.

(** On one axis: (k - (q + δ))², the key counted from the first, δ = i - m. *)
Definition axis_square (m y i k : nat) : nat := (distance (k + m) (y + i) ^ 2)%N.

Lemma squared_distance_axes (rows columns m n : nat) (q k : bare_grid rows columns)
    (d : token_offset m n) :
  squared_distance q d k = (axis_square m q.1 d.1 k.1 + axis_square n q.2 d.2 k.2)%N.
Proof. by []. Qed.

Lemma clamped_key_places (rows columns m n : nat) (q : bare_grid rows columns) (d : token_offset m n) :
  (nat_of_ord (clamped_key q d).1, nat_of_ord (clamped_key q d).2) =
    (clamped rows m (q.1 + d.1), clamped columns n (q.2 + d.2)).
Proof. by []. Qed.

(** C20's nearest pixel is the clamped key. *)
Lemma nearest_clamped (side m y i : nat) :
  nearest side (y%:Z + (i%:Z - m%:Z)) = clamped side m (y + i).
Proof. by rewrite /nearest /clamped; case: ifP; lia. Qed.
