(** A19.gat: graph attention networks as attention convolutions.

    The scores of a graph attention network are a(xΘ, xΘ; ξ, μ, ν, Λ), bi-affine attention of the
    mapped tokens (with Λ = 0, which is not needed here). They are a(x, x; ξ, Θμ, Θν, ΘΛΘᵀ): a
    self-attention convolution, whose Ξ is tied to Θ. Without the leaky ReLU, under the column-wise
    softmax of whatever exponential, ν and ξ are redundant, with every mask of the graph. Of a column
    that is masked as a whole this says nothing: its softmax is 0/0, which A19.attention leaves undefined,
    and both sides are zero here only by the library's convention x/0 = 0. The concatenation of heads that these networks take is a sum as in eq. 7,
    for Θ_k laid into block k of wider zero matrices. Over every field, for all sizes.

    An exponential is a function that takes sums to products and is never zero; a mask is the
    exponential of one with the values 0 and -∞. That ν matters with the leaky ReLU is in
    gat_relu.v. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention structure common_factor.
From Convattn.andreoli2019 Require Import biaffine transformer.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

(** The column-wise softmax of scores under a mask, which lets through where it is true. *)
Definition masked_softmax (F : fieldType) (M N : nat) (E : F -> F)
    (mask : 'I_M -> 'I_N -> bool) (A : 'M[F]_(M, N)) (m : 'I_M) (n : 'I_N) : F :=
  softmax (fun k => E (A k n) * (mask k n)%:R) m.

(** The parameter of head k in a layer of concatenated heads: Θ_k in its block, zero elsewhere. *)
Definition block_parameter (F : fieldType) (K P : finType) (D : Type)
    (Theta : K -> P -> D -> F) (k : K) (p : P) (f : K * D) : F :=
  if f.1 == k then Theta k p f.2 else 0.

Theorem gat (F : fieldType) :
  [/\ forall (N P Q : nat) (x : 'M[F]_(N, P)) (Theta : 'M[F]_(P, Q)) Lambda mu nu xi,
        bi_affine (x *m Theta) (x *m Theta) Lambda mu nu xi =
          bi_affine x x (Theta *m Lambda *m Theta^T) (Theta *m mu) (Theta *m nu) xi,
      forall (E : F -> F) (M N P Q : nat) (x : 'M[F]_(M, P)) (y : 'M[F]_(N, Q))
          (mask : 'I_M -> 'I_N -> bool) Lambda mu nu xi m n,
        exponential_law E ->
        masked_softmax E mask (bi_affine x y Lambda mu nu xi) m n =
          masked_softmax E mask (bi_affine x y Lambda mu 0 0) m n &
      forall (K M P : finType) (N D : Type) (A : K -> M -> N -> F) (Theta : K -> P -> D -> F) x n f,
        concatenated_heads A Theta x n f = structured_convolution A (block_parameter Theta) x n f].
Proof.
split=> [N P Q x Theta L mu nu xi | E M N P Q x y mask L mu nu xi m n expE
    | K M P N D A Theta x n [k d]].
- by rewrite /bi_affine trmx_mul !mulmxA.
- rewrite /masked_softmax.
  rewrite -[RHS](softmax_common_score _ (\sum_q nu q 0 * y n q + xi) (fun k => (mask k n)%:R) expE).
  by apply: eq_softmax => k; rewrite bi_affine_column.
rewrite /structured_convolution /attention_layer (bigD1 k) //= [X in _ + X]big1 ?addr0 => [|l nl].
  by apply: eq_bigr => p _; rewrite /block_parameter /= eqxx.
by rewrite /feature_map big1 // => p _; rewrite /block_parameter /= eq_sym (negbTE nl) mulr0.
Qed.
