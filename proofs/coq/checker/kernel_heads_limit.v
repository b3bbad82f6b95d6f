(** A nonnegative vector in the row space does not give so many heads whose values stay bounded.

    A certificate of [kernel_heads.py] shows by a nonnegative combination of F's rows that in the
    limit rank F heads compute the convolution. This is so if the value maps may grow without bound;
    it is not if attention alone has a limit. Let a kernel of three taps in a row have one channel
    in and two out: the first reads the centre, the second is the left neighbour minus the right.
    The rows of F are (0, 1, 0) and (1, 0, -1); the first is nonnegative, and the rank is two. Yet no
    two heads whose weights at the image's tokens are nonnegative, as limits of softmaxes are, with
    any value maps and bias, are the convolution of every image of two pixels in a row or more. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Convattn.foundation Require Import attention image grid dilated bare_dilated.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** Channel [false] out reads the tap 1, the centre; [true] reads tap 0 minus tap 2. *)
Definition centre_and_difference (F : fieldType) (i j : nat) (c : unit) (o : bool) : F :=
  if o then (j == 0%N)%:R - (j == 2%N)%:R else (j == 1%N)%:R.

(** Two nonnegative vectors of the plane, both orthogonal to x ≠ 0, have no y with y·a = 1, y·b = -1. *)
Lemma no_two_heads (F : numFieldType) (a0 a1 b0 b1 c0 c1 x0 x1 y0 y1 : F) :
  0 <= a0 -> 0 <= a1 -> 0 <= b0 -> 0 <= b1 ->
  x0 * a0 + x1 * a1 = 0 -> x0 * b0 + x1 * b1 = 0 -> x0 * c0 + x1 * c1 = 1 ->
  y0 * a0 + y1 * a1 = 1 -> y0 * b0 + y1 * b1 = -1 -> False.
Proof.
move=> a0_ge0 a1_ge0 b0_ge0 b1_ge0 xa xb xc ya yb.
have parallel : a0 * b1 - a1 * b0 = 0.
  transitivity ((a0 * b1 - a1 * b0) * (x0 * c0 + x1 * c1)); first by rewrite xc mulr1.
  transitivity ((x0 * a0 + x1 * a1) * (b1 * c0 - b0 * c1) +
    (x0 * b0 + x1 * b1) * (a0 * c1 - a1 * c0)); first by ring.
  by rewrite xa xb !mul0r addr0.
have opposite (u v : F) : 0 <= u -> 0 <= v -> u = - v -> u = 0.
  by move=> u_ge0 v_ge0 euv; apply/eqP; rewrite eq_le u_ge0 andbT euv oppr_le0.
have eq_b0 : b0 = - a0.
  apply/eqP; rewrite -subr_eq0 opprK; apply/eqP.
  transitivity (b0 * (y0 * a0 + y1 * a1) - a0 * (y0 * b0 + y1 * b1)); first by rewrite ya yb; ring.
  by transitivity (- y1 * (a0 * b1 - a1 * b0)); [ring | rewrite parallel mulr0].
have eq_b1 : b1 = - a1.
  apply/eqP; rewrite -subr_eq0 opprK; apply/eqP.
  transitivity (b1 * (y0 * a0 + y1 * a1) - a1 * (y0 * b0 + y1 * b1)); first by rewrite ya yb; ring.
  by transitivity (y0 * (a0 * b1 - a1 * b0)); [ring | rewrite parallel mulr0].
have b0_0 := opposite _ _ b0_ge0 a0_ge0 eq_b0; have b1_0 := opposite _ _ b1_ge0 a1_ge0 eq_b1.
by move/eqP: yb; rewrite b0_0 b1_0 !mulr0 addr0 eq_sym oppr_eq0 oner_eq0.
Qed.

Theorem kernel_heads_limit (F : numFieldType) (Extra : finType) (n : nat)
    (A : bool -> bare_grid 1 n -> bare_grid 1 n + Extra -> F)
    (M : bool -> patch_feature 1 1 [finType of unit] -> patch_feature 1 1 [finType of bool] -> F)
    (b : patch_feature 1 1 [finType of bool] -> F)
    (R : Extra -> patch_feature 1 1 [finType of unit] -> F) :
  (1 < n)%N -> (forall h q k, 0 <= A h q (inl k)) ->
  ~ (forall (X : image_type F [finType of unit]) q t,
       attention_layer A M (with_extra R X) q t + b t =
         dilated_convolution (1 * 1) (1 * n) 1 3 1 1 (@centre_and_difference F) X
           (1 * q.1 + t.1.1)%N (1 * q.2 + t.1.2)%N t.2).
Proof.
move=> n_gt1 A_ge0 eqL; have n_gt0 := ltnW n_gt1.
pose k0 : bare_grid 1 n := (ord0, Ordinal n_gt0); pose k1 : bare_grid 1 n := (ord0, Ordinal n_gt1).
pose s : patch_feature 1 1 [finType of unit] := (ord0, ord0, tt).
pose t o : patch_feature 1 1 [finType of bool] := (ord0, ord0, o).
have at_ q k o : M true s (t o) * A true q (inl k) + M false s (t o) * A false q (inl k) =
    offset_map 1 3 1 1 (@centre_and_difference F) (axis_shift q.1 k.1) (axis_shift q.2 k.2) s (t o).
  by rewrite -(convolution_coefficients eqL) big_bool /= ![A _ _ _ * _]mulrC.
have value q k o : axis_shift q.1 k.1 = 0 ->
    offset_map 1 3 1 1 (@centre_and_difference F) (axis_shift q.1 k.1) (axis_shift q.2 k.2) s (t o) =
    if axis_shift q.2 k.2 == -1 then o%:R
    else if axis_shift q.2 k.2 == 0 then (~~ o)%:R
    else if axis_shift q.2 k.2 == 1 then - o%:R else 0.
  move=> ->; rewrite /offset_map !big_ord_recl !big_ord0 /joins /tap_shift /=.
  move: (axis_shift q.2 k.2) => z; rewrite /centre_and_difference.
  by case: o; case: z => [[|[|z]]|[|z]] /=;
     rewrite ?mulr0n ?mulr1n ?subr0 ?addr0 ?sub0r ?add0r ?addr0 ?oppr0.
apply: (@no_two_heads F (A true k1 (inl k0)) (A false k1 (inl k0))
  (A true k0 (inl k1)) (A false k0 (inl k1)) (A true k0 (inl k0)) (A false k0 (inl k0))
  (M true s (t false)) (M false s (t false)) (M true s (t true)) (M false s (t true))) => //;
  rewrite at_ value // /axis_shift /= ?oppr0 //.
Qed.
