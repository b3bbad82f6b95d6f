(** A19.reductions: parameters with fewer numbers, and what their convolutions are.

    Grouped: with Θ_k block diagonal, the outputs of a group are the convolution of the inputs of that
    group with its block. Depth-wise separable, Θ_kpq = Θ⁽¹⁾_kp Θ⁽²⁾_pq: each channel is convolved by
    itself, and then the channels are mapped by Θ⁽²⁾. Controlled separable, Θ = Θ^(basis) ∘ Θ^(channel)
    (eq. 5): the convolution of size H instead of K with the basis Σ_k Θ^(basis)_hk A_k and the
    parameter Θ^(channel). The parameters of this form are those that have rank at most H as matrices
    of shape K × PQ, and no others. It can be combined: grouped Θ^(channel) give a grouped Θ.
    Over every field, for all sizes. How many numbers the forms have is in reductions_counts.v. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention rank rank_factors structure.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Section Forms.

Variable F : fieldType.

(** Channels are pairs of a group and a channel within it. *)
Definition grouped_theta (K G P Q : eqType) (blocks : K -> G -> P -> Q -> F)
    (k : K) (p : G * P) (q : G * Q) : F :=
  if p.1 == q.1 then blocks k p.1 p.2 q.2 else 0.

Definition separable_theta (K P Q : Type) (depthwise : K -> P -> F) (pointwise : P -> Q -> F)
    (k : K) (p : P) (q : Q) : F :=
  depthwise k p * pointwise p q.

Definition controlled_theta (K P Q : Type) (H : finType) (controls : H -> K -> F)
    (channel : H -> P -> Q -> F) (k : K) (p : P) (q : Q) : F :=
  mixed_product controls (flattened channel) k (p, q).

Lemma grouped_convolution (K G M P : finType) (N : Type) (Q : eqType) (A : K -> M -> N -> F)
    (blocks : K -> G -> P -> Q -> F) x n g q :
  structured_convolution A (grouped_theta blocks) x n (g, q) =
    structured_convolution A (fun k => blocks k g) (fun m p => x m (g, p)) n q.
Proof.
apply: eq_bigr => k _; rewrite /feature_map.
transitivity (\sum_g' \sum_p attend (fun m => A k m n) x (g', p) *
    grouped_theta blocks k (g', p) (g, q)).
  by rewrite pair_bigA; apply: eq_bigr => -[].
rewrite (bigD1 g) //= [X in _ + X]big1 ?addr0 => [|g' ng].
  by apply: eq_bigr => p _; rewrite /grouped_theta /= eqxx.
by rewrite big1 // => p _; rewrite /grouped_theta /= (negbTE ng) mulr0.
Qed.

Lemma separable_convolution (K M P : finType) (N Q : Type) (A : K -> M -> N -> F)
    (depthwise : K -> P -> F) (pointwise : P -> Q -> F) x n q :
  structured_convolution A (separable_theta depthwise pointwise) x n q =
    feature_map pointwise (fun p => structured_convolution A (fun k (_ _ : unit) => depthwise k p)
      (fun m _ => x m p) n tt) q.
Proof.
rewrite structured_convolution_entries; under eq_bigr do rewrite exchange_big.
rewrite exchange_big; apply: eq_bigr => p _ /=; rewrite structured_convolution_entries big_distrl.
apply: eq_bigr => k _ /=; rewrite big_distrl; apply: eq_bigr => m _ /=.
by rewrite (bigD1 tt) //= [X in _ + X]big1 ?addr0 => [|[] //]; rewrite mulrA.
Qed.

Lemma controlled_convolution (K M P H : finType) (N Q : Type) (A : K -> M -> N -> F)
    (controls : H -> K -> F) (channel : H -> P -> Q -> F) x n q :
  structured_convolution A (controlled_theta controls channel) x n q =
    structured_convolution (fun h m n => \sum_k controls h k * A k m n) channel x n q.
Proof.
rewrite !convolution_as_transform; apply: eq_linear_transform => m p.
rewrite /mixed_product /flattened /=; under [RHS]eq_bigr do rewrite big_distrl.
rewrite [RHS]exchange_big; apply: eq_bigr => k _ /=; rewrite big_distrr; apply: eq_bigr => h _ /=.
by rewrite mulrA [A k m n * _]mulrC.
Qed.

End Forms.

Theorem reductions (F : fieldType) :
  [/\ forall (K G M P : finType) (N : Type) (Q : eqType) (A : K -> M -> N -> F)
          (blocks : K -> G -> P -> Q -> F) x n g q,
        structured_convolution A (grouped_theta blocks) x n (g, q) =
          structured_convolution A (fun k => blocks k g) (fun m p => x m (g, p)) n q,
      forall (K M P : finType) (N Q : Type) (A : K -> M -> N -> F)
          (depthwise : K -> P -> F) (pointwise : P -> Q -> F) x n q,
        structured_convolution A (separable_theta depthwise pointwise) x n q =
          feature_map pointwise (fun p => structured_convolution A
            (fun k (_ _ : unit) => depthwise k p) (fun m _ => x m p) n tt) q,
      forall (K M P H : finType) (N Q : Type) (A : K -> M -> N -> F)
          (controls : H -> K -> F) (channel : H -> P -> Q -> F) x n q,
        structured_convolution A (controlled_theta controls channel) x n q =
          structured_convolution (fun h m n => \sum_k controls h k * A k m n) channel x n q,
      forall (K P Q H : finType) (Theta : K -> P -> Q -> F),
        (family_rank (flattened Theta) <= #|H|)%N <->
        exists (controls : H -> K -> F) (channel : H -> P -> Q -> F),
          forall k p q, Theta k p q = controlled_theta controls channel k p q &
      forall (K G P Q : eqType) (H : finType) (controls : H -> K -> F)
          (blocks : H -> G -> P -> Q -> F) k p q,
        controlled_theta controls (fun h => grouped_theta blocks h) k p q =
          grouped_theta (fun k g p q => controlled_theta controls (fun h => blocks h g) k p q) k p q].
Proof.
split=> [K G M P N Q A blocks x n g q | K M P N Q A depthwise pointwise x n q
    | K M P H N Q A controls channel x n q | K P Q H Theta | K G P Q H controls blocks k p q].
- exact: grouped_convolution.
- exact: separable_convolution.
- exact: controlled_convolution.
- rewrite low_rank_iff; split=> [[L [R e]] | [controls [channel e]]].
    by exists (fun h k => L k h), (fun h p q => R h (p, q)) => k p q; exact: (e k (p, q)).
  by exists (fun k h => controls h k), (fun h => flattened channel h) => k [p q]; exact: e.
rewrite /controlled_theta /grouped_theta /mixed_product /flattened /=.
by case: eqP => // _; rewrite big1 // => h _; rewrite mulr0.
Qed.
