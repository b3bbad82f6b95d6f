(** A19.prop2: the rule of convolution over a structure, and its least extreme.

    The convolution of basis A, a tensor of shape ⟨K, M, N⟩, and parameter Θ, of shape ⟨K, P, Q⟩, is
    y = Σ_k A_kᵀ x Θ_k (eq. 4). It is the linear transform y_nq = Σ_mp x_mp Φ_mnpq (eq. 2) with
    Φ = A ∘ Θ (eq. 3), for all inputs x; in particular it is linear in x. If K = 1 and A_1 = I, each
    entry is mapped by Θ_1, whatever the others are. Over every field, for all sizes.

    The other extreme, K = MN, where every linear transform is one, is in prop2_full.v. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention structure.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

(** Eq. 4 is linear in the input. *)
Lemma convolution_linear (F : fieldType) (K M P : finType) (N Q : Type)
    (A : K -> M -> N -> F) (Theta : K -> P -> Q -> F) c (x x' : M -> P -> F) n q :
  structured_convolution A Theta (fun m p => c * x m p + x' m p) n q =
    c * structured_convolution A Theta x n q + structured_convolution A Theta x' n q.
Proof.
rewrite big_distrr -big_split; apply: eq_bigr => k _ /=.
rewrite -feature_map_scale -feature_map_add; apply: eq_feature_map => // p.
rewrite /attend big_distrr -big_split; apply: eq_bigr => m _ /=.
by rewrite mulrDr mulrCA.
Qed.

(** One matrix, the identity: the 1 × 1 convolution. *)
Lemma convolution_of_identity (F : fieldType) (M P : finType) (Q : Type)
    (Theta : unit -> P -> Q -> F) (x : M -> P -> F) n q :
  structured_convolution (fun _ m n => (m == n)%:R) Theta x n q = feature_map (Theta tt) (x n) q.
Proof.
rewrite /structured_convolution /attention_layer (bigD1 tt) //= big1 ?addr0 => [|[] //].
apply: eq_feature_map => // p; rewrite /attend (bigD1 n) //= eqxx mul1r big1 ?addr0 //.
by move=> m /negbTE ->; rewrite mul0r.
Qed.

Theorem prop2 (F : fieldType) (M P : finType) (N Q : Type) :
  [/\ forall (K : finType) (A : K -> M -> N -> F) (Theta : K -> P -> Q -> F) x n q,
        structured_convolution A Theta x n q =
          linear_transform (fun m n p q =>
            mixed_product (flattened A) (flattened Theta) (m, n) (p, q)) x n q,
      forall (K : finType) (A : K -> M -> N -> F) (Theta : K -> P -> Q -> F) c x x' n q,
        structured_convolution A Theta (fun m p => c * x m p + x' m p) n q =
          c * structured_convolution A Theta x n q + structured_convolution A Theta x' n q &
      forall (Theta : unit -> P -> Q -> F) (x : M -> P -> F) (m : M) q,
        structured_convolution (fun _ m n => (m == n)%:R) Theta x m q =
          \sum_p x m p * Theta tt p q].
Proof.
split=> [K A Theta x n q | K A Theta c x x' n q | Theta x m q].
- exact: convolution_as_transform.
- exact: convolution_linear.
exact: convolution_of_identity.
Qed.
