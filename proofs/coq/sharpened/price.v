(** S.price for one kernel: two heads that come near must have large maps.

    Let a convolution on pixels read the pixel itself into one output channel, and the difference of the
    left and the right neighbour into another; its flattened form F = (1, 0, 0; 0, 1, -1), at the pixel
    itself, the left and the right one, has the rank 2. Let the layer of two heads with weights between
    0 and 1 and value maps of entries at most B be off it by at most e ≤ 1 at every output of every image
    of one row, whose pixels lie between -1 and 1. Then 2 e B ≥ (1 - e)(1 - 4 e): the error times the
    size of the maps stays above a bound that tends to 1/2 as e does to 0. This holds over every
    ordered field, for every number of pixels from three on, with a ring of zero pixels of any width or
    with none, whatever the attention, so long as it does not depend on the image.

    Not covered: other kernels and norms, the layers that attain the order, for which see
    kernel_limit, and roundoff. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring zify.
From Convattn.foundation Require Import attention image grid patches bare rank.
From Convattn.foundation Require Import flattened_kernel lower_bound.
From Convattn.sharpened Require Import heads_pixels.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory Num.Theory Order.Theory.
Local Open Scope ring_scope.

Lemma le_moved (F : realFieldType) (p q p' q' : F) : p' <= q' -> q - p = q' - p' -> p <= q.
Proof. by move=> le eq; rewrite -subr_ge0 eq subr_ge0. Qed.

Section Price.

Variables (F : realFieldType) (e B : F).
Variables (v1 v2 w1 w2 a1 a2 b1 b2 c1 c2 : F).

(** Head h has the map (v_h, w_h) and the weights a_h, b_h, c_h at the pixel, the left and the right one. *)
Hypothesis size1 : `|w1| <= B.
Hypothesis size2 : `|w2| <= B.
Hypothesis a1le : a1 <= 1.
Hypothesis a2le : a2 <= 1.
Hypothesis a1ge : 0 <= a1.
Hypothesis a2ge : 0 <= a2.
Hypothesis b1ge : 0 <= b1.
Hypothesis b2ge : 0 <= b2.
Hypothesis c1ge : 0 <= c1.
Hypothesis c2ge : 0 <= c2.
Hypothesis va : `|v1 * a1 + v2 * a2 - 1| <= e.
Hypothesis wa : `|w1 * a1 + w2 * a2| <= e.
Hypothesis vb : `|v1 * b1 + v2 * b2| <= e.
Hypothesis wb : `|w1 * b1 + w2 * b2 - 1| <= e.
Hypothesis vc : `|v1 * c1 + v2 * c2| <= e.
Hypothesis wc : `|w1 * c1 + w2 * c2 + 1| <= e.

Local Notation s1 := (b1 + c1).
Local Notation s2 := (b2 + c2).

(** The second channel needs weights at the neighbours. *)
Lemma neighbours_need_weight : 2%:R * (1 - e) <= B * (s1 + s2).
Proof.
have le1 : w1 * b1 + w2 * b2 - (w1 * c1 + w2 * c2) <= B * (s1 + s2).
  have part w b c : `|w| <= B -> 0 <= b -> 0 <= c -> w * b - w * c <= B * (b + c).
    move=> small b0 c0; rewrite mulrDr ler_add //; apply: le_trans (ler_norm _) _.
      by rewrite normrM (ger0_norm b0) ler_wpmul2r.
    by rewrite normrN normrM (ger0_norm c0) ler_wpmul2r.
  have -> : w1 * b1 + w2 * b2 - (w1 * c1 + w2 * c2) = (w1 * b1 - w1 * c1) + (w2 * b2 - w2 * c2) by ring.
  by rewrite mulrDr ler_add ?part.
apply: le_trans le1; move: wb wc; rewrite !ler_norml => /andP [lb _] /andP [_ lc].
by apply: le_moved (ler_sub lb lc) _; ring.
Qed.

Section Near.

Hypothesis near : 4%:R * e < 1.

Local Notation g := ((v1 * a1 + v2 * a2) * (w1 * b1 + w2 * b2) - (v1 * b1 + v2 * b2) * (w1 * a1 + w2 * a2)).
Local Notation y := (v1 * s1 + v2 * s2).
Local Notation z := (w1 * s1 + w2 * s2).

Definition solution1 : F := ((w1 * b1 + w2 * b2) * y - (v1 * b1 + v2 * b2) * z) / g.
Definition solution2 : F := ((v1 * a1 + v2 * a2) * z - (w1 * a1 + w2 * a2) * y) / g.

Lemma error_ge0 : 0 <= e. Proof. exact: le_trans (normr_ge0 _) va. Qed.

Lemma minor_neq0 : g != 0.
Proof.
have e0 := error_ge0.
have half : 2%:R * e < 1 by apply: le_lt_trans near; rewrite ler_wpmul2r ?ler_nat.
have e1 : 0 <= 1 - e.
  rewrite subr_ge0; apply: ltW; apply: le_lt_trans near.
  by rewrite -[X in X <= _]mul1r ler_wpmul2r ?ler1n.
suff : 0 < g by apply: lt0r_neq0.
move: va wb; rewrite !ler_norml !ler_subr_addr ![- e + 1]addrC => /andP [la _] /andP [lb _].
have big : (1 - e) * (1 - e) <= (v1 * a1 + v2 * a2) * (w1 * b1 + w2 * b2) by rewrite ler_pmul.
have small : (v1 * b1 + v2 * b2) * (w1 * a1 + w2 * a2) <= e * e.
  apply: le_trans (ler_norm _) _; rewrite normrM ler_pmul //.
apply: lt_le_trans (ler_sub big small).
have -> : (1 - e) * (1 - e) - e * e = 1 - 2%:R * e by ring.
by rewrite subr_gt0.
Qed.

(** The neighbours' weights are small where the sum of their columns is. *)
Lemma weights1 : s1 = a1 * solution1 + b1 * solution2.
Proof. by rewrite /solution1 /solution2; field; exact: minor_neq0. Qed.

Lemma weights2 : s2 = a2 * solution1 + b2 * solution2.
Proof. by rewrite /solution1 /solution2; field; exact: minor_neq0. Qed.

Lemma column1 : (v1 * a1 + v2 * a2) * solution1 + (v1 * b1 + v2 * b2) * solution2 = y.
Proof. by rewrite /solution1 /solution2; field; exact: minor_neq0. Qed.

Lemma column2 : (w1 * a1 + w2 * a2) * solution1 + (w1 * b1 + w2 * b2) * solution2 = z.
Proof. by rewrite /solution1 /solution2; field; exact: minor_neq0. Qed.

Lemma near_solution (p q t : F) : `|p - 1| <= e -> `|q| <= e -> `|t| <= 2%:R * e ->
  forall x x', p * x + q * x' = t -> `|x| <= 2%:R * e + e * (`|x| + `|x'|).
Proof.
move=> lep leq let_ x x' eq.
have same : x = t - ((p - 1) * x + q * x') by rewrite -eq; ring.
have le : `|(p - 1) * x + q * x'| <= e * (`|x| + `|x'|).
  by apply: le_trans (ler_norm_add _ _) _; rewrite !normrM mulrDr ler_add // ler_wpmul2r.
