(** S.saturation: how far heads are from one-hot at any sharpness, and a layer from its limit.

    In total variation, half the L1 distance of two rows, over an ordered field with an exponential:
    - A head with the bias M at its target and 0 elsewhere is (N - 1)/(e^M + N - 1) from the one-hot
      row, exactly, N being the number of keys; where its target is no key, its row is exactly 1/N.
    - A head with the scores -α|k - t|² on a rectangle of keys, α ≥ 0, for any target t of integer
      coordinates, within the rectangle or not, is within 1 - θ^-2 of the one-hot row of the nearest
      key, where θ = Σ_n e^(-αn²) over n = -L, ..., L for any L at least each side less one; the sum
      over all integers is greater than each of these, so the bound with it follows.
    - Two layers with the same maps, the rows of whose heads have the same sums, differ in an output
      feature by at most Σ_h TV_h (high_h - low_h), if all tokens' features X W_h lie between these
      bounds: so a layer differs from the convolution that its limit is by at most that much.
    Strictness of the second bound is not covered, nor is rounding. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import zify.
From Convattn.foundation Require Import attention patches exponential total_variation.
From Convattn.foundation Require quadratic_heads.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** The squared distance of a key from a target, on integer coordinates. *)
Definition squared_distance (rows columns : nat) (t : int * int) (k : 'I_rows * 'I_columns) : int :=
  ((k.1 : nat)%:Z - t.1) ^+ 2 + ((k.2 : nat)%:Z - t.2) ^+ 2.

(** e^(-αn²) on the integers, and its sum θ from -L to L. *)
Definition bell (R : realFieldType) (E : R -> R) (alpha : R) (n : int) : R :=
  E (- (alpha * (n ^+ 2)%:~R)).

Definition theta (R : realFieldType) (E : R -> R) (alpha : R) (L : nat) : R :=
  \sum_(i < L.*2.+1) bell E alpha (i%:Z - L%:Z).

Definition distance_weights (R : realFieldType) (E : R -> R) (alpha : R) (rows columns : nat)
    (t : int * int) (k : 'I_rows * 'I_columns) : R :=
  E (- (alpha * (squared_distance t k)%:~R)).

Section Quadratic.

Variables (R : realFieldType) (E : R -> R) (alpha : R).
Hypotheses (E_exp : is_exponential E) (alpha_ge0 : 0 <= alpha).

Lemma bell_positive n : 0 < bell E alpha n.
Proof. exact: exponential_positive. Qed.

