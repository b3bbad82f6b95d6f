(** A19.mixed: the rank of a mixed product, rank(a ∘ b) ≤ Σ_k rank(a_k) rank(b_k).

    The rank of a tensor is the least number of terms in which it is a sum of numbers times outer
    products of vectors, one vector an axis. For families a and b of tensors of shapes S and T,
    indexed by a finite K, let a_k be a sum of r_k such terms, and b_k of s_k. Then their mixed
    product a ∘ b = Σ_k a_k ⊗ b_k is one of Σ_k r_k s_k terms; so its rank is at most that, r_k and s_k
    being the ranks in particular. Over every field, for all K and for all shapes, with axes of no
    places and shapes of no axes among them.

    The terms' numbers are needed for shapes of no axes only, where the one outer product is 1. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import rank structure.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

(** The indices of tensors of a shape: a place on each axis. *)
Definition places (Axis : finType) (S : Axis -> nat) : Type := forall i, 'I_(S i).

(** The shape ST: the axes of both. *)
Definition joined (I J : finType) (S : I -> nat) (T : J -> nat) (x : I + J) : nat :=
  match x with inl i => S i | inr j => T j end.

Definition left_places (I J : finType) (S : I -> nat) (T : J -> nat)
    (s : places (joined S T)) : places S := fun i => s (inl i).

Definition right_places (I J : finType) (S : I -> nat) (T : J -> nat)
    (s : places (joined S T)) : places T := fun j => s (inr j).

(** A tensor of rank at most [r]: a sum of so many outer products, each with a number before it. *)
Definition sum_of_outer_products (F : fieldType) (Axis : finType) (S : Axis -> nat)
    (a : places S -> F) (r : nat) : Prop :=
  exists (c : 'I_r -> F) (u : 'I_r -> forall i, 'I_(S i) -> F),
    forall s, a s = \sum_h c h * \prod_i u h i (s i).

(** The rank is the least such number. *)
Definition is_tensor_rank (F : fieldType) (Axis : finType) (S : Axis -> nat)
    (a : places S -> F) (r : nat) : Prop :=
  sum_of_outer_products a r /\ forall r', sum_of_outer_products a r' -> (r <= r')%N.

(** The mixed product of eq. 1, of shape ST. *)
Definition mixed_tensor (F : fieldType) (K I J : finType) (S : I -> nat) (T : J -> nat)
    (a : K -> places S -> F) (b : K -> places T -> F) (s : places (joined S T)) : F :=
  mixed_product a b (left_places s) (right_places s).

Section Terms.

Variable F : fieldType.

(** The terms may be counted by any finite type. *)
Lemma terms_by_type (Axis Term : finType) (S : Axis -> nat) (a : places S -> F)
    (c : Term -> F) (u : Term -> forall i, 'I_(S i) -> F) :
  (forall s, a s = \sum_h c h * \prod_i u h i (s i)) -> sum_of_outer_products a #|Term|.
Proof.
move=> ea; exists (fun h => c (enum_val h)), (fun h => u (enum_val h)) => s.
by rewrite ea -sum_enum_val.
Qed.

(** The outer product of two outer products, as one. *)
Definition joined_vectors (I J : finType) (S : I -> nat) (T : J -> nat)
    (u : forall i, 'I_(S i) -> F) (v : forall j, 'I_(T j) -> F) (x : I + J) :
    'I_(joined S T x) -> F :=
  match x with inl i => u i | inr j => v j end.

Lemma outer_product_joined (I J : finType) (S : I -> nat) (T : J -> nat)
    (u : forall i, 'I_(S i) -> F) (v : forall j, 'I_(T j) -> F) (s : places (joined S T)) :
  \prod_x joined_vectors u v (s x) =
    (\prod_i u i (left_places s i)) * \prod_j v j (right_places s j).
Proof. exact: big_sumType. Qed.

Lemma mixed_terms (K I J : finType) (S : I -> nat) (T : J -> nat)
    (a : K -> places S -> F) (b : K -> places T -> F) (r r' : K -> nat) :
  (forall k, sum_of_outer_products (a k) (r k)) ->
  (forall k, sum_of_outer_products (b k) (r' k)) ->
  sum_of_outer_products (mixed_tensor a b) (\sum_k r k * r' k)%N.
Proof.
move=> /fin_all_exists[c /fin_all_exists[u ea]] /fin_all_exists[d /fin_all_exists[v eb]].
pose Term := [finType of {k : K & 'I_(r k) * 'I_(r' k)}%type].
have -> : (\sum_k r k * r' k = #|Term|)%N.
  rewrite card_tagged sumnE big_map big_enum.
  by apply: eq_bigr => k _; rewrite card_prod !card_ord.
apply: (@terms_by_type _ Term _ _
  (fun h => c (tag h) (tagged h).1 * d (tag h) (tagged h).2)
  (fun h => joined_vectors (u (tag h) (tagged h).1) (v (tag h) (tagged h).2))) => s.
apply: etrans (sig_big_dep xpredT (fun _ => xpredT) (fun k (h : 'I_(r k) * 'I_(r' k)) =>
  c k h.1 * d k h.2 * \prod_x joined_vectors (u k h.1) (v k h.2) (s x))).
apply: eq_bigr => k _; rewrite ea eb big_distrl /=.
rewrite -(pair_bigA _ (fun g h => c k g * d k h *
  \prod_x joined_vectors (u k g) (v k h) (s x))) /=.
apply: eq_bigr => g _; rewrite big_distrr; apply: eq_bigr => h _ /=.
by rewrite outer_product_joined mulrACA.
Qed.

End Terms.

Theorem mixed (F : fieldType) (K I J : finType) (S : I -> nat) (T : J -> nat)
    (a : K -> places S -> F) (b : K -> places T -> F) (r r' : K -> nat) :
  ((forall k, sum_of_outer_products (a k) (r k)) ->
   (forall k, sum_of_outer_products (b k) (r' k)) ->
   sum_of_outer_products (mixed_tensor a b) (\sum_k r k * r' k)%N) /\
  forall rank, (forall k, is_tensor_rank (a k) (r k)) -> (forall k, is_tensor_rank (b k) (r' k)) ->
    is_tensor_rank (mixed_tensor a b) rank -> (rank <= \sum_k r k * r' k)%N.
Proof.
split=> [|rank ra rb [_]]; first exact: mixed_terms.
by apply; apply: mixed_terms => k; [case: (ra k) | case: (rb k)].
Qed.