rewrite {1}same; exact: le_trans (ler_norm_sub _ _) (ler_add let_ le).
Qed.

Lemma sum_small (p q : F) : `|p| <= e -> `|q| <= e -> `|p + q| <= 2%:R * e.
Proof.
move=> lep leq; apply: le_trans (ler_norm_add _ _) _.
by rewrite (_ : 2%:R * e = e + e) ?ler_add //; ring.
Qed.

(** Both coordinates are small. *)
Lemma solution_small : exists X, [/\ `|solution1| <= X, `|solution2| <= X & (1 - 2%:R * e) * X <= 2%:R * e].
Proof.
have e0 := error_ge0.
have lty : `|y| <= 2%:R * e.
  by rewrite (_ : y = (v1 * b1 + v2 * b2) + (v1 * c1 + v2 * c2)) ?sum_small //; ring.
have ltz : `|z| <= 2%:R * e.
  by rewrite (_ : z = (w1 * b1 + w2 * b2 - 1) + (w1 * c1 + w2 * c2 + 1)) ?sum_small //; ring.
have le1 := near_solution va vb lty column1.
have le2 : `|solution2| <= 2%:R * e + e * (`|solution2| + `|solution1|).
  by apply: (near_solution wb wa ltz); rewrite addrC column2.
exists (Num.max `|solution1| `|solution2|); rewrite !le_maxr !lexx ?orbT; split=> //.
set X := Num.max _ _; have X1 : `|solution1| <= X by rewrite le_maxr lexx.
have X2 : `|solution2| <= X by rewrite le_maxr lexx orbT.
have XX : X <= 2%:R * e + e * (X + X).
  rewrite {1}/X le_maxl; apply/andP; split.
    by apply: le_trans le1 _; rewrite ler_add2l ler_wpmul2l // ler_add.
  by apply: le_trans le2 _; rewrite ler_add2l ler_wpmul2l // ler_add.
