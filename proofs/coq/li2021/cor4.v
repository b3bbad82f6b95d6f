(** L21.cor4: nine heads are any convolution with K ≤ 2P + 1 (sharpened from K < 2P).

    Let K₁ = 2 r₁ + 1 ≤ 2 p₁ + 1 and K₂ = 2 r₂ + 1 ≤ 2 p₂ + 1, and let the image of p₁ · rows by
    p₂ · columns pixels, cut into patches of p₁ × p₂, stand in a ring of one zero patch. Then the
    layer with one hard head for each of the nine offsets in {-1, 0, 1}² and with the explicit W^O
    is the zero-padded convolution: for every kernel, image, number of channels, size and field.

    On an axis with p > 0 the kernel reaches no further than the next patch iff K ≤ 2p + 1, so the
    construction takes more than three offsets beyond. That nine are then needed, too, and hard
    attention's limit, are not stated here. Tokens are the patches themselves: an injective
    embedding, which W^O undoes, is not covered here. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import zify.
From Convattn.foundation Require Import attention image heads grid patches.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.


(** The reach ⌈r / P⌉ is at most one patch iff r ≤ P. *)
Lemma reach_one (p r : nat) : (0 < p)%N -> (patch_reach p r <= 1)%N = (r <= p)%N.
Proof. by move=> lt0p; rewrite /patch_reach -ltnS ltn_divLR //; lia. Qed.

Theorem cor4 (F : fieldType) (In Out : finType) (rows columns p1 p2 r1 r2 : nat) :
  [/\ #|token_offset 1 1| = 9%N,
      (0 < p1)%N -> (0 < p2)%N ->
        (patch_reach p1 r1 <= 1)%N && (patch_reach p2 r2 <= 1)%N =
        (r1.*2.+1 <= p1.*2.+1)%N && (r2.*2.+1 <= p2.*2.+1)%N
    & (r1.*2.+1 <= p1.*2.+1)%N -> (r2.*2.+1 <= p2.*2.+1)%N ->
      forall (W : nat -> nat -> In -> Out -> F) (X : image_type F In)
        (q : bare_grid rows columns) (t : patch_feature p1 p2 Out),
        attention_layer (hard_attention F (@ringed_target rows columns 1 1))
            (fun d : token_offset 1 1 => output_block 1 1 r1 r2 W d.1 d.2) (patch_token X) q t =
          convolution (p1 * rows) (p2 * columns) r1 r2 W X
            (p1 * q.1 + t.1.1)%N (p2 * q.2 + t.1.2)%N t.2].
Proof.
split=> [|lt0p1 lt0p2|le1 le2 W X q t]; first by rewrite card_prod !card_ord.
  by rewrite !reach_one // !ltnS !leq_double.
by rewrite hard_heads /ringed_target convolution_of_tokens // muln1 -leq_double -ltnS.
Qed.
