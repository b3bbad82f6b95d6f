(** Heads with the quadratic encoding on an image: which pixel they tend to.

    The score of a key at the shift δ from the query is -α |δ - Δ|² up to a constant, Δ a shift of
    whole pixels. The pixel nearest to q + Δ beats every other by at least α, and it is q + Δ itself
    wherever that is a pixel. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring zify.
From Convattn.foundation Require Import attention grid exponential sharp_limits quadratic.

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
rewrite /p /nearest; case: ifP => [neg|nonneg]; first by apply: mulr_ge0; lia.
case: (leqP `|z|%N side.-1) => [le|gt].
  have -> : `|z|%N%:Z - z = 0 by lia.
  by rewrite mulr0.
by move: nonneg; rewrite ltNge => /negbFE ge0; apply: mulr_le0; lia.
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
  suff: (k.1%:Z - (nearest_pixel q shift).1%:Z) ^+ 2 +
    (k.2%:Z - (nearest_pixel q shift).2%:Z) ^+ 2 != 0.
    by move=> nz; rewrite -gtz0_ge1 lt_neqAle eq_sym nz addr_ge0 ?sqr_ge0.
  rewrite paddr_eq0 ?sqr_ge0 // !sqrf_eq0 !subr_eq0 !eqz_nat !val_eqE.
  by move: neq; rewrite -pair_eqE.
by apply: le_trans (ler_add lt1 lt2); rewrite addrACA [leRHS]addrC ler_add2r.
Qed.

End QuadraticHead.

(** Wherever q + Δ is a pixel, that is the nearest. *)
Lemma nearest_pixel_target (rows columns : nat) (q t : bare_grid rows columns) (shift : int * int) :
  t.1%:Z = q.1%:Z + shift.1 -> t.2%:Z = q.2%:Z + shift.2 -> nearest_pixel q shift = t.
Proof.
move=> e1 e2; rewrite /nearest_pixel -e1 -e2; case: t {e1 e2} => t1 t2.
by congr pair; apply: val_inj; rewrite /= /nearest /=; have := ltn_ord t1; have := ltn_ord t2; lia.
Qed.

(** As α grows, the head tends to attend to the nearest pixel alone. *)
Lemma quadratic_tends_to_one_hot (R : realFieldType) (E : R -> R) (rows columns : nat)
    (q k : bare_grid rows columns) (shift : int * int) :
  is_exponential E -> unbounded E ->
  tends_to (fun alpha => softmax (quadratic_weights E alpha shift q) k)
    (one_hot R (Some (nearest_pixel q shift)) k).
Proof.
move=> E_exp E_unbounded; apply: (softmax_tends_to_one_hot E_exp E_unbounded) => [a k'|a k' ge0 neq].
  exact: quadratic_weights_gt0.
exact: nearest_gap.
Qed.