(** On an axis: from the nearest place p on, a key at distance n scores at least αn² less. *)
Lemma axis_gap (side : nat) (t : int) (p k : 'I_side) :
  (forall k' : 'I_side, (p%:Z - t) ^+ 2 <= (k'%:Z - t) ^+ 2) ->
  (p%:Z - t) ^+ 2 + (k%:Z - p%:Z) ^+ 2 <= (k%:Z - t) ^+ 2.
Proof.
move=> nearest; have lt_side := quadratic_heads.nearest_bound p t.
have le_k := quadratic_heads.axis_nearest t (ltn_ord k).
have le_p := quadratic_heads.axis_nearest t (ltn_ord p).
have /= le := nearest (Ordinal lt_side).
suff -> : p%:Z = quadratic_heads.nearest side t by [].
by apply/eqP; rewrite -subr_eq0 -sqrf_eq0 eq_le sqr_ge0 andbT; move: le_p le; lia.
Qed.

(** A part of θ. *)
Lemma sum_bell_le (side L : nat) (p : 'I_side) : (side <= L.+1)%N ->
  \sum_(k < side) bell E alpha (k%:Z - p%:Z) <= theta E alpha L.
Proof.
move=> leL; pose f i := bell E alpha (i%:Z - L%:Z).
have lepL : (p <= L)%N by case: p => p /=; lia.
have -> : \sum_(k < side) bell E alpha (k%:Z - p%:Z) = \sum_(L - p <= i < L - p + side) f i.
  by rewrite sum_from; apply: eq_bigr => k _; congr bell; lia.
rewrite /theta -(big_mkord xpredT f) [X in _ <= X](@big_cat_nat _ _ _ (L - p)) //=; last by lia.
rewrite [X in _ <= _ + X](@big_cat_nat _ _ _ (L - p + side)) ?leq_addr //=; last by lia.
rewrite addrCA ler_addl addr_ge0 // sumr_ge0 // => i _; exact/ltW/bell_positive.
Qed.

(** On an axis: all weights together are at most θ times that of the nearest place. *)
Lemma axis_sum_le (side L : nat) (t : int) (p : 'I_side) : (side <= L.+1)%N ->
  (forall k : 'I_side, (p%:Z - t) ^+ 2 <= (k%:Z - t) ^+ 2) ->
  \sum_(k < side) bell E alpha (k%:Z - t) <= theta E alpha L * bell E alpha (p%:Z - t).
Proof.
move=> leL nearest.
apply: (@le_trans _ _ ((\sum_(k < side) bell E alpha (k%:Z - p%:Z)) * bell E alpha (p%:Z - t))).
  rewrite big_distrl; apply: ler_sum => k _ /=; rewrite /bell -exponential_add //.
  apply: exponential_monotone => //; rewrite -opprD -mulrDr ler_opp2 -intrD.
  by rewrite ler_wpmul2l // ler_int addrC axis_gap.
by rewrite ler_wpmul2r ?sum_bell_le // ltW ?bell_positive.
Qed.

Lemma quadratic_distance (rows columns L : nat) (t : int * int) (p : 'I_rows * 'I_columns) :
  (rows <= L.+1)%N -> (columns <= L.+1)%N ->
  (forall k : 'I_rows * 'I_columns, squared_distance t p <= squared_distance t k) ->
  total_variation (softmax (distance_weights E alpha t)) (one_hot R (Some p)) <=
    1 - (theta E alpha L ^+ 2)^-1.
Proof.
move=> le1 le2 nearest; apply: softmax_distance_le => [k|]; first exact: exponential_positive.
have splitE (k : 'I_rows * 'I_columns) : distance_weights E alpha t k =
    bell E alpha ((k.1 : nat)%:Z - t.1) * bell E alpha ((k.2 : nat)%:Z - t.2).
  by rewrite /bell -exponential_add // -opprD -mulrDr -intrD.
rewrite (eq_bigr _ (fun k _ => splitE k)) splitE expr2 mulrACA.
rewrite -(pair_bigA _ (fun (y : 'I_rows) (x : 'I_columns) =>
  bell E alpha (y%:Z - t.1) * bell E alpha (x%:Z - t.2))) /= -big_distrlr /=.
apply: ler_pmul; try by apply: sumr_ge0 => k _; exact/ltW/bell_positive.
  apply: axis_sum_le => // k; have := nearest (k, p.2).
  by rewrite /squared_distance ler_add2r.
apply: axis_sum_le => // k; have := nearest (p.1, k).
by rewrite /squared_distance ler_add2l.
Qed.

End Quadratic.

(** Layers with the same maps and rows of the same sums. *)
Lemma layer_distance (R : realFieldType) (Head Key In : finType) (Query Out : Type)
    (A S : Head -> Query -> Key -> R) (M : Head -> In -> Out -> R) (X : Key -> In -> R) q o
    (low high : Head -> R) :
  (forall h, \sum_k A h q k = \sum_k S h q k) ->
  (forall h k, low h <= feature_map (M h) (X k) o <= high h) ->
  `|attention_layer A M X q o - attention_layer S M X q o| <=
    \sum_h total_variation (A h q) (S h q) * (high h - low h).
Proof.
move=> sums bound; rewrite /attention_layer -sumrB.
apply: le_trans (ler_norm_sum _ _ _) _; apply: ler_sum => h _.
rewrite /attend !feature_map_sum.
exact: (@attend_distance _ _ _ _ _ (fun k o => feature_map (M h) (X k) o)).
Qed.

Theorem saturation (R : realFieldType) (E : R -> R) : is_exponential E ->
  [/\ forall (M : R) (Key : finType) (target : Key),
        total_variation (softmax (bias_weights (E M) (Some target))) (one_hot R (Some target)) =
          (#|Key|.-1)%:R / (E M + (#|Key|.-1)%:R),
      forall (M : R) (Key : finType) (k : Key),
        softmax (bias_weights (E M) None) k = #|Key|%:R^-1,
      forall (alpha : R) (rows columns L : nat) (t : int * int) (p : 'I_rows * 'I_columns),
        0 <= alpha -> (rows <= L.+1)%N -> (columns <= L.+1)%N ->
        (forall k : 'I_rows * 'I_columns, squared_distance t p <= squared_distance t k) ->
        total_variation (softmax (distance_weights E alpha t)) (one_hot R (Some p)) <=
          1 - (theta E alpha L ^+ 2)^-1
    & forall (Head Key In : finType) (Query Out : Type) (A S : Head -> Query -> Key -> R)
        (M : Head -> In -> Out -> R) (X : Key -> In -> R) q o (low high : Head -> R),
        (forall h, \sum_k A h q k = \sum_k S h q k) ->
        (forall h k, low h <= feature_map (M h) (X k) o <= high h) ->
        `|attention_layer A M X q o - attention_layer S M X q o| <=
          \sum_h total_variation (A h q) (S h q) * (high h - low h)].
Proof.
move=> E_exp; split.
- by move=> M Key target; rewrite bias_distance // exponential_positive.
- by move=> M Key k; rewrite /softmax /bias_weights sum_one mul1r.
- by move=> alpha rows columns L t p alpha_ge0; exact: quadratic_distance.
- by move=> Head Key In Query Out A S M X q o low high; exact: layer_distance.
Qed.
