(** A19.transformer: scaled dot products and the output projection are factorisations.

    Eq. 9: with Λ = Λ_key Λ_queryᵀ, which is the mixed product Λ_keyᵀ ∘ Λ_queryᵀ, the bi-linear scores
    Σ_pq x_mp Λ_pq y_nq are the dot products of the keys x Λ_key with the queries y Λ_query, of D
    features. The matrices Λ of this form are those of rank at most D, and no others.

    Eq. 10: concatenate the heads h_k = A_kᵀ x Θ_value,k, of D features each, and multiply by Θ_Oᵀ, Θ_O
    of shape ⟨Q, KD⟩. The result is the convolution of eq. 7, Σ_k A_kᵀ x Θ_k, with
    Θ_k = Θ_value,k Θ_O,kᵀ = Θ_value,kᵀ ∘ Θ_O,kᵀ, for all matrices A_k, whatever they depend on.
    For given A_k with a causal mask, (A_k)_mn = 0 for m > n, the output at n does not see the inputs
    after n.
    Over every field, for all sizes.

    The factor 1/√D, which goes into either of Λ_key and Λ_query, is no part of this. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention rank rank_factors structure.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

(** Λ_key Λ_queryᵀ, and likewise Θ_value Θ_Oᵀ. *)
Definition factored (F : fieldType) (P Q : Type) (D : finType)
    (U : P -> D -> F) (V : Q -> D -> F) (p : P) (q : Q) : F :=
  \sum_d U p d * V q d.

(** The heads h_k side by side: feature (k, d) of the token n. *)
Definition concatenated_heads (F : fieldType) (K M P : finType) (N D : Type)
    (A : K -> M -> N -> F) (value : K -> P -> D -> F) (x : M -> P -> F) (n : N) (f : K * D) : F :=
  feature_map (value f.1) (attend (fun m => A f.1 m n) x) f.2.

(** The scores are dot products. *)
Lemma scores_are_dot_products (F : fieldType) (P Q D : finType)
    (U : P -> D -> F) (V : Q -> D -> F) (x : P -> F) (y : Q -> F) :
  \sum_p \sum_q x p * factored U V p q * y q = \sum_d feature_map U x d * feature_map V y d.
Proof.
rewrite /factored /feature_map.
under [RHS]eq_bigr do rewrite big_distrl /=; under [RHS]eq_bigr do under eq_bigr do rewrite big_distrr.
rewrite [RHS]exchange_big; apply: eq_bigr => p _ /=; rewrite exchange_big; apply: eq_bigr => q _ /=.
rewrite big_distrr big_distrl; apply: eq_bigr => d _ /=.
by rewrite -!mulrA; congr (_ * (_ * _)); rewrite mulrC.
Qed.

(** Concatenating and projecting is summing. *)
Lemma concatenation_is_sum (F : fieldType) (K M P D : finType) (N Q : Type)
    (A : K -> M -> N -> F) (value : K -> P -> D -> F) (output : Q -> K * D -> F) x n q :
  \sum_f concatenated_heads A value x n f * output q f =
    structured_convolution A (fun k => factored (value k) (fun q d => output q (k, d))) x n q.
Proof.
transitivity (\sum_k \sum_d concatenated_heads A value x n (k, d) * output q (k, d)).
  by rewrite pair_bigA; apply: eq_bigr => -[].
apply: eq_bigr => k _; rewrite /concatenated_heads /feature_map /factored /=.
under eq_bigr do rewrite big_distrl /=; rewrite exchange_big; apply: eq_bigr => p _ /=.
by rewrite big_distrr; apply: eq_bigr => d _ /=; rewrite mulrA.
Qed.

Theorem transformer (F : fieldType) (D : finType) :
  [/\ forall (P Q : finType) (key : P -> D -> F) (query : Q -> D -> F) (x : P -> F) (y : Q -> F),
        \sum_p \sum_q x p * factored key query p q * y q =
          \sum_d feature_map key x d * feature_map query y d,
      forall (P Q : finType) (Lambda : P -> Q -> F),
        (family_rank Lambda <= #|D|)%N <->
        exists (key : P -> D -> F) (query : Q -> D -> F),
          forall p q, Lambda p q = factored key query p q,
      forall (P Q : finType) (U : P -> D -> F) (V : Q -> D -> F) p q,
        factored U V p q = mixed_product (fun d p => U p d) (fun d q => V q d) p q,
      forall (K M P : finType) (N Q : Type) (A : K -> M -> N -> F) (value : K -> P -> D -> F)
          (output : Q -> K * D -> F) x n q,
        \sum_f concatenated_heads A value x n f * output q f =
          structured_convolution A (fun k => factored (value k) (fun q d => output q (k, d))) x n q &
      forall (K P : finType) (Q : Type) (nodes : nat) (A : K -> 'I_nodes -> 'I_nodes -> F)
          (Theta : K -> P -> Q -> F) (x x' : 'I_nodes -> P -> F) (n : 'I_nodes) q,
        (forall k (m : 'I_nodes), (n < m)%N -> A k m n = 0) ->
        (forall m : 'I_nodes, (m <= n)%N -> x m =1 x' m) ->
        structured_convolution A Theta x n q = structured_convolution A Theta x' n q].
Proof.
split=> [P Q key query x y | P Q L | P Q U V p q // | K M P N Q A value output x n q
    | K P Q nodes A Theta x x' n q masked e].
- exact: scores_are_dot_products.
- split=> [/low_rank_factors[U [V eL]] | [U [V eL]]]; first by exists U, (fun q d => V d q).
  exact: (family_rank_product (L := U) (R := fun d q => V q d)).
- exact: concatenation_is_sum.
apply: eq_bigr => k _; apply: eq_feature_map => // p; apply: eq_bigr => m _.
by have [le|lt] := leqP m n; [rewrite e | rewrite masked // !mul0r].
Qed.
