(** S.finite, converse: as many heads as offsets do not compute the convolution at finite parameters.

    In the setting of L21's Theorem 1 (patches of p₁ × p₂, a ring of m × n zero patches), let a layer
    with any number of heads compute the zero-padded convolution by W at every query and for every
    image, with attention weights that are nowhere zero, as a softmax of finite scores has them, and
    any maps of the tokens. Let the blocks of W at the (2m+1)(2n+1) offsets be linearly independent
    (ρ = (2m+1)(2n+1)). Let the image have more than m rows and more than n columns of patches, so that
    each offset occurs between two of its tokens, and more than m + 1 rows or more than n + 1 columns,
    so that some token is out of reach from another. Then the layer has more heads than there are
    offsets, over every field. A bias added to the output would be zero, as the zero image shows. (The
    attention weights are the same for every image; they need not be relative, nor sum to one. That a
    key of the ring is out of reach is not enough: see finite_small.) *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention image grid rank bare zero_ring nonzero_heads.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Theorem finite_necessary (F : fieldType) (In Out Head : finType)
    (rows columns p1 p2 m n r1 r2 : nat)
    (W : nat -> nat -> In -> Out -> F)
    (A : Head -> bare_grid rows columns -> ringed_grid rows columns m n -> F)
    (V : Head -> patch_feature p1 p2 In -> patch_feature p1 p2 Out -> F) :
  (r1 <= p1 * m)%N -> (r2 <= p2 * n)%N ->
  family_rank (fun (d : token_offset m n) (st : patch_feature p1 p2 In * patch_feature p1 p2 Out) =>
    output_block m n r1 r2 W d.1 d.2 st.1 st.2) = #|token_offset m n| ->
  (m < rows)%N -> (n < columns)%N -> (m.+1 < rows)%N || (n.+1 < columns)%N ->
  (forall h q k, A h q k != 0) ->
  (forall X q t, attention_layer A V (patch_token X) q t =
    convolution (p1 * rows) (p2 * columns) r1 r2 W X
      (p1 * q.1 + t.1.1)%N (p2 * q.2 + t.1.2)%N t.2) ->
  (#|token_offset m n| < #|Head|)%N.
Proof.
move=> le1 le2 full ltm ltn wide nz computes.
pose B h q k := A h q (image_key m n k).
have {}computes q : forall X t, attention_layer B V X q t =
    bare_convolution (fun d : token_offset m n => output_block m n r1 r2 W d.1 d.2) X q t.
  apply: computes_on_all_tokens => // X t; rewrite -computes.
  by apply: eq_bigr => h _; apply: eq_feature_map => // s; rewrite attend_ringed.
have [q0 [k0 off]] := token_out_of_reach ltm ltn wide.
apply: (nonzero_heads (A := B) (V := V) (q0 := q0) (k0 := k0) (centre_offset m n) full) =>
    [d|s t|h]; last exact: nz.
  have [q [k e]] := offset_occurs d ltm ltn.
  by exists q, k => s t; rewrite (coefficient_at_offset (computes q) s t e).
by rewrite (coefficient_off_field (computes q0) s t off).
Qed.
