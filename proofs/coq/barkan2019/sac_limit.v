(** B19.sac, in the limit: one self-attentive head comes as close to any convolution as one likes.

    In the setting of B19.sac let there be a single head, with the filters W themselves and the bias
    M = log e at the distance (0, 0), over an ordered field, e > 0. If on all cells the convolution
    with W has values between two bounds, then at every query the layer is within (N - 1)/(e + N - 1)
    times their difference of it, and so within any tolerance once e is large enough. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention image heads filters total_variation.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Theorem sac_limit (R : realFieldType) (In : finType) (Query Out : Type)
    (height width rows columns : nat) (l : layout) (e : R) (W : nat -> nat -> In -> Out -> R)
    (X : image_type R In) (cell : Query -> 'I_rows * 'I_columns) (q : Query) (o : Out) (low high : R) :
  let N := (rows * columns)%N in
  let convolved (k : 'I_rows * 'I_columns) := filtered height width l W X k.1 k.2 o in
  let layer := self_attentive_layer height width l
    (fun _ : unit => fun q => softmax (bias_weights e (Some (cell q)))) (fun=> W) X q o in
  0 < e -> (forall k, low <= convolved k <= high) ->
  `|layer - convolved (cell q)| <= (N.-1)%:R / (e + (N.-1)%:R) * (high - low) /\
  forall tolerance, (N.-1)%:R * (high - low) <= tolerance * e ->
    `|layer - convolved (cell q)| <= tolerance.
Proof.
move=> N convolved layer e_gt0 bound; set t := cell q.
have keysN : #|[finType of 'I_rows * 'I_columns]| = N by rewrite card_prod !card_ord.
have w_gt0 k : 0 < bias_weights e (Some t) k.
  by rewrite /bias_weights; case: ifP => _ //; exact: ltr01.
have layerE : layer = attend (softmax (bias_weights e (Some t))) (fun k _ => convolved k) o.
  by rewrite /layer /self_attentive_layer (big_pred1 tt) // => -[].
have convolvedE : convolved t = attend (one_hot R (Some t)) (fun k _ => convolved k) o.
  by rewrite attend_one_hot.
have close : `|layer - convolved t| <= (N.-1)%:R / (e + (N.-1)%:R) * (high - low).
  rewrite layerE convolvedE -keysN -(bias_distance t) //; apply: attend_distance => //.
  by rewrite (softmax_sums_to_one t) // sum_one_hot.
split=> // tolerance small; apply: le_trans close _.
have N_ge0 : 0 <= (N.-1)%:R :> R by exact: ler0n.
have Z_gt0 : 0 < e + (N.-1)%:R by rewrite ltr_paddr.
rewrite mulrAC ler_pdivr_mulr // (le_trans small) // ler_wpmul2l ?ler_addl //.
have /andP[le_low le_high] := bound t.
rewrite -(pmulr_lge0 _ e_gt0) (le_trans _ small) // mulr_ge0 // subr_ge0.
exact: le_trans le_high.
Qed.
