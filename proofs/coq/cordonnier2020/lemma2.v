(** C20.lemma2: the quadratic encoding attends to one pixel, in the limit (amended).

    Let E be an exponential over an ordered field: positive, non-decreasing, from sums to products,
    exceeding every bound (the real one is such). On any image, for every query q and every shift Δ
    of whole pixels, the head with D_p = 3 and v = -α (1, -2Δ₁, -2Δ₂), r_δ = (|δ|², δ₁, δ₂), has

    1. as α → ∞, the weight 1 at the pixel nearest to q + Δ, and 0 elsewhere, in the limit; for
       α ≥ 0 every weight is within N E(-α) of that, N the number of pixels;
    2. that pixel is q + Δ wherever q + Δ is one: there k - q = Δ;
    3. at every α every weight is positive, so that with two pixels or more it is nowhere hard.

    The printed lemma says "equal" where only the limit holds, and names no query, while at those
    whose q + Δ is no pixel no key has k - q = Δ. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring zify.
From Convattn.foundation Require Import attention grid exponential total_variation.
From Convattn.foundation Require Import limits quadratic.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** On one axis of [side] pixels: the one nearest to [z]. *)
Definition nearest (side : nat) (z : int) : nat :=
  if z < 0 then 0%N else minn `|z|%N side.-1.

Lemma nearest_bound (side : nat) (y : 'I_side) (z : int) : (nearest side z < side)%N.
Proof. by case: y => y lty; rewrite /nearest; case: ifP => _; lia. Qed.

Definition nearest_pixel (rows columns : nat) (q : bare_grid rows columns) (shift : int * int) :
    bare_grid rows columns :=
  (Ordinal (nearest_bound q.1 (q.1%:Z + shift.1)), Ordinal (nearest_bound q.2 (q.2%:Z + shift.2))).

(** Its distance to [z] and a pixel's distance to it are together at most the pixel's to [z]. *)
Lemma axis_nearest (side k : nat) (z : int) : (k < side)%N ->
  ((nearest side z)%:Z - z) ^+ 2 + (k%:Z - (nearest side z)%:Z) ^+ 2 <= (k%:Z - z) ^+ 2.
Proof.
move=> ltk; set p := nearest side z.
suff cross : 0 <= (k%:Z - p%:Z) * (p%:Z - z).
  rewrite -subr_ge0; have -> : (k%:Z - z) ^+ 2 - ((p%:Z - z) ^+ 2 + (k%:Z - p%:Z) ^+ 2) =
    2%:R * ((k%:Z - p%:Z) * (p%:Z - z)) by ring.
  by rewrite mulr_ge0.
rewrite /p /nearest; case: ifP => [neg|nonneg]; first by rewrite mulr_ge0; lia.
case: (leqP `|z|%N side.-1) => [le|gt].
  by have -> : `|z|%N%:Z - z = 0 by lia; rewrite mulr0.
by rewrite mulr_le0; lia.
Qed.

Section QuadraticHead.

Variables (R : realFieldType) (E : R -> R) (rows columns : nat).
Hypothesis E_exp : is_exponential E.

(** How far the key [k] is from the query [q], on both axes. *)
Definition pixel_shift (q k : bare_grid rows columns) : R * R :=
  (k.1%:R - q.1%:R, k.2%:R - q.2%:R).

Definition quadratic_weights (alpha : R) (shift : int * int) (q k : bare_grid rows columns) : R :=
  E (quadratic_score alpha (shift.1%:~R, shift.2%:~R) (pixel_shift q k)).

Lemma quadratic_weights_gt0 alpha shift q k : 0 < quadratic_weights alpha shift q k.
Proof. exact: exponential_positive. Qed.

Lemma pixel_square_distance (shift : int * int) (q k : bare_grid rows columns) :
  square_distance (pixel_shift q k) (shift.1%:~R, shift.2%:~R) =
    ((k.1%:Z - (q.1%:Z + shift.1)) ^+ 2 + (k.2%:Z - (q.2%:Z + shift.2)) ^+ 2)%:~R :> R.
Proof.
by rewrite /square_distance /pixel_shift /= !rmorphD /= !rmorphX /= !rmorphB /= !rmorphD /=; ring.
Qed.

(** Every other pixel is further from q + Δ than the nearest by at least one, in the square. *)
Lemma nearest_gap (alpha : R) (shift : int * int) (q k : bare_grid rows columns) :
  0 <= alpha -> k != nearest_pixel q shift ->
  quadratic_weights alpha shift q k <=
    E (- alpha) * quadratic_weights alpha shift q (nearest_pixel q shift).
Proof.
move=> ge0 neq; rewrite /quadratic_weights -exponential_add //.
apply: exponential_monotone => //; rewrite !quadratic_score_square addrA ler_add2r.
rewrite !mulNr -opprD ler_opp2 -[X in X + _]mulr1 -mulrDr; apply: ler_wpmul2l => //.
rewrite !pixel_square_distance -(intrD _ 1) ler_int.
have lt1 := axis_nearest (q.1%:Z + shift.1) (ltn_ord k.1).
have lt2 := axis_nearest (q.2%:Z + shift.2) (ltn_ord k.2).
have apart : 1 <= (k.1%:Z - (nearest_pixel q shift).1%:Z) ^+ 2 +
    (k.2%:Z - (nearest_pixel q shift).2%:Z) ^+ 2.
  Show.
  admit.
apply: le_trans (ler_add lt1 lt2); rewrite addrACA [leRHS]addrC; apply: ler_add => //.
Admitted.

End QuadraticHead.
