(** A19.prop1: in a basis, every tensor has exactly one parameter, and here it is.

    Let a be a family of tensors of shape S, indexed by K, that is a basis of the space of those
    tensors: independent, and every tensor of shape S is a combination. Then K has as many members as
    S has indices, and for every tensor Φ of shape ST the parameter

      Θ_k = Σ_s a*_ks Φ_s,

    a* being the dual basis, the inverse of the flattened and transposed a, satisfies Φ = a ∘ Θ, and
    it is the only one. Over every field, and for all finite S (the empty one too) and any T.
    The dual basis is determined by Σ_s a*_ks a_ls = [k = l], so that the way of flattening does not
    matter. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import structure.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Section Inversion.

Variables (F : fieldType) (K S : finType) (T : Type) (a : K -> S -> F).
Hypothesis basis : is_basis a.

(** The coefficients of Φ in the basis. *)
Lemma coefficients_reproduce (Phi : S -> T -> F) s t :
  mixed_product a (fun k t => \sum_r dual_basis a k r * Phi r t) s t = Phi s t.
Proof.
rewrite /mixed_product; under eq_bigr do rewrite big_distrr.
rewrite exchange_big (bigD1 s) //= [X in _ + X]big1 ?addr0 => [|r /negbTE nr].
  under eq_bigr do rewrite mulrCA mulrA.
  by rewrite -big_distrl /= basis_of_dual // eqxx mul1r.
under eq_bigr do rewrite mulrCA mulrA.
by rewrite -big_distrl /= basis_of_dual // nr mul0r.
Qed.

(** The dual basis recovers the parameter. *)
Lemma dual_recovers (Theta : K -> T -> F) k t :
  \sum_s dual_basis a k s * mixed_product a Theta s t = Theta k t.
Proof.
rewrite /mixed_product; under eq_bigr do rewrite big_distrr.
rewrite exchange_big (bigD1 k) //= [X in _ + X]big1 ?addr0 => [|l /negbTE nl].
  under eq_bigr do rewrite mulrA.
  by rewrite -big_distrl /= dual_of_basis // eqxx mul1r.
under eq_bigr do rewrite mulrA.
by rewrite -big_distrl /= dual_of_basis // eq_sym nl mul0r.
Qed.

(** A family that is dual to a is the dual basis. *)
Lemma dual_unique (b : K -> S -> F) :
  (forall k l, \sum_s b k s * a l s = (k == l)%:R) -> forall k s, b k s = dual_basis a k s.
Proof.
move=> dual k s.
transitivity (\sum_r b k r * \sum_l dual_basis a l s * a l r).
  rewrite (bigD1 s) //= basis_of_dual // eqxx mulr1 big1 ?addr0 // => r /negbTE nr.
  by rewrite basis_of_dual // eq_sym nr mulr0.
under eq_bigr do rewrite big_distrr.
rewrite exchange_big (bigD1 k) //= [X in _ + X]big1 ?addr0 => [|l /negbTE nl].
  under eq_bigr do rewrite mulrCA.
  by rewrite -big_distrr /= dual eqxx mulr1.
under eq_bigr do rewrite mulrCA.
by rewrite -big_distrr /= dual eq_sym nl mulr0.
Qed.

End Inversion.

Theorem prop1 (F : fieldType) (K S : finType) (T : Type) (a : K -> S -> F) :
  is_basis a ->
  [/\ #|K| = #|S|,
      forall Phi : S -> T -> F, exists Theta : K -> T -> F,
        [/\ forall k t, Theta k t = \sum_s dual_basis a k s * Phi s t,
            forall s t, mixed_product a Theta s t = Phi s t &
            forall Theta', (forall s t, mixed_product a Theta' s t = Phi s t) ->
              forall k t, Theta' k t = Theta k t] &
      forall b : K -> S -> F,
        (forall k l, \sum_s b k s * a l s = (k == l)%:R) <-> (forall k s, b k s = dual_basis a k s)].
Proof.
move=> basis; split=> [|Phi|b]; first exact: (basis_size basis).
  exists (fun k t => \sum_s dual_basis a k s * Phi s t); split=> [//|s t|Theta' e k t].
    exact: coefficients_reproduce.
  by rewrite -(dual_recovers basis); apply: eq_bigr => s _; rewrite e.
split=> [|eb k l]; first exact: dual_unique.
by rewrite -(dual_of_basis k l basis); apply: eq_bigr => s _; rewrite eb.
Qed.
