(** Convolution over a structure, as A19 defines it: its mixed product, its
    rule, and what a basis is.

    A tensor of shape ⟨K⟩S is a family [a k s]; of its shape S only the index
    set matters here. A basis A of shape ⟨K, M, N⟩ is [A k m n], a parameter Θ
    of shape ⟨K, P, Q⟩ is [Theta k p q], an input is [x m p]. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention rank.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Section Definitions.

Variable F : fieldType.

(** Eq. 1: a ∘ b = Σ_k a_k ⊗ b_k. *)
Definition mixed_product (K : finType) (S T : Type)
    (a : K -> S -> F) (b : K -> T -> F) (s : S) (t : T) : F :=
  \sum_k a k s * b k t.

(** Eq. 2: the general linear transform, y_nq = Σ_mp x_mp Φ_mnpq. *)
Definition linear_transform (M P : finType) (N Q : Type)
    (Phi : M -> N -> P -> Q -> F) (x : M -> P -> F) (n : N) (q : Q) : F :=
  \sum_m \sum_p x m p * Phi m n p q.

(** Eq. 4: the convolution of basis A and parameter Θ, y = Σ_k A_kᵀ x Θ_k. It is
    an attention layer whose head k has the matrix A_kᵀ and the map Θ_k. *)
Definition structured_convolution (K M P : finType) (N Q : Type)
    (A : K -> M -> N -> F) (Theta : K -> P -> Q -> F) (x : M -> P -> F) (n : N) (q : Q) : F :=
  attention_layer (fun k n m => A k m n) Theta x n q.

(** Families of matrices and of maps as tensors with one index for both axes. *)
Definition flattened (K M N : Type) (A : K -> M -> N -> F) (k : K) (s : M * N) : F :=
  A k s.1 s.2.

(** A family is a basis of the space of tensors on [S]: independent, and it spans. *)
Definition is_basis (K S : finType) (a : K -> S -> F) : Prop :=
  (forall c : K -> F, (forall s, \sum_k c k * a k s = 0) -> forall k, c k = 0) /\
  (forall f : S -> F, exists c : K -> F, forall s, f s = \sum_k c k * a k s).

(** A matrix, or one for each channel, commutes with another matrix. *)
Definition commutes_with (Node : finType) (T : Type)
    (Phi : Node -> Node -> T -> F) (A : Node -> Node -> F) : Prop :=
  forall m n t, \sum_l Phi m l t * A l n = \sum_l A m l * Phi l n t.

End Definitions.

Section Rule.

Variables (F : fieldType) (K M P : finType) (N Q : Type).

(** Eq. 4 written out. *)
Lemma structured_convolution_entries (A : K -> M -> N -> F) (Theta : K -> P -> Q -> F) x n q :
  structured_convolution A Theta x n q =
    \sum_k \sum_m \sum_p A k m n * x m p * Theta k p q.
Proof.
apply: eq_bigr => k _; rewrite exchange_big; apply: eq_bigr => p _ /=.
by rewrite /attend big_distrl.
Qed.

Lemma eq_linear_transform (Phi Phi' : M -> N -> P -> Q -> F) x n q :
  (forall m p, Phi m n p q = Phi' m n p q) ->
  linear_transform Phi x n q = linear_transform Phi' x n q.
Proof. by move=> e; apply: eq_bigr => m _; apply: eq_bigr => p _; rewrite e. Qed.

(** Eq. 4 is eq. 2 with Φ = A ∘ Θ, eq. 3. *)
Lemma convolution_as_transform (A : K -> M -> N -> F) (Theta : K -> P -> Q -> F) x n q :
  structured_convolution A Theta x n q =
    linear_transform (fun m n p q =>
      mixed_product (flattened A) (flattened Theta) (m, n) (p, q)) x n q.
Proof.
rewrite structured_convolution_entries exchange_big; apply: eq_bigr => m _ /=.
rewrite exchange_big; apply: eq_bigr => p _ /=.
rewrite /mixed_product big_distrr; apply: eq_bigr => k _.
by rewrite /flattened /= mulrA [x m p * _]mulrC.
Qed.

End Rule.

Section Basis.

Variables (F : fieldType) (K S : finType) (a : K -> S -> F).

(** A basis, flattened, has a left and a right inverse, as it is square and of full rank. *)
Lemma basis_free_and_full : is_basis a ->
  row_free (family_matrix a) /\ row_full (family_matrix a).
Proof.
case=> free full; split.
  apply/inj_row_free => v v0; apply/rowP => i; rewrite mxE.
  rewrite -[i]enum_valK; apply: (free (fun k => v 0 (enum_rank k))) => s.
  have := congr1 (fun u : 'rV_(_) => u 0 (enum_rank s)) v0; rewrite !mxE; apply: etrans.
  rewrite -[LHS]sum_enum_val; apply: eq_bigr => k _.
  by rewrite mxE enum_valK enum_rankK.
rewrite -sub1mx; apply/row_subP => i; rewrite rowE mulmx1.
have [c ec] := full (fun s => (s == enum_val i)%:R).
apply/submxP; exists (\row_k c (enum_val k)); apply/rowP => j; rewrite !mxE eqxx /=.
rewrite -(inj_eq enum_val_inj) ec -[LHS]sum_enum_val.
by apply: eq_bigr => k _; rewrite !mxE.
Qed.

Lemma basis_size : is_basis a -> #|K| = #|S|.
Proof. by case/basis_free_and_full => /eqP free /eqP; rewrite free. Qed.

(** The dual basis, (Aᵀ)⁻¹ unflattened. *)
Definition dual_basis (k : K) (s : S) : F :=
  pinvmx (family_matrix a) (enum_rank s) (enum_rank k).

Lemma dual_of_basis k l : is_basis a -> \sum_s dual_basis k s * a l s = (k == l)%:R.
Proof.
case/basis_free_and_full => /mulmxVp /matrixP /(_ (enum_rank l) (enum_rank k)) + _.
rewrite !mxE (inj_eq enum_rank_inj) eq_sym => <-; rewrite -[LHS]sum_enum_val.
by apply: eq_bigr => s _; rewrite /dual_basis [family_matrix a _ _]mxE mulrC enum_valK enum_rankK.
Qed.

Lemma basis_of_dual s t : is_basis a -> \sum_k dual_basis k s * a k t = (s == t)%:R.
Proof.
case/basis_free_and_full => _ /mulVpmx /matrixP /(_ (enum_rank s) (enum_rank t)).
rewrite !mxE (inj_eq enum_rank_inj) => <-; rewrite -[LHS]sum_enum_val.
by apply: eq_bigr => k _; rewrite /dual_basis [family_matrix a _ _]mxE enum_valK enum_rankK.
Qed.

End Basis.
