(** A19.orders: the three orders of contraction give the same result.

    Batched, the convolution of basis A and parameter Θ is Y_b = Σ_k A_kᵀ X_b Θ_k. Starting at each of
    the three sides of Figure 1,

      Y_bnq = Σ_kp R_bknp Θ_kpq,   R_bknp = Σ_m X_bmp A_kmn   (input and basis first),
      Y_bnq = Σ_km R'_bkmq A_kmn,  R'_bkmq = Σ_p X_bmp Θ_kpq  (input and parameter first),
      Y_bnq = Σ_mp X_bmp Φ_mnpq,   Φ_mnpq = Σ_k A_kmn Θ_kpq   (basis and parameter first),

    for all inputs, bases, parameters, sizes and fields. What each order costs is no part of this. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention structure.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Section Orders.

Variables (F : fieldType) (K M P : finType) (B N Q : Type).
Variables (A : K -> M -> N -> F) (Theta : K -> P -> Q -> F) (X : B -> M -> P -> F).

(** The results of the first step. *)
Definition input_by_basis (b : B) (k : K) (n : N) (p : P) : F := \sum_m X b m p * A k m n.
Definition input_by_parameter (b : B) (k : K) (m : M) (q : Q) : F := \sum_p X b m p * Theta k p q.
Definition basis_by_parameter (m : M) (n : N) (p : P) (q : Q) : F := \sum_k A k m n * Theta k p q.

(** And of the second. *)
Definition basis_first (b : B) (n : N) (q : Q) : F :=
  \sum_k \sum_p input_by_basis b k n p * Theta k p q.
Definition parameter_first (b : B) (n : N) (q : Q) : F :=
  \sum_k \sum_m input_by_parameter b k m q * A k m n.
Definition input_last (b : B) (n : N) (q : Q) : F :=
  \sum_m \sum_p X b m p * basis_by_parameter m n p q.

End Orders.

Theorem orders (F : fieldType) (K M P : finType) (B N Q : Type)
    (A : K -> M -> N -> F) (Theta : K -> P -> Q -> F) (X : B -> M -> P -> F) (b : B) (n : N) (q : Q) :
  [/\ basis_first A Theta X b n q = structured_convolution A Theta (X b) n q,
      parameter_first A Theta X b n q = structured_convolution A Theta (X b) n q &
      input_last A Theta X b n q = structured_convolution A Theta (X b) n q].
Proof.
split; last by rewrite convolution_as_transform.
- apply: eq_bigr => k _; apply: eq_bigr => p _; congr (_ * _).
  by apply: eq_bigr => m _; rewrite mulrC.
rewrite structured_convolution_entries; apply: eq_bigr => k _; apply: eq_bigr => m _.
rewrite /input_by_parameter big_distrl; apply: eq_bigr => p _ /=.
by rewrite mulrC mulrA.
Qed.
