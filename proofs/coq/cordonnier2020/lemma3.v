(** C20.lemma3: that the spans hold at every query does not give value maps (refuted).

    The printed Lemma 3 says that a layer whose heads' rows at q span e_(q+Δ) for all Δ, at every
    query q apart, is any K × K convolution for suitable values. It is not so. Take K = 1, an image
    of two pixels or more, as many heads as pixels, and let head i attend to pixel i from every query.
    These are rows of attention, zeros and a one; they span everything at every query; and yet no
    maps W^(h), of whatever rank, make the layer the convolution with W, unless W = 0. The smallest
    case is rows = 1, columns = 2, one channel, W = 1.

    The span condition is per query, while the values are shared by all queries. Over every field
    and for every number of channels. What does hold is S.lemma3; that the condition is necessary is
    [lemma3_necessary]. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention image heads grid pixels.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Theorem lemma3 (F : fieldType) (In Out : finType) (rows columns : nat)
    (W : nat -> nat -> In -> Out -> F) (c : In) (o : Out) :
  (1 < rows * columns)%N -> W 0%N 0%N c o != 0 ->
  let A (h q k : bare_grid rows columns) : F := (k == h)%:R in
  [/\ forall h q, \sum_k A h q k = 1,
      forall q (d : token_offset 0 0), exists phi : bare_grid rows columns -> F,
        forall k, one_hot F (bare_target q d) k = \sum_h phi h * A h q k
    & ~ (exists M : bare_grid rows columns -> In -> Out -> F,
          forall (X : image_type F In) (q : bare_grid rows columns) (o : Out),
            attention_layer A M (fun k => X k.1 k.2) q o =
              convolution rows columns 0 0 W X q.1 q.2 o)].
Proof.
move=> two_pixels nzW A; split=> [h q | q d | [M eq_conv]].
- by rewrite (bigD1 h) //= /A eqxx big1 ?addr0 // => k /negbTE ->.
- exists (one_hot F (bare_target q d)) => k; rewrite (bigD1 k) //= /A eqxx mulr1.
  by rewrite big1 ?addr0 // => h /negbTE nk; rewrite eq_sym nk mulr0.
have /card_gt1P[q [q' [_ _ neq]]] : (1 < #|bare_grid rows columns|)%N.
  by rewrite card_prod !card_ord.
pose X : image_type F In := fun y x c' => ((y == q.1) && (x == q.2) && (c' == c))%:R.
have same : convolution rows columns 0 0 W X q.1 q.2 o = convolution rows columns 0 0 W X q'.1 q'.2 o.
  by rewrite -!eq_conv.
move: same; rewrite !convolution_of_one_tap (bigD1 c) //= /X !eqxx mul1r.
rewrite big1 => [|c' /negbTE ->]; last by rewrite andbF mul0r.
rewrite big1 => [|c' _]; first by rewrite addr0 => /eqP; rewrite (negbTE nzW).
have -> : (q'.1 == q.1 :> nat) && (q'.2 == q.2 :> nat) = (q' == q) by rewrite -pair_eqE /= -!val_eqE.
by rewrite eq_sym (negbTE neq) mul0r.
Qed.
