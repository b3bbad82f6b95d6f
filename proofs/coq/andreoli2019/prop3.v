(** A19.prop3: the composition of two convolutions is a convolution.

    Let A', Θ' and A'', Θ'' be the bases and parameters of two convolutions of sizes K' and K'', of
    which the second takes the outputs of the first (N' = M'' and Q' = P''). Let ω be any bijection
    from K' × K'' to K. Then their composition is the convolution of size K whose basis and parameter
    are the products A_ω(k',k'') = A'_k' A''_k'' and Θ_ω(k',k'') = Θ'_k' Θ''_k'', for every input. Over
    every field, for all sizes. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention structure.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Section Composition.

Variables (F : fieldType) (K' K'' M L P R : finType) (N Q : Type).
Variables (A' : K' -> M -> L -> F) (A'' : K'' -> L -> N -> F).
Variables (Theta' : K' -> P -> R -> F) (Theta'' : K'' -> R -> Q -> F).

(** One head after another has the product of their matrices and that of their maps. *)
Lemma head_after_head (x : M -> P -> F) k' k'' n q :
  feature_map (Theta'' k'') (attend (fun l => A'' k'' l n)
      (fun l r => feature_map (Theta' k') (attend (fun m => A' k' m l) x) r)) q =
    feature_map (fun p q => \sum_r Theta' k' p r * Theta'' k'' r q)
      (attend (fun m => \sum_l A' k' m l * A'' k'' l n) x) q.
Proof.
pose a l p := attend (fun m => A' k' m l) x p.
have attended p : attend (fun m => \sum_l A' k' m l * A'' k'' l n) x p = \sum_l A'' k'' l n * a l p.
  rewrite /attend; under eq_bigr do rewrite big_distrl.
  rewrite exchange_big; apply: eq_bigr => l _ /=; rewrite /a /attend big_distrr.
  by apply: eq_bigr => m _ /=; rewrite mulrAC mulrC.
rewrite /feature_map; under [RHS]eq_bigr do rewrite attended big_distrr.
rewrite exchange_big; apply: eq_bigr => r _ /=.
rewrite -[X in X * _](feature_map_sum (Theta' k') (fun l => A'' k'' l n) a) /feature_map.
by rewrite big_distrl; apply: eq_bigr => p _; rewrite mulrA.
Qed.

(** The composition, with the pairs of members as members. *)
Lemma composition_by_pairs (x : M -> P -> F) n q :
  structured_convolution A'' Theta'' (structured_convolution A' Theta' x) n q =
    \sum_(k : K' * K'') feature_map (fun p q => \sum_r Theta' k.1 p r * Theta'' k.2 r q)
      (attend (fun m => \sum_l A' k.1 m l * A'' k.2 l n) x) q.
Proof.
rewrite -(pair_bigA _ (fun k' k'' => feature_map (fun p q => \sum_r Theta' k' p r * Theta'' k'' r q)
      (attend (fun m => \sum_l A' k' m l * A'' k'' l n) x) q)) exchange_big.
apply: eq_bigr => k'' _ /=; under [RHS]eq_bigr do rewrite -head_after_head.
rewrite /feature_map exchange_big; apply: eq_bigr => r _ /=; rewrite -big_distrl /=; congr (_ * _).
rewrite /attend /structured_convolution /attention_layer.
under eq_bigr do rewrite big_distrr.
by rewrite exchange_big.
Qed.

End Composition.

Theorem prop3 (F : fieldType) (K' K'' K M L P R : finType) (N Q : Type)
    (A' : K' -> M -> L -> F) (Theta' : K' -> P -> R -> F)
    (A'' : K'' -> L -> N -> F) (Theta'' : K'' -> R -> Q -> F)
    (omega : K' * K'' -> K) (A : K -> M -> N -> F) (Theta : K -> P -> Q -> F) :
  bijective omega ->
  (forall k' k'' m n, A (omega (k', k'')) m n = \sum_l A' k' m l * A'' k'' l n) ->
  (forall k' k'' p q, Theta (omega (k', k'')) p q = \sum_r Theta' k' p r * Theta'' k'' r q) ->
  #|K| = (#|K'| * #|K''|)%N /\
  forall x n q,
    structured_convolution A'' Theta'' (structured_convolution A' Theta' x) n q =
      structured_convolution A Theta x n q.
Proof.
move=> bij eA eTheta; split; first by rewrite -(bij_eq_card bij) card_prod.
move=> x n q; rewrite composition_by_pairs.
rewrite [RHS]/structured_convolution /attention_layer (reindex omega) /=; last exact: onW_bij.
apply: eq_bigr => -[k' k''] _; apply: eq_feature_map => //= p.
by apply: eq_bigr => m _; rewrite eA.
Qed.
