(** S.vit: hard attention and ReLU are the limit of an unmodified vision transformer.

    Take any network on tokens ([token_network]): the tokens are the places of an image, whose values are
    linear in the pixels, and the class token. Each block adds to the values of every token what its heads
    read: linear maps of the mean of the tokens that a head looks at, most often one; then what its hidden
    units return: linear maps of max(0, z), z linear. The logits are linear in the values of the class
    token. All maps are arbitrary, and may read codes, constants of the token's position, so that they
    include biases. Which tokens a head looks at shows in a bilinear form of the codes of query and key:
    it is greater by one at least than at all others, and zero if there are several ([shows_targets]).

    Then for every bound on the pixels and every error > 0 there is a vision transformer with as many
    blocks, heads and hidden units ([transformer_logit]: layer normalisation in front of each part, and
    at the end; softmax of scores over the root of the head dimension; GELU; residual sums; a class
    token), whose logits on all images within the bound differ from the network's by at most the error.
    Its features are two for each head, code and value, and two more for each head; as many as the
    numbers of its heads together. This holds for every ε ≥ 0 of its layer normalisations, over
    every ordered field with a square root and an exponential that exceeds every bound, and for each Φ
    such that GELU, z Φ(z), stays within some c of max(0, z).

    [vit_bound] has the error in numbers. That convolutional networks are such networks on tokens says
    [vit_convolution]; that no vision transformer is exact, [vit_never]. Rounding is not covered, nor that
    c exists for the Gaussian Φ. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Convattn.foundation Require Import attention scores exponential sharp_limits square_root.
From Convattn.foundation Require Import vision_transformer token_network paired_stream.
From Convattn.foundation Require Import compiled_transformer row_bounds block_error.
From Convattn.sharpened Require Import vit_bound.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Limits.

Variables (R : realFieldType) (Token Code Value Head Hidden : finType) (p : Token -> Code -> R) (c : R).
Implicit Types (b : network_block R Token Code Value Head Hidden).
Implicit Types (blocks : seq (network_block R Token Code Value Head Hidden)).
Hypothesis c_ge0 : 0 <= c.

(** What arises in a block is at most some multiple of 1/Λ² + leak + bend. *)
Lemma block_error_linear b bound : 0 <= bound ->
  exists2 C, 0 <= C & forall norm leak bend, 0 < norm -> 0 <= leak -> 0 <= bend ->
    block_error norm leak bend b bound <= C * ((norm ^+ 2)^-1 + leak + bend).
Proof.
move=> bound_ge0; have size_ge0 := heads_size_ge0 b.
pose later := (1 + heads_size b) * bound; pose D := #|Value|%:R * later ^+ 2 / 2%:R.
have later_ge0 : 0 <= later by rewrite mulr_ge0 // addr_ge0 ?ler01.
have D_ge0 : 0 <= D by apply: divr_ge0; rewrite ?ler0n //; apply: mulr_ge0; rewrite ?ler0n ?sqr_ge0.
pose m1 := matrix_size (unit_map b); pose m2 := matrix_size (unit_return b).
have m1_ge0 : 0 <= m1 by exact: matrix_size_ge0.
have m2_ge0 : 0 <= m2 by exact: matrix_size_ge0.
pose A := (1 + m1 * m2) * (heads_size b * bound).
have A_ge0 : 0 <= A by rewrite !(mulr_ge0, addr_ge0) ?ler01.
pose N2 : R := 2%:R * #|Token|%:R; have N2_ge0 : 0 <= N2 by rewrite mulr_ge0 ?ler0n.
have AD_ge0 := mulr_ge0 A_ge0 D_ge0; have AN_ge0 := mulr_ge0 A_ge0 N2_ge0.
have mD_ge0 := mulr_ge0 m2_ge0 (mulr_ge0 m1_ge0 (mulr_ge0 D_ge0 later_ge0)).
exists (A * D + m2 * (m1 * (D * later)) + A * N2 + m2) => [|norm leak bend norm_gt0 leak_ge0 bend_ge0].
  by rewrite !addr_ge0.
have u_ge0 : 0 <= (norm ^+ 2)^-1 by rewrite invr_ge0 sqr_ge0.
have -> : block_error norm leak bend b bound =
    (A * D + m2 * (m1 * (D * later))) * (norm ^+ 2)^-1 + A * N2 * leak + m2 * bend.
  rewrite /block_error /block_deficit /norm_deficit /A /D /N2 -/m1 -/m2 -/later.
  by field; rewrite gt_eqF.
rewrite !mulrDr; apply: ler_add; first apply: ler_add.
- by rewrite ler_wpmul2r // -addrA ler_addl addr_ge0.
- by rewrite ler_wpmul2r // addrAC ler_addr !addr_ge0.
by rewrite ler_wpmul2r // ler_addr !addr_ge0.
Qed.

(** So is the error after all blocks. *)
Lemma values_error_linear blocks bound : 0 <= bound ->
  exists2 C, 0 <= C & forall norm leak bend off, 0 < norm -> 0 <= leak -> 0 <= bend -> 0 <= off ->
    values_error c norm leak bend blocks bound off <= C * (off + ((norm ^+ 2)^-1 + leak + bend)).
Proof.
elim: blocks bound => [|b blocks IH] bound bound_ge0 /=.
  exists 1 => [|norm leak bend off _ leak_ge0 bend_ge0 _]; first exact: ler01.
  by rewrite mul1r ler_addl !addr_ge0 // invr_ge0 sqr_ge0.
have next_ge0 := le_trans bound_ge0 (next_bound_ge b c_ge0 bound_ge0).
have [C C_ge0 rest] := IH _ next_ge0; have [D D_ge0 own] := block_error_linear b bound_ge0.
have K_ge0 : 0 <= block_growth b by exact: le_trans ler01 (block_growth_ge1 b).
exists (C * (block_growth b + D + 1)) => [|norm leak bend off norm_gt0 leak_ge0 bend_ge0 off_ge0].
  by apply: mulr_ge0 => //; rewrite !addr_ge0 ?ler01.
have small_ge0 : 0 <= (norm ^+ 2)^-1 + leak + bend by rewrite !addr_ge0 // invr_ge0 sqr_ge0.
have error_ge0 := block_error_ge0 norm b leak_ge0 bend_ge0 bound_ge0.
apply: le_trans (rest _ _ _ _ norm_gt0 leak_ge0 bend_ge0 _) _; first by apply: addr_ge0 => //; exact: mulr_ge0.
rewrite -mulrA ler_wpmul2l //; set small := _ + bend in small_ge0 *.
have -> : (block_growth b + D + 1) * (off + small) =
    block_growth b * off + D * small + small + (block_growth b * small + D * off + off) by ring.
apply: ler_paddr; first by rewrite !addr_ge0 // mulr_ge0.
by rewrite ler_add2r ler_add2l own.
Qed.

(** Every large Λ is large enough. *)
Lemma norm_suffices_at_last blocks bound : 0 <= bound ->
  exists2 u, 0 < u & forall norm, 0 < norm -> (norm ^+ 2)^-1 <= u -> norm_suffices p c norm blocks bound.
Proof.
elim: blocks bound => [|b blocks IH] bound bound_ge0 /=; first by exists 1; rewrite ?ltr01.
have [u u_gt0 rest] := IH _ (le_trans bound_ge0 (next_bound_ge b c_ge0 bound_ge0)).
pose D := 2%:R * #|Value|%:R * ((1 + heads_size b) * bound) ^+ 2 * scores_size p b.
have D_ge0 : 0 <= D.
  apply: mulr_ge0; last exact: le_trans ler01 (scores_size_ge1 p b).
  by apply: mulr_ge0; rewrite ?sqr_ge0 ?mulr_ge0 ?ler0n.
have D1_gt0 : 0 < D + 1 by rewrite ltr_paddl ?ltr01.
exists (Num.min u (D + 1)^-1) => [|norm norm_gt0]; first by rewrite lt_minr u_gt0 invr_gt0.
rewrite le_minr => /andP[/rest suffices small]; split; last exact: suffices.
have -> : 4%:R * block_deficit norm b bound * scores_size p b = D * (norm ^+ 2)^-1.
  by rewrite /block_deficit /norm_deficit /D; field; rewrite gt_eqF.
apply: le_trans (ler_wpmul2l D_ge0 small) _.
by rewrite ler_pdivr_mulr // mul1r ler_addl ler01.
Qed.

End Limits.

Theorem vit (R : realFieldType) (E root Phi : R -> R) (c epsilon : R)
    (Place Pixel Code Value Head Hidden Label : finType)
    (N : token_network R Place Pixel Code Value Head Hidden Label) :
  is_exponential E -> unbounded E -> is_square_root root -> (forall z, `|z * Phi z - Num.max 0 z| <= c) ->
  0 <= epsilon -> (0 < #|Head|)%N -> network_shows N ->
  forall image_bound error : R, 0 < error ->
  exists (Feature Inner : finType) (V : vision_transformer R Place Pixel Feature Head Inner Hidden Label),
    [/\ #|Feature| = (#|Head| * #|Inner|)%N,
        #|Feature| = (2 * #|Head| * (#|Code| + #|Value|).+1)%N,
        size (transformer_blocks V) = size (network_blocks N)
      & forall X : Place -> Pixel -> R, (forall k i, `|X k i| <= image_bound) ->
          forall l, `|transformer_logit E root Phi epsilon V X l - network_logit N X l| <= error].
Proof.
move=> E_exp E_unbounded root_root bent epsilon_ge0 some_head shows image_bound error error_gt0.
have c_ge0 : 0 <= c by exact: le_trans (bent 0).
set p := position_code N; set blocks := network_blocks N.
pose codes_size := \sum_t \sum_d `|p t d|; pose codes_square := \sum_t \sum_d p t d ^+ 2.
pose bound := codes_size + matrix_size (pixel_map N) * `|image_bound|.
have first_ge0 : 0 <= matrix_size (pixel_map N) * `|image_bound| by rewrite mulr_ge0 ?matrix_size_ge0.
have codes_ge0 : 0 <= codes_size by rewrite sumr_ge0 // => t _; rewrite sumr_ge0.
have square_ge0 : 0 <= codes_square by rewrite sumr_ge0 // => t _; rewrite sumr_ge0 // => d _; exact: sqr_ge0.
have bound_ge0 : 0 <= bound by rewrite addr_ge0.
have code_le t d : `|p t d| <= bound.
  rewrite /bound /codes_size (bigD1 t) //= (bigD1 d) //= -!addrA ler_addl !addr_ge0 ?sumr_ge0 // => t' _.
  by rewrite sumr_ge0.
have first_le : matrix_size (pixel_map N) * image_bound <= bound.
  by apply: ler_paddl => //; rewrite ler_wpmul2l ?matrix_size_ge0 ?ler_norm.
have [C C_ge0 linear_error] := values_error_linear c_ge0 blocks bound_ge0.
have [u u_gt0 large_norm] := norm_suffices_at_last p c_ge0 blocks bound_ge0.
pose last := values_bound c blocks bound.
pose W := matrix_size (readout N) * (C + #|Value|%:R * last ^+ 2 * `|last|).
have W_ge0 : 0 <= W.
  apply: mulr_ge0; first exact: matrix_size_ge0.
  by apply: addr_ge0 => //; apply: mulr_ge0 => //; apply: mulr_ge0; rewrite ?ler0n ?sqr_ge0.
