(** S.finite, converse, at one query: the bare grid, and an interior query with a key out of reach.

    Cut an image of p₁ · rows by p₂ · columns pixels into patches of p₁ × p₂, and let [q] be an
    interior query: all keys at offsets in {-m..m} × {-n..n} from it exist. Let a layer with any number
    of heads, any attention weights and any maps of the tokens compute at [q], for every image, the
    convolution by W, where r₁ ≤ p₁ m and r₂ ≤ p₂ n, and let the blocks of W at the offsets be linearly
    independent (ρ = (2m+1)(2n+1)). If some key [k] lies at none of these offsets, and no head has
    weight zero there, as no softmax of finite scores has, then the layer has more heads than there are
    offsets, over every field. A bias added to the output would be zero, as the zero image shows.
    (There is no ring: the keys are the image's own tokens. The weights are the same for all images.) *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import zify.
From Convattn.foundation Require Import attention image grid rank bare nonzero_heads.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Theorem finite_necessary_interior (F : fieldType) (In Out Head : finType)
    (rows columns p1 p2 m n r1 r2 : nat)
    (W : nat -> nat -> In -> Out -> F)
    (A : Head -> bare_grid rows columns -> bare_grid rows columns -> F)
    (V : Head -> patch_feature p1 p2 In -> patch_feature p1 p2 Out -> F)
    (q k : bare_grid rows columns) :
  (r1 <= p1 * m)%N -> (r2 <= p2 * n)%N ->
  family_rank (fun (d : token_offset m n) (st : patch_feature p1 p2 In * patch_feature p1 p2 Out) =>
    output_block m n r1 r2 W d.1 d.2 st.1 st.2) = #|token_offset m n| ->
  (m <= q.1)%N -> (q.1 + m < rows)%N -> (n <= q.2)%N -> (q.2 + n < columns)%N ->
  (forall d : token_offset m n, bare_target q d != Some k) ->
  (forall h, A h q k != 0) ->
  (forall X t, attention_layer A V (bare_token X) q t =
    convolution (p1 * rows) (p2 * columns) r1 r2 W X
      (p1 * q.1 + t.1.1)%N (p2 * q.2 + t.1.2)%N t.2) ->
  (#|token_offset m n| < #|Head|)%N.
Proof.
move=> le1 le2 full lo1 hi1 lo2 hi2 off nz /(computes_on_all_tokens le1 le2) computes.
apply: (nonzero_heads (A := A) (V := V) (q0 := q) (k0 := k) (centre_offset m n) full) => [d|s t|] //.
  have := bare_target_exists q d.
  case e: (bare_target q d) => [k'|] /=; last first.
    case: d {e} => -[i lti] [j ltj] /= /esym/negP[].
    by move: (nat_of_ord q.1) (nat_of_ord q.2) lo1 hi1 lo2 hi2 => y x; lia.
  by exists q; exists k' => s t; rewrite (coefficient_at_offset computes s t e).
by rewrite (coefficient_off_field computes s t off).
Qed.
