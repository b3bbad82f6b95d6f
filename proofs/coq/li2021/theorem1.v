(** L21.theorem1 (its algebra, amended): (2m+1)² hard heads are any K × K convolution.

    Let K₁ = 2 r₁ + 1 and K₂ = 2 r₂ + 1, let the image have p₁ · rows by p₂ · columns pixels, cut
    into patches of p₁ × p₂, and let m ≥ r₁ / p₁ and n ≥ r₂ / p₂ (the least such are ⌈(K-1)/(2P)⌉).
    Surround the patches by a ring of m × n zero ones. Then the layer with one head for each offset
    in {-m..m} × {-n..n}, which attends with weight one to the key at that offset, and with the
    explicit W^O of the appendix, is the zero-padded convolution: for every kernel, image, number
    of channels, size and field. Tokens are the patches themselves: an injective embedding, which
    W^O undoes, is not covered here. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention image heads grid patches.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Theorem theorem1 (F : fieldType) (In Out : finType)
    (rows columns p1 p2 m n r1 r2 : nat)
    (W : nat -> nat -> In -> Out -> F) (X : image_type F In)
    (q : bare_grid rows columns) (t : patch_feature p1 p2 Out) :
  (r1 <= p1 * m)%N -> (r2 <= p2 * n)%N ->
  attention_layer
      (hard_attention F (@ringed_target rows columns m n))
      (fun d : token_offset m n => output_block m n r1 r2 W d.1 d.2)
      (patch_token X) q t =
    convolution (p1 * rows) (p2 * columns) r1 r2 W X
      (p1 * q.1 + t.1.1)%N (p2 * q.2 + t.1.2)%N t.2.
Proof.
by move=> le1 le2; rewrite hard_heads /ringed_target; exact: convolution_of_tokens.
Qed.