have W1_gt0 : 0 < W + 1 by rewrite ltr_paddl ?ltr01.
pose part := error / (3%:R * (W + 1)).
have part_gt0 : 0 < part by rewrite divr_gt0 ?mulr_gt0 ?ltr0n.
pose least := Num.min u part; have least_gt0 : 0 < least by rewrite lt_minr u_gt0.
pose norm := codes_square + 1 + least^-1.
have inv_gt0 : 0 < least^-1 by rewrite invr_gt0.
have norm_ge1 : 1 <= norm by rewrite /norm addrAC ler_addr addr_ge0 // ltW.
have norm_gt0 : 0 < norm by exact: lt_le_trans ltr01 norm_ge1.
have le_square : norm <= norm ^+ 2 by rewrite expr2 ler_pmulr.
have norm_small : (norm ^+ 2)^-1 <= least.
  rewrite -[least]invrK lef_pinv ?posrE ?exprn_gt0 //; apply: le_trans le_square.
  by rewrite /norm ler_addr addr_ge0 ?ler01.
have code_fits t : \sum_d p t d ^+ 2 <= norm ^+ 2.
  apply: le_trans le_square; rewrite /norm /codes_square (bigD1 t) //= -!addrA ler_addl.
  rewrite !addr_ge0 ?ler01 ?(ltW inv_gt0) // sumr_ge0 // => t' _; rewrite sumr_ge0 // => d _; exact: sqr_ge0.
