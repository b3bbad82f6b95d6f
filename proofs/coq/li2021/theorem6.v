(** L21.theorem6 (amended): on patches, eight heads cannot express some kernel.

    Let P ≥ 2 and 3 ≤ K = 2 r + 1 ≤ 2 P + 1. For any channel pair there is a K × K kernel such that no layer
    with at most eight heads is its zero-padded convolution for all images. This holds over every field,
    for every image of at least two patches of P × P pixels a side, with a ring of zero patches of any
    width or with none, whatever the attention, so long as it does not depend on the image, and
    with any value maps and bias. One kernel serves all image sizes. It is as printed but for K ≥ 3
    and two patches a side, which the print leaves out, and for the wider range of K.

    The second half says why K = 1 is left out: there a single head suffices, for every kernel and P, with
    one value map for all image sizes, no ring, and hard attention: every query attends to its own patch
    with weight one.

    For limits see heads_limit, for content scores theorem6_content. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention image grid bare patches lower_bound.
From Convattn.sharpened Require Import heads.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Theorem theorem6 (F : fieldType) (In Out : finType) (p : nat) :
  (forall (c0 : In) (o0 : Out) (r : nat), (2 <= p)%N -> (1 <= r <= p)%N ->
    exists W : nat -> nat -> In -> Out -> F,
    forall (Head : finType) (rows columns a b : nat)
        (A : Head -> bare_grid rows columns -> ringed_grid rows columns a b -> F)
        (M : Head -> patch_feature p p In -> patch_feature p p Out -> F)
        (bias : patch_feature p p Out -> F),
      (2 <= rows)%N -> (2 <= columns)%N -> (#|Head| <= 8)%N ->
      ~ expresses r r A M bias W) /\
  (forall W : nat -> nat -> In -> Out -> F,
    exists M : patch_feature p p In -> patch_feature p p Out -> F,
    forall rows columns : nat,
    expresses 0 0 (fun (_ : unit) q => one_hot F (Some (image_key 0 0 q : ringed_grid rows columns 0 0)))
      (fun=> M) (fun=> 0) W).
Proof.
split=> [c0 o0 r lt1p ler | W].
  have [W _ bound] := heads F c0 o0 lt1p lt1p ler ler.
  exists W => Head rows columns a b A M bias large1 large2 few equal.
  by have := bound Head rows columns a b A M bias large1 large2 equal; rewrite leqNgt ltnS few.
exists (output_block 0 0 0 0 W 0 0) => rows columns X q t.
rewrite addr0 -(convolution_of_tokens W X q t (leq0n (p * 0)) (leq0n (p * 0))).
rewrite /attention_layer (bigD1 tt) //= [X in _ + X]big1 ?addr0; last by case.
rewrite (bigD1 (ord0, ord0)) //= [X in _ + X]big1 ?addr0 => [|[i j]]; last by rewrite !ord1.
apply: eq_feature_map => // s; rewrite attend_one_hot; congr patch_token; congr pair; apply: val_inj.
Qed.
