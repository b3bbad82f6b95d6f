(** B19.sa2d: the heads with an even bias, in a form that computes. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import zify.
From Convattn.foundation Require Import attention image grid heads even.
From Convattn.barkan2019 Require Import sa2d.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

(** The weight of a key for a head whose bias meets so many of the keys. *)
Definition even_weight (keys shifts : nat) (e : rat) (met : bool) : rat :=
  (if met then e else 1) / (keys%:R + shifts%:R * (e - 1)).

Lemma even_attention_weight (rows columns r1 r2 : nat) (e : rat) (c : distances r1 r2)
    (q : bare_grid rows columns) (k : ringed_grid rows columns r1 r2) :
  even_attention e (Some c) q k =
    even_weight #|ringed_grid rows columns r1 r2| (shifts_at c) e (at_distances c q k).
Proof. by rewrite /even_attention /softmax sum_even_weights. Qed.

(** Whether the head of distance [a] on an axis meets the key. *)
Definition axis_met (r y k a : nat) : bool := axis_distance (y + r) k == a.

Lemma at_distances_axes (rows columns r1 r2 : nat) (c : distances r1 r2)
    (q : bare_grid rows columns) (k : ringed_grid rows columns r1 r2) :
  at_distances c q k = axis_met r1 q.1 k.1 c.1 && axis_met r2 q.2 k.2 c.2.
Proof. by []. Qed.

Lemma shifts_at_axes (r1 r2 : nat) (c : distances r1 r2) :
  shifts_at c = (axis_places c.1 * axis_places c.2)%N.
Proof. by []. Qed.

(** What the maps multiply W by: for the head of some distances, and for the uniform one. *)
Definition even_scale (keys : nat) (e : rat) (shifts : option nat) : rat :=
  if shifts is Some s then (keys%:R + s%:R * (e - 1)) / (e - 1) else - (keys%:R / (e - 1)).

Lemma even_maps_scale (In Out : Type) (r1 r2 keys : nat) (e : rat)
    (W : nat -> nat -> In -> Out -> rat) (h : option (distances r1 r2)) (c : In) (o : Out) :
  even_maps keys e W h c o = even_scale keys e (omap (@shifts_at r1 r2) h) *
    (if h is Some d then W (r1 + d.1)%N (r2 + d.2)%N c o
     else \sum_(d : distances r1 r2) W (r1 + d.1)%N (r2 + d.2)%N c o).
Proof. by case: h. Qed.