have [a0 vanishes] := exponential_vanishes E_exp E_unbounded 1 part_gt0.
pose sharpness := 4%:R * Num.max a0 0; pose slope := 1 + c / part.
have sharpness_ge0 : 0 <= sharpness by rewrite mulr_ge0 ?ler0n // le_maxr lexx orbT.
have leak_small : E (- (sharpness / 4%:R)) <= part.
  have -> : sharpness / 4%:R = Num.max a0 0 by rewrite /sharpness mulrC mulKf ?pnatr_eq0.
  have := vanishes (Num.max a0 0); rewrite le_maxr lexx subr0 mulr1 => /(_ isT).
  by apply: le_trans; exact: ler_norm.
have slope_ge1 : 1 <= slope by rewrite ler_addl divr_ge0 // ltW.
have slope_gt0 : 0 < slope by exact: lt_le_trans ltr01 slope_ge1.
have bend_small : c / slope <= part.
  by rewrite ler_pdivr_mulr // mulrC -ler_pdivr_mulr // /slope ler_addr ler01.
exists (paired_feature Head (stream_channel Code Value)), (head_slot Code Value).
exists (compiled_transformer root epsilon norm sharpness slope N); split.
- exact: head_slots.
- by rewrite !card_prod card_bool card_option card_sum.
- by rewrite size_map.
move=> X image_le l.
move: norm_small; rewrite le_minr => /andP[norm_u norm_part].
apply: le_trans (vit_bound E_exp root_root bent epsilon_ge0 norm_gt0 sharpness_ge0 slope_ge1 some_head
  shows code_fits code_le bound_ge0 first_le (large_norm _ norm_gt0 norm_u) image_le l) _.