by apply: le_moved XX _; ring.
Qed.

(** A head's weights at the neighbours. *)
Lemma weight_small (X s a b : F) : 0 <= b -> b <= s -> 0 <= a -> a <= 1 ->
  `|solution1| <= X -> `|solution2| <= X -> (1 - 2%:R * e) * X <= 2%:R * e -> s = a * solution1 + b * solution2 ->
  (1 - 4%:R * e) * s <= 2%:R * e.
Proof.
move=> b0 les a0 lea X1 X2 small eq.
have s0 := le_trans b0 les; have X0 := le_trans (normr_ge0 _) X1.
have leX : s <= X + s * X.
  rewrite {1}eq; apply: ler_add.
    apply: le_trans (ler_norm _) _; rewrite normrM (ger0_norm a0) -[X in _ <= X]mul1r.
    exact: ler_pmul.
  by apply: le_trans (ler_norm _) _; rewrite normrM (ger0_norm b0) ler_pmul.
have half : 0 <= 1 - 2%:R * e.
  rewrite subr_ge0; apply: ltW; apply: le_lt_trans near.
  by rewrite ler_wpmul2r ?ler_nat ?error_ge0.
have scaled := ler_wpmul2l half leX.
have more : s * ((1 - 2%:R * e) * X) <= s * (2%:R * e) by rewrite ler_wpmul2l.
have le : (1 - 2%:R * e) * s <= 2%:R * e + s * (2%:R * e).
  apply: le_trans scaled _.
  have -> : (1 - 2%:R * e) * (X + s * X) = (1 - 2%:R * e) * X + s * ((1 - 2%:R * e) * X) by ring.
  exact: ler_add.
by apply: le_moved le _; ring.
Qed.

Lemma near_price : (1 - e) * (1 - 4%:R * e) <= 2%:R * (e * B).
Proof.
have [X [X1 X2 small]] := solution_small.
have les1 : b1 <= s1 by rewrite ler_addl.
have les2 : b2 <= s2 by rewrite ler_addl.
have le1 := weight_small b1ge les1 a1ge a1le X1 X2 small weights1.
have le2 := weight_small b2ge les2 a2ge a2le X1 X2 small weights2.
have B0 : 0 <= B := le_trans (normr_ge0 _) size1.
have four : 0 <= 1 - 4%:R * e by rewrite subr_ge0 ltW.
have both : (1 - 4%:R * e) * (2%:R * (1 - e)) <= B * (2%:R * e + 2%:R * e).
  apply: le_trans (ler_wpmul2l four neighbours_need_weight) _.
  by rewrite mulrCA ler_wpmul2l // mulrDr ler_add.
rewrite -(ler_pmul2l (ltr0Sn F 1)); by apply: le_moved both _; ring.
Qed.

End Near.

End Price.

(** The pixel itself, and the difference of the left and the right neighbour. *)
Definition difference_kernel (F : fieldType) (i j : nat) (c : 'I_1) (o : bool) : F :=
  if o then (j == 0%N)%:R - (j == 2%N)%:R else (j == 1%N)%:R.

Section Layer.

Variables (F : realFieldType) (rows columns a b : nat) (e : F).
Variable A : bool -> bare_grid rows.+1 columns.+3 -> ringed_grid rows.+1 columns.+3 a b -> F.
Variable M : bool -> patch_feature 1 1 [finType of 'I_1] -> patch_feature 1 1 bool_finType -> F.
Hypothesis near : forall (X : image_type F 'I_1) (q : bare_grid rows.+1 columns.+3) t,
  (forall y x c, `|X y x c| <= 1) ->
  `|attention_layer A M (patch_token X) q t -
    convolution (1 * rows.+1) (1 * columns.+3) 0 1 (difference_kernel F) X
      (1 * q.1 + t.1.1)%N (1 * q.2 + t.1.2)%N t.2| <= e.

Definition middle_pixel : bare_grid rows.+1 columns.+3 := (ord0, inord 1).
Definition pixel_beside (j : 'I_3) : bare_grid rows.+1 columns.+3 := (ord0, inord j).
Definition head_weight (h : bool) (j : 'I_3) : F := A h middle_pixel (image_key a b (pixel_beside j)).
Definition map_entry (h o : bool) : F := M h (ord0, ord0, ord0) (ord0, ord0, o).

(** An image of one pixel shows one entry. *)
Lemma entry_near (j : 'I_3) (o : bool) :
  `|map_entry true o * head_weight true j + map_entry false o * head_weight false j - difference_kernel F 0 j ord0 o| <= e.
Proof.
pose place : patch_feature 1 1 [finType of 'I_1] := (ord0, ord0, ord0).
have small : forall y x c, `|unit_image F (pixel_beside j) place y x c| <= 1.
  by move=> y x c; rewrite /unit_image normr_nat lern1 leq_b1.
have := near middle_pixel (ord0, ord0, o) small.
rewrite attention_unit (@convolution_unit _ _ _ _ _ _ _ _ _ 0 1) //.
rewrite (big_pred1 ((ord0, j) : token_offset 0 1)) => [|[i d]]; last first.
  rewrite ringed_key_image /= !inordK // ?(leq_trans (ltn_ord j)) //.
  by rewrite [i]ord1 -pair_eqE /= addnC eqn_add2r.
rewrite flattened_pixels /= big_bool /= ![A _ _ _ * _]mulrC; exact.
Qed.

End Layer.

Theorem price (F : realFieldType) (rows columns a b : nat) (e B : F)
    (A : bool -> bare_grid rows.+1 columns.+3 -> ringed_grid rows.+1 columns.+3 a b -> F)
    (M : bool -> patch_feature 1 1 [finType of 'I_1] -> patch_feature 1 1 bool_finType -> F) :
  (forall h q k, 0 <= A h q k <= 1) -> (forall h s t, `|M h s t| <= B) -> e <= 1 ->
  (forall (X : image_type F 'I_1) (q : bare_grid rows.+1 columns.+3) t,
    (forall y x c, `|X y x c| <= 1) ->
    `|attention_layer A M (patch_token X) q t -
      convolution (1 * rows.+1) (1 * columns.+3) 0 1 (difference_kernel F) X
        (1 * q.1 + t.1.1)%N (1 * q.2 + t.1.2)%N t.2| <= e) ->
  (1 - e) * (1 - 4%:R * e) <= 2%:R * (e * B).
Proof.
move=> weights size le1 near; have entry := entry_near near.
have [far|close] := lerP 1 (4%:R * e).
  apply: (@le_trans _ _ 0); first by rewrite mulr_ge0_le0 ?subr_ge0 ?subr_le0.
  have e0 : 0 <= e by apply: le_trans (normr_ge0 _) (entry ord0 true).
  rewrite !mulr_ge0 ?ler0n //; apply: le_trans (normr_ge0 _) (size true (ord0, ord0, ord0) (ord0, ord0, true)).
have at_pixel o := entry (Ordinal (isT : 1 < 3)%N) o.
have at_left o := entry (ord0 : 'I_3) o.
have at_right o := entry (Ordinal (isT : 2 < 3)%N) o.
move: (at_pixel false) (at_pixel true) (at_left false) (at_left true) (at_right false) (at_right true).
rewrite /difference_kernel /= !(subr0, sub0r, opprK) => va wa vb wb vc wc.
have ge0 h j : 0 <= head_weight A h j by case/andP: (weights h (middle_pixel _ _) (image_key a b (pixel_beside _ _ j))).
have most h j : head_weight A h j <= 1 by case/andP: (weights h (middle_pixel _ _) (image_key a b (pixel_beside _ _ j))).
exact: (near_price (size _ _ _) (size _ _ _) (most _ _) (most _ _) (ge0 _ _) (ge0 _ _) (ge0 _ _) (ge0 _ _)
  (ge0 _ _) (ge0 _ _) va wa vb wb vc wc close).
Qed.
