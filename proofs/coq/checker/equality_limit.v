(** A certificate of equality in the limit: what the checker asks is enough.

    In the regime "limit" the checker asks of each head u0 = u1 = 0, c_δ ≥ 0 and Σ_δ c_δ > 0, of all
    together Σ_h c_hδ V_hδ' = [δ = δ'], and of the ring that it be as wide as the token offsets
    reach. Then for every number of patches, over every ordered field: the weights of attention are
    nonnegative and have the sum one at every query; for every ε in (0, 1] there are positive rows
    with the sum one, softmaxes of finite scores, whose entries differ from these by at most ε; and
    the layer with the rows themselves is the zero-padded convolution, for every kernel, image and
    number of channels. It says nothing of which scores tend to these rows: that a bias or a
    quadratic score does is a further argument. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention image grid dilated certified_heads framed.
From Convattn.checker Require Import interior.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** Any row of nonnegative weights with the sum one is a limit of positive ones. *)
Lemma limit_of_positive (F : numFieldType) (Key : finType) (a : Key -> F) (e : F) :
  (forall k, 0 <= a k) -> \sum_k a k = 1 -> 0 < e <= 1 ->
  exists2 b : Key -> F, (forall k, 0 < b k /\ `|b k - a k| <= e) & \sum_k b k = 1.
Proof.
move=> ge0 sum1 /andP [gt0 le1].
have le_a1 k : a k <= 1 by rewrite -sum1 (bigD1 k) //= ler_addl sumr_ge0.
have N0 : (0 < #|Key|)%N.
  rewrite lt0n; apply/eqP => /card0_eq none; move/eqP: sum1.
  by rewrite big1 => [|k _]; [rewrite eq_sym oner_eq0 | have := none k; rewrite inE].
have N1 : 1 <= #|Key|%:R :> F by rewrite ler1n.
have NV_gt0 : 0 < #|Key|%:R^-1 :> F by rewrite invr_gt0 ltr0n.
exists (fun k => (1 - e) * a k + e / #|Key|%:R) => [k|].
  split; first by rewrite ltr_paddl ?mulr_gt0 // mulr_ge0 // subr_ge0.
  have -> : (1 - e) * a k + e / #|Key|%:R - a k = e * (#|Key|%:R^-1 - a k).
    by rewrite mulrBl mul1r addrAC [a k - _]addrC addrK mulrBr addrC.
  rewrite normrM gtr0_norm //; apply: ler_pimulr; first exact: ltW.
  rewrite real_ler_norml ?rpredB ?ger0_real ?(ltW NV_gt0) //; apply/andP; split.
    by rewrite ler_subr_addr (le_trans _ (ltW NV_gt0)) // addrC subr_le0.
  by rewrite ler_subl_addr ler_paddr // invf_le1 // ltr0n.
rewrite big_split /= -big_distrr /= sum1 mulr1 sumr_const -[_ *+ #|_|]mulr_natr divfK ?subrK //.
by rewrite pnatr_eq0 -lt0n.
Qed.

(** What the checker asks of a row in the limit. *)
Definition limit_row (F : numFieldType) (Offset : finType) (c : Offset -> F) : bool :=
  [forall d, 0 <= c d] && (0 < \sum_d c d).

Theorem equality_limit (F : numFieldType) (Head In Out : finType)
    (low1 n1 high1 low2 n2 high2 p1 p2 K1 K2 d1 d2 : nat)
    (c V : Head -> grid_offset p1 p2 K1 K2 d1 d2 -> F)
    (W : nat -> nat -> In -> Out -> F) (X : image_type F In)
    (q : bare_grid n1 n2) (t : patch_feature p1 p2 Out) :
  let A h := @certified_row F low1 n1 high1 low2 n2 high2 _ _ _ _ _ _ (c h) 0 0 in
  (forall d d', \sum_h c h d * V h d' = (d == d')%:R) ->
  (forall h, limit_row (c h)) ->
  ring_reaches low1 high1 (axis_offsets p1 K1 d1) ->
  ring_reaches low2 high2 (axis_offsets p2 K2 d2) ->
  [/\ forall h k, 0 <= A h q k, forall h, \sum_k A h q k = 1,
      forall h e, 0 < e <= 1 -> exists2 b : framed_grid low1 n1 high1 low2 n2 high2 -> F,
        (forall k, 0 < b k /\ `|b k - A h q k| <= e) & \sum_k b k = 1 &
      attention_layer A
          (fun h => @certified_values F low1 n1 high1 low2 n2 high2 _ _ _ _ _ _ _ _
                      (c h) (V h) 0 0 W)
          (framed_token X) q t =
        dilated_convolution (p1 * n1) (p2 * n2) K1 K2 d1 d2 W X
          (p1 * q.1 + t.1.1)%N (p2 * q.2 + t.1.2)%N t.2].
Proof.
move=> A eq_c lim ring1 ring2.
have c_ge0 h d : 0 <= c h d by have /andP [/forallP /(_ d)] := lim h.
have Z_gt0 h N : 0 < row_total (c h) 0 0 N.
  by rewrite /row_total mul0r !addr0; case/andP: (lim h).
have A_ge0 h k : 0 <= A h q k.
  rewrite /A divr_ge0 ?(ltW (Z_gt0 _ _)) // mul0r addr0 mul0r addr0.
  by apply: sumr_ge0 => d _; rewrite mulr_ge0 ?ler0n.
have lt1 : (low1 + q.1 < low1 + n1 + high1)%N by rewrite -addnA ltn_add2l ltn_addr.
have lt2 : (low2 + q.2 < low2 + n2 + high2)%N by rewrite -addnA ltn_add2l ltn_addr.
pose own : framed_grid low1 n1 high1 low2 n2 high2 := (Ordinal lt1, Ordinal lt2).
have A_sum h : \sum_k A h q k = 1.
  under eq_bigr do rewrite /A (certified_rowE ring1 ring2).
  rewrite /shared_row -big_distrl /= sum_shared_weight ?divff ?gt_eqF //.
  by rewrite ltr0n; apply/card_gt0P; exists own.
split; [exact: A_ge0 | exact: A_sum | by move=> h e e01; apply: limit_of_positive | ].
have none d : \sum_h (0 : F) * V h d = 0 by rewrite big1 // => h _; rewrite mul0r.
apply: (@interior F Head In Out low1 n1 high1 low2 n2 high2 p1 p2 K1 K2 d1 d2
  c V (fun=> 0) (fun=> 0) W X q t eq_c none none ring1 ring2) => h.
by rewrite gt_eqF.
Qed.