set leak := E _ in leak_small *; have leak_ge0 : 0 <= leak by exact/ltW/exponential_positive.
have bend_ge0 : 0 <= c / slope by rewrite divr_ge0 // ltW.
pose small := (norm ^+ 2)^-1 + leak + c / slope.
apply: (@le_trans _ _ (W * small)).
  rewrite /W -mulrA ler_wpmul2l ?matrix_size_ge0 // mulrDl; apply: ler_add.
    have := linear_error norm leak (c / slope) 0 norm_gt0 leak_ge0 bend_ge0 (lexx 0).
    by rewrite add0r.
  have -> : norm_deficit Value norm last * last =
      #|Value|%:R * last ^+ 2 * (last * (2%:R^-1 * (norm ^+ 2)^-1)).
    by rewrite /norm_deficit; field; rewrite gt_eqF.
  rewrite -[leRHS]mulrA; apply: ler_wpmul2l; first by apply: mulr_ge0; rewrite ?ler0n ?sqr_ge0.
  have u_ge0 : 0 <= (norm ^+ 2)^-1 by rewrite invr_ge0 sqr_ge0.
  apply: (@le_trans _ _ (`|last| * (2%:R^-1 * (norm ^+ 2)^-1))).
    by rewrite ler_wpmul2r ?ler_norm // mulr_ge0 ?invr_ge0 ?ler0n ?sqr_ge0.
  apply: ler_wpmul2l => //; apply: (@le_trans _ _ (norm ^+ 2)^-1).
    by rewrite ler_pimull // invf_le1 ?ltr0n // ler1n.
  by rewrite /small -addrA ler_addl addr_ge0.
apply: (@le_trans _ _ (W * (3%:R * part))).
  apply: ler_wpmul2l => //; have -> : 3%:R * part = part + part + part by ring.
  by rewrite /small; apply: ler_add => //; exact: ler_add.
have -> : W * (3%:R * part) = W / (W + 1) * error by rewrite /part; field; rewrite gt_eqF.
by rewrite ler_pimull ?(ltW error_gt0) // ler_pdivr_mulr // mul1r ler_addl ler01.
Qed.
