(** A certificate of equality at finite scores: what the checker asks is enough.

    The checker asks of the numbers c_hδ, u0_h, u1_h and V_hδ of each head

        Σ_h c_hδ V_hδ' = [δ = δ'],      Σ_h u0_h V_hδ' = 0,      Σ_h u1_h V_hδ' = 0,
        u0 ≥ 0,  u1 ≥ 0,  u0 + u1 > 0,  and for each δ  c_δ + u1 ≥ 0, and c_δ + u1 > 0 or u0 > 0,

    and of the ring that it be as wide as the token offsets reach. Then for every number of patches,
    over every ordered field: all weights of attention are positive and have the sum one at every
    query, so that each row is the softmax of finite scores, the logarithms of its weights; and the
    layer is the zero-padded convolution, exactly, for every kernel, image and number of channels. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention image grid dilated certified_heads framed.
From Convattn.checker Require Import interior.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** What the checker asks of a row at finite scores. *)
Definition finite_row (F : numFieldType) (Offset : finType) (c : Offset -> F) (u0 u1 : F) : bool :=
  [&& 0 <= u0, 0 <= u1, 0 < u0 + u1 &
      [forall d, (0 <= c d + u1) && ((0 < c d + u1) || (0 < u0))]].

Section Weights.

Variables (F : numFieldType) (Offset Key : finType) (target : Offset -> Key).
Hypothesis target_inj : injective target.
Variables (c : Offset -> F) (u0 u1 : F).

Lemma finite_weight_gt0 k : finite_row c u0 u1 -> 0 < shared_weight target c u0 u1 k.
Proof.
case/and4P=> ge0 ge1 gt01 /forallP fits.
have N0 : 0 < #|Key|%:R :> F by rewrite ltr0n; apply/card_gt0P; exists k.
have -> : shared_weight target c u0 u1 k =
    \sum_d c d * (k == target d)%:R + u1 + u0 / #|Key|%:R.
  rewrite /shared_weight mulrDl mulfK ?(lt0r_neq0 N0) // -addrA; congr (_ + _).
  by rewrite addrC.
have [d /eqP at_d|none] := pickP (fun d => k == target d).
  rewrite (bigD1 d) //= at_d eqxx mulr1 big1 ?addr0 => [|d' ne]; last first.
    by rewrite (inj_eq target_inj) eq_sym (negbTE ne) mulr0.
  have /andP[ge /orP[gt|gt]] := fits d.
    by rewrite ltr_paddr // divr_ge0 // ltW.
  by rewrite ltr_paddl // divr_gt0.
rewrite big1 ?add0r => [|d _]; last by rewrite none mulr0.
have : (0 < u0) || (0 < u1).
  by rewrite !lt0r ge0 ge1 !andbT -negb_and; apply: contraL gt01 => /andP[/eqP -> /eqP ->];
     rewrite addr0 ltxx.
by case/orP=> gt; [rewrite ltr_paddl // divr_gt0 | rewrite ltr_paddr // divr_ge0 // ltW].
Qed.

Lemma finite_total_gt0 (k : Key) : finite_row c u0 u1 -> 0 < row_total c u0 u1 #|Key|.
Proof.
move=> fin; have N0 : #|Key|%:R != 0 :> F.
  by rewrite pnatr_eq0 -lt0n; apply/card_gt0P; exists k.
rewrite -(sum_shared_weight target) // (bigD1 k) //= ltr_paddr ?finite_weight_gt0 //.
by apply: sumr_ge0 => k' _; rewrite ltW ?finite_weight_gt0.
Qed.

End Weights.

(** Rows that the checker takes for softmaxes are positive, with the sum one, at every query. *)
Lemma rows_are_softmax (F : numFieldType) (Head : finType)
    (low1 n1 high1 low2 n2 high2 p1 p2 K1 K2 d1 d2 : nat)
    (c : Head -> grid_offset p1 p2 K1 K2 d1 d2 -> F) (u0 u1 : Head -> F) (q : bare_grid n1 n2) :
  let A h := @certified_row F low1 n1 high1 low2 n2 high2 _ _ _ _ _ _ (c h) (u0 h) (u1 h) in
  ring_reaches low1 high1 (axis_offsets p1 K1 d1) ->
  ring_reaches low2 high2 (axis_offsets p2 K2 d2) ->
  (forall h, finite_row (c h) (u0 h) (u1 h)) ->
  [/\ forall h k, 0 < A h q k, forall h, \sum_k A h q k = 1 &
      forall h, 0 < row_total (c h) (u0 h) (u1 h) #|framed_grid low1 n1 high1 low2 n2 high2|].
Proof.
move=> A ring1 ring2 fin.
have inj := @framed_key_inj _ _ _ _ _ _ _ _ _ _ _ _ ring1 ring2 q.
have lt1 : (low1 + q.1 < low1 + n1 + high1)%N by rewrite -addnA ltn_add2l ltn_addr.
have lt2 : (low2 + q.2 < low2 + n2 + high2)%N by rewrite -addnA ltn_add2l ltn_addr.
pose own : framed_grid low1 n1 high1 low2 n2 high2 := (Ordinal lt1, Ordinal lt2).
have Z_gt0 h := finite_total_gt0 inj own (fin h).
split=> // [h k | h]; first by rewrite /A (certified_rowE ring1 ring2) divr_gt0 // finite_weight_gt0.
under eq_bigr do rewrite /A (certified_rowE ring1 ring2).
rewrite /shared_row -big_distrl /= sum_shared_weight ?divff ?gt_eqF //.
by rewrite ltr0n; apply/card_gt0P; exists own.
Qed.

Theorem equality (F : numFieldType) (Head In Out : finType)
    (low1 n1 high1 low2 n2 high2 p1 p2 K1 K2 d1 d2 : nat)
    (c V : Head -> grid_offset p1 p2 K1 K2 d1 d2 -> F) (u0 u1 : Head -> F)
    (W : nat -> nat -> In -> Out -> F) (X : image_type F In)
    (q : bare_grid n1 n2) (t : patch_feature p1 p2 Out) :
  let A h := @certified_row F low1 n1 high1 low2 n2 high2 _ _ _ _ _ _ (c h) (u0 h) (u1 h) in
  (forall d d', \sum_h c h d * V h d' = (d == d')%:R) ->
  (forall d, \sum_h u0 h * V h d = 0) -> (forall d, \sum_h u1 h * V h d = 0) ->
  (forall h, finite_row (c h) (u0 h) (u1 h)) ->
  ring_reaches low1 high1 (axis_offsets p1 K1 d1) ->
  ring_reaches low2 high2 (axis_offsets p2 K2 d2) ->
  [/\ forall h k, 0 < A h q k, forall h, \sum_k A h q k = 1 &
      attention_layer A
          (fun h => @certified_values F low1 n1 high1 low2 n2 high2 _ _ _ _ _ _ _ _
                      (c h) (V h) (u0 h) (u1 h) W)
          (framed_token X) q t =
        dilated_convolution (p1 * n1) (p2 * n2) K1 K2 d1 d2 W X
          (p1 * q.1 + t.1.1)%N (p2 * q.2 + t.1.2)%N t.2].
Proof.
move=> A eq_c eq_u0 eq_u1 fin ring1 ring2.
have [A_gt0 A_sum Z_gt0] := rows_are_softmax q ring1 ring2 fin.
by split=> //; apply: interior => // h; rewrite gt_eqF.
Qed.
