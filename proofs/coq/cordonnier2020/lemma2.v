(** C20.lemma2: the quadratic encoding attends to one pixel, in the limit (amended).

    Let E be an exponential over an ordered field: positive, non-decreasing, from sums to products,
    exceeding every bound (the real one is such). On any image, for every query q and every shift Δ
    of whole pixels, the head with D_p = 3 and v = -α (1, -2Δ₁, -2Δ₂), r_δ = (|δ|², δ₁, δ₂), has

    1. as α → ∞, the weight 1 at the pixel nearest to q + Δ, and 0 elsewhere, in the limit; for
       α ≥ 0 every weight is within N E(-α) of that, N the number of pixels;
    2. that pixel is q + Δ wherever q + Δ is one: there k - q = Δ;
    3. at every α every weight is positive, so that with two pixels or more it is nowhere hard.

    The printed lemma says "equal" where only the limit holds, and names no query, while at those
    whose q + Δ is no pixel no key has k - q = Δ. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention grid exponential total_variation.
From Convattn.foundation Require Import sharp_limits quadratic_heads.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Theorem lemma2 (R : realFieldType) (E : R -> R) (rows columns : nat)
    (q : bare_grid rows columns) (shift : int * int) :
  is_exponential E -> unbounded E ->
  let attention alpha := softmax (quadratic_weights E alpha shift q) in
  let target := nearest_pixel q shift in
  [/\ forall k, tends_to (fun alpha => attention alpha k) (one_hot R (Some target) k),
      forall alpha k, 0 <= alpha ->
        `|attention alpha k - one_hot R (Some target) k| <= (rows * columns)%:R * E (- alpha),
      forall t : bare_grid rows columns, t.1%:Z = q.1%:Z + shift.1 -> t.2%:Z = q.2%:Z + shift.2 ->
        target = t
    & (1 < rows * columns)%N -> forall alpha k, 0 < attention alpha k < 1].
Proof.
move=> E_exp E_unbounded attention target.
have gt0 alpha k := quadratic_weights_gt0 E_exp alpha shift q k.
split=> [k | alpha k ge0 | t e1 e2 | two alpha k].
- exact: quadratic_tends_to_one_hot.
- rewrite mulrC; have := softmax_gap E_exp k (gt0 alpha)
    (fun k => nearest_gap (alpha := alpha) E_exp (shift := shift) (q := q) (k := k) ge0).
  by rewrite card_prod !card_ord.
- exact: nearest_pixel_target.
have [k' neq] : exists k', k' != k.
  have : (1 < #|bare_grid rows columns|)%N by rewrite card_prod !card_ord.
  rewrite (cardD1 k) inE /= add1n ltnS => /card_gt0P[k']; rewrite inE => /andP[neq _].
  by exists k'.
have S_gt0 := sum_positive k (gt0 alpha).
rewrite divr_gt0 //= ltr_pdivr_mulr // mul1r (bigD1 k) //= ltr_addl (bigD1 k') //=.
by rewrite ltr_paddr // sumr_ge0 // => k0 _; exact: ltW.
Qed.
