(** L21.theorem6 with content: on patches eight heads cannot express some kernel, with scores that see the tokens.

    Let P ≥ 2 and 3 ≤ K = 2 r + 1 ≤ 2 P + 1. For any channel pair there is a K × K kernel such that no layer with at
    most eight heads is its zero-padded convolution for all images, with attention that depends on the image in
    any way, as long as on every ray its weights tend to one limit where the image tends to zero, as weights
    that are continuous there do; over every ordered field, for every image of at least two patches a side, with
    a ring of zero patches of any width or with none, any value maps without positions and any bias. One
    kernel serves all. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention image grid rank limits.
From Convattn.sharpened Require Import content heads content_bounds.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Theorem theorem6_content (R : realFieldType) (In Out : finType) (c0 : In) (o0 : Out) (p r : nat) :
  (2 <= p)%N -> (1 <= r <= p)%N ->
  exists W : nat -> nat -> In -> Out -> R,
  forall (Head : finType) (rows columns a b : nat)
      (A : image_type R In -> Head -> bare_grid rows columns -> ringed_grid rows columns a b -> R)
      (A0 : Head -> bare_grid rows columns -> ringed_grid rows columns a b -> R)
      (M : Head -> patch_feature p p In -> patch_feature p p Out -> R)
      (bias : patch_feature p p Out -> R),
    (2 <= rows)%N -> (2 <= columns)%N -> (#|Head| <= 8)%N ->
    (forall X h q k, tends_at_zero (fun t => A (scaled_image t X) h q k) (A0 h q k)) ->
    ~ (forall X q t, attention_layer (A X) M (patch_token X) q t + bias t =
        convolution (p * rows) (p * columns) r r W X (p * q.1 + t.1.1)%N (p * q.2 + t.1.2)%N t.2).
Proof.
move=> lt1p ler; have [W nine _] := heads R c0 o0 lt1p lt1p ler ler.
exists W => Head rows columns a b A A0 M bias large1 large2 few lim equal.
have reach : (r <= p * 1)%N by rewrite muln1; case/andP: ler.
have [le _] := content_bounds reach reach large1 large2 lim equal.
by have := leq_trans nine le; rewrite leqNgt ltnS few.
Qed.
