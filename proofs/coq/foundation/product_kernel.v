(** Kernels in one pair of channels that are a product over the axes. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention image grid rank flattened_kernel independent.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

(** Taps w₁(i) w₂(j) in the channel pair (c₀, o₀), zero in the others. *)
Definition product_kernel (F : fieldType) (In Out : eqType) (c0 : In) (o0 : Out)
    (w1 w2 : nat -> F) (i j : nat) (c : In) (o : Out) : F :=
  if (c == c0) && (o == o0) then w1 i * w2 j else 0.

(** The flattened kernel of one axis: the tap with which pixel [t] reads pixel [s] of the patch
    [d - m] further on, zero where none does. *)
Definition axis_entry (F : fieldType) (p m r : nat) (w : nat -> F) (s t d : nat) : F :=
  if axis_tap p m r d s t is Some u then w u else 0.

Section Product.

Variables (F : fieldType) (In Out : finType) (c0 : In) (o0 : Out).
Variables (p1 p2 m n r1 r2 : nat) (w1 w2 : nat -> F).

Local Notation kernel :=
  (flattened_kernel p1 p2 m n r1 r2 (product_kernel c0 o0 w1 w2)).

Lemma flattened_product (s1 t1 : 'I_p1) (s2 t2 : 'I_p2) (d : token_offset m n) :
  kernel ((s1, s2, c0), (t1, t2, o0)) d =
    axis_entry p1 m r1 w1 s1 t1 d.1 * axis_entry p2 n r2 w2 s2 t2 d.2.
Proof.
rewrite /flattened_kernel /output_block /joining_tap /axis_entry /=.
case: (axis_tap p1) => [u|]; last by rewrite mul0r.
case: (axis_tap p2) => [v|]; last by rewrite mulr0.
by rewrite /product_kernel !eqxx.
Qed.

(** Chosen rows and columns with a left inverse on each axis bound the rank. *)
Lemma product_rank (Chosen1 Chosen2 : finType)
    (s1 t1 : Chosen1 -> 'I_p1) (d1 : Chosen1 -> 'I_m.*2.+1) (L1 : Chosen1 -> Chosen1 -> F)
    (s2 t2 : Chosen2 -> 'I_p2) (d2 : Chosen2 -> 'I_n.*2.+1) (L2 : Chosen2 -> Chosen2 -> F) :
  (forall a b, \sum_r L1 a r * axis_entry p1 m r1 w1 (s1 r) (t1 r) (d1 b) = (a == b)%:R) ->
  (forall a b, \sum_r L2 a r * axis_entry p2 n r2 w2 (s2 r) (t2 r) (d2 b) = (a == b)%:R) ->
  (#|Chosen1| * #|Chosen2| <= family_rank kernel)%N.
Proof.
move=> inverse1 inverse2; rewrite -card_prod.
apply: (family_rank_minor (L := fun a r => L1 a.1 r.1 * L2 a.2 r.2)
  (pick := fun r => ((s1 r.1, s2 r.2, c0), (t1 r.1, t2 r.2, o0)))
  (choose := fun b => (d1 b.1, d2 b.2))) => a b.
rewrite -(left_inverse_product inverse1 inverse2 a b).
by apply: eq_bigr => r _; rewrite flattened_product.
Qed.

End Product.
