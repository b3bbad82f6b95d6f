(** Distances on an axis, and kernels that depend on them only. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import zify.
From Convattn.foundation Require Import image grid.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

(** |a - b|, on the natural numbers. *)
Definition axis_distance (a b : nat) : nat := ((a - b) + (b - a))%N.

(** A place at a distance of at most r is within reach. *)
Lemma axis_reach (y r k a : nat) : axis_distance (y + r) k = a -> (a < r.+1)%N ->
  (k - y < r.*2.+1)%N /\ k = (y + (k - y))%N.
Proof. by rewrite /axis_distance; lia. Qed.

(** A kernel that equals its reflections, at all of its taps. *)
Definition even_kernel (F : fieldType) (In Out : Type) (r1 r2 : nat)
    (W : nat -> nat -> In -> Out -> F) : Prop :=
  forall i j c o, (i <= r1.*2)%N -> (j <= r2.*2)%N ->
    W (r1.*2 - i)%N j c o = W i j c o /\ W i (r2.*2 - j)%N c o = W i j c o.

(** It is fixed by its taps at distances (a, b), tap (r₁ + a, r₂ + b). *)
Lemma even_kernelE (F : fieldType) (In Out : Type) (r1 r2 : nat) (W : nat -> nat -> In -> Out -> F) i j c o :
  even_kernel r1 r2 W -> (i <= r1.*2)%N -> (j <= r2.*2)%N ->
  W (r1 + axis_distance r1 i)%N (r2 + axis_distance r2 j)%N c o = W i j c o.
Proof.
move=> even lei lej.
have row j' : (j' <= r2.*2)%N -> W (r1 + axis_distance r1 i)%N j' c o = W i j' c o.
  move=> lej'; have [/esym flip _] := even i j' c o lei lej'.
  by case: (leqP r1 i) => le; [congr W | rewrite flip; congr W]; rewrite /axis_distance; lia.
rewrite row; last by rewrite /axis_distance; lia.
have [_ /esym flip] := even i j c o lei lej.
by case: (leqP r2 j) => le; [congr W | rewrite flip; congr W]; rewrite /axis_distance; lia.
Qed.

(** How many places lie at a distance. *)
Definition axis_places (a : nat) : nat := if (a == 0)%N then 1%N else 2%N.

Lemma sum_axis_distance (F : fieldType) (side r y a : nat) : (y < side)%N -> (a <= r)%N ->
  \sum_(k < side + r.*2) (axis_distance (y + r) k == a)%:R = (axis_places a)%:R :> F.
Proof.
move=> lty lea.
have ltu : (y + r - a < side + r.*2)%N by lia.
have ltv : (y + r + a < side + r.*2)%N by lia.
have pick (u : 'I_(side + r.*2)) : \sum_(k < side + r.*2) (k == u)%:R = 1 :> F.
  by rewrite (bigD1 u) //= eqxx big1 ?addr0 // => k /negbTE ->.
rewrite /axis_places; case: eqP => [a0 | /eqP a_ne0].
  rewrite mulr1n -[RHS](pick (Ordinal ltu)); apply: eq_bigr => k _; rewrite -val_eqE /= /axis_distance.
  by congr _%:R; move: (nat_of_ord k) => {}k; case: eqP; case: eqP; lia.
rewrite mulr2n; apply: eq_trans (congr2 +%R (pick (Ordinal ltu)) (pick (Ordinal ltv))).
rewrite -big_split; apply: eq_bigr => k _; rewrite -!val_eqE /= -natrD /axis_distance; congr _%:R.
by move: (nat_of_ord k) => {}k; case: eqP; case: eqP; case: eqP; lia.
Qed.
