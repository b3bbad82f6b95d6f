(** How far the values of a compiled block are from the network's: what arises in a block, and how much
    greater a block can make what is there already. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Convattn.foundation Require Import attention scores exponential total_variation.
From Convattn.foundation Require Import square_root vision_transformer token_network.
From Convattn.foundation Require Import compiled_transformer row_bounds.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Sizes.

Variables (R : realFieldType) (Token Code Value Head Hidden : finType).
Implicit Type b : network_block R Token Code Value Head Hidden.

(** The entries of all heads' maps together. *)
Definition heads_size b : R := \sum_h matrix_size (head_map b h).

(** A block makes values, and differences of values, at most this many times as great. *)
Definition block_growth b : R :=
  (1 + heads_size b) * (1 + matrix_size (unit_map b) * matrix_size (unit_return b)).

(** Of values of this size, one less the number by which layer normalisation multiplies them. *)
Definition norm_deficit (norm bound : R) : R := #|Value|%:R * bound ^+ 2 / (2%:R * norm ^+ 2).

(** The same for values after the heads of a block, whose values have this size. *)
Definition block_deficit (norm : R) b (bound : R) : R :=
  norm_deficit norm ((1 + heads_size b) * bound).

(** The error that arises in a block from values of this size: [leak] is the weight of another token,
    over that of a token that is meant, and [bend] is how far a hidden unit is from ReLU. *)
Definition block_error (norm leak bend : R) b (bound : R) : R :=
  (1 + matrix_size (unit_map b) * matrix_size (unit_return b)) *
    (heads_size b * bound * (block_deficit norm b bound + 2%:R * #|Token|%:R * leak)) +
  matrix_size (unit_return b) *
    (bend + matrix_size (unit_map b) * (block_deficit norm b bound * ((1 + heads_size b) * bound))).

(** A bound on the values after it. *)
Definition next_bound (bend : R) b (bound : R) : R :=
  block_growth b * bound + matrix_size (unit_return b) * bend.

Lemma heads_size_ge0 b : 0 <= heads_size b.
Proof. by rewrite sumr_ge0 // => h _; exact: matrix_size_ge0. Qed.

Lemma norm_deficit_ge0 norm bound : 0 <= norm_deficit norm bound.
Proof. by apply: divr_ge0; apply: mulr_ge0; rewrite ?ler0n ?sqr_ge0. Qed.

Lemma block_error_ge0 norm leak bend b bound : 0 <= leak -> 0 <= bend -> 0 <= bound ->
  0 <= block_error norm leak bend b bound.
Proof.
move=> leak_ge0 bend_ge0 bound_ge0; have size_ge0 := heads_size_ge0 b.
have deficit_ge0 := norm_deficit_ge0 norm ((1 + heads_size b) * bound).
have units_ge0 := matrix_size_ge0 (unit_map b); have return_ge0 := matrix_size_ge0 (unit_return b).
have one_ge0 : 0 <= 1 :> R by exact: ler01.
rewrite /block_error /block_deficit; move: (norm_deficit _ _) deficit_ge0 => d d_ge0.
by rewrite !(addr_ge0, mulr_ge0) ?ler0n.
Qed.

Lemma block_growth_ge1 b : 1 <= block_growth b.
Proof.
by rewrite -[X in X <= _]mulr1 ler_pmul ?ler01 // ler_addl ?heads_size_ge0 // mulr_ge0 ?matrix_size_ge0.
Qed.

Lemma next_bound_ge bend b bound : 0 <= bend -> 0 <= bound -> bound <= next_bound bend b bound.
Proof.
move=> bend_ge0 bound_ge0; rewrite ler_paddr ?mulr_ge0 ?matrix_size_ge0 //.
by rewrite -[X in X <= _]mul1r ler_wpmul2r // block_growth_ge1.
Qed.

End Sizes.

Section Rectified.

Variable R : realFieldType.

Lemma rectified_le (z : R) : `|rectified z| <= `|z|.
Proof. by rewrite /rectified /Num.max; case: ifP; rewrite ?normr0. Qed.

Lemma rectified_difference (z w : R) : `|rectified z - rectified w| <= `|z - w|.
Proof.
wlog le : z w / w <= z.
  by move=> wl; case/orP: (le_total w z) => /wl //; rewrite distrC [X in _ <= X]distrC.
have le_max : rectified w <= rectified z by rewrite /rectified le_maxl !le_maxr lexx le !orbT.
rewrite !ger0_norm ?subr_ge0 // ler_subl_addl /rectified le_maxl; apply/andP; split.
  by rewrite addr_ge0 ?subr_ge0 // le_maxr lexx.
by rewrite -ler_subl_addr subKr le_maxr lexx orbT.
Qed.

Lemma norm_deficit_monotone (Value : finType) (norm bound larger : R) :
  0 <= bound -> bound <= larger -> norm_deficit Value norm bound <= norm_deficit Value norm larger.
Proof.
move=> ge0 le; apply: ler_wpmul2r; first by rewrite invr_ge0; apply: mulr_ge0; rewrite ?ler0n ?sqr_ge0.
by rewrite ler_wpmul2l ?ler0n // ler_pexpn2r ?nnegrE // (le_trans ge0).
Qed.

End Rectified.

Section Block.

Variables (R : realFieldType) (E root Phi : R -> R) (epsilon norm sharpness slope bend form_bound : R).
Variables (Token Code Value Head Hidden : finType) (p : Token -> Code -> R).
Variable b : network_block R Token Code Value Head Hidden.
Implicit Types f g : Token -> Value -> R.

Hypothesis E_exp : is_exponential E.
Hypothesis root_root : is_square_root root.
Hypotheses (norm_gt0 : 0 < norm) (epsilon_ge0 : 0 <= epsilon) (sharpness_ge0 : 0 <= sharpness).
Hypothesis slope_gt0 : 0 < slope.

(** A hidden unit is as far from ReLU. *)
Hypothesis bent : forall z, `|gelu Phi (slope * z) / slope - rectified z| <= bend.
Hypothesis shown : shows_targets p b.
Hypothesis form_le : forall h q k, `|bilinear (code_form b h) (p q) (p k)| <= form_bound.
Hypothesis form_bound_ge1 : 1 <= form_bound.

Let rho := @norm_ratio R root epsilon norm Code Value.
Let near := near_block E root Phi epsilon norm sharpness slope p b.
Let leak := E (- (sharpness / 4%:R)).

Lemma bend_ge0 : 0 <= bend.
Proof. exact: le_trans (bent 0). Qed.

Lemma with_codes_bound f bound t c : (forall t d, `|p t d| <= bound) -> (forall t i, `|f t i| <= bound) ->
  `|with_codes p f t c| <= bound.
Proof. by move=> code_le value_le; case: c => [d|i] /=. Qed.

Section Deficit.

Variables (f : Token -> Value -> R) (bound : R).
Hypotheses (code_le : forall t d, `|p t d| <= bound) (value_le : forall t i, `|f t i| <= bound).

Lemma deficit_bounds t : 1 - norm_deficit Value norm bound <= rho (f t) <= 1.
Proof.
apply: ratio_bounds => //; rewrite mulr_natl -sumr_const; apply: ler_sum => i _.
by rewrite -real_normK ?num_real // ler_pexpn2r ?nnegrE // (le_trans _ (value_le t i)).
Qed.

Hypothesis small : 4%:R * norm_deficit Value norm bound * form_bound <= 1.

Lemma deficit_le_quarter : norm_deficit Value norm bound <= 4%:R^-1.
Proof.
rewrite -(ler_pmul2l (_ : 0 < 4%:R)) ?ltr0n // mulfV ?pnatr_eq0 //; apply: le_trans small.
by rewrite ler_pemulr // mulr_ge0 ?ler0n ?norm_deficit_ge0.
Qed.

Lemma ratio_ge_half t : 2%:R^-1 <= rho (f t).
Proof.
have /andP[low _] := deficit_bounds t; apply: le_trans low.
rewrite ler_subr_addl -ler_subr_addr; apply: le_trans deficit_le_quarter _.
have -> : 1 - 2%:R^-1 = 2%:R^-1 :> R by field.
by rewrite lef_pinv ?posrE ?ltr0n // ler_nat.
Qed.

Lemma ratio_ge0 t : 0 <= rho (f t).
Proof. by apply: le_trans (ratio_ge_half t); rewrite invr_ge0 ler0n. Qed.

(** The scores keep a fourth of their gap. *)
Lemma leaking_row_gap h q t k : t \in looked_at b h q -> k \notin looked_at b h q ->
  E (sharpness * (rho (f q) * rho (f k)) * bilinear (code_form b h) (p q) (p k)) <=
  leak * E (sharpness * (rho (f q) * rho (f t)) * bilinear (code_form b h) (p q) (p t)).
Proof.
move=> seen unseen; rewrite /leak -exponential_add //; apply: exponential_monotone => //.
have [_ /(_ t k seen unseen) gap _] := shown h q.
set u := bilinear _ _ (p k) in gap *; set v := bilinear _ _ (p t) in gap *.
have part c z : `|z| <= form_bound -> `|(1 - rho (f c)) * z| <= 4%:R^-1.
  move=> le; have /andP[low high] := deficit_bounds c.
  rewrite normrM ger0_norm ?subr_ge0 //; apply: (@le_trans _ _ (norm_deficit Value norm bound * form_bound)).
    by apply: ler_pmul => //; rewrite ?subr_ge0 // ler_subl_addl -ler_subl_addr.
  by rewrite -(ler_pmul2l (_ : 0 < 4%:R)) ?ltr0n // mulfV ?pnatr_eq0 // mulrA.
have half : 2%:R^-1 <= rho (f t) * v - rho (f k) * u.
  have -> : rho (f t) * v - rho (f k) * u =
      (v - u) - (1 - rho (f t)) * v + (1 - rho (f k)) * u by ring.
  have -> : 2%:R^-1 = 1 - 4%:R^-1 - 4%:R^-1 :> R by field.
  apply: ler_add; first apply: ler_add.
  - by rewrite ler_subr_addl.
  - by rewrite ler_opp2; apply: le_trans (ler_norm _) (part _ _ (form_le _ _ _)).
  - by have := part k u (form_le _ _ _); rewrite ler_norml => /andP[].
rewrite addrC -ler_subl_addr opprK -ler_subr_addl.
have -> : sharpness * (rho (f q) * rho (f t)) * v - sharpness * (rho (f q) * rho (f k)) * u =
  sharpness * (rho (f q) * (rho (f t) * v - rho (f k) * u)) by ring.
apply: ler_wpmul2l => //; have -> : 4%:R^-1 = 2%:R^-1 * 2%:R^-1 :> R by field.
by apply: ler_pmul; rewrite ?invr_ge0 ?ler0n // ratio_ge_half.
Qed.

Lemma leaking_row_positive h q k :
  0 < E (sharpness * (rho (f q) * rho (f k)) * bilinear (code_form b h) (p q) (p k)).
Proof. exact: exponential_positive. Qed.

(** What a head reads. *)
Lemma near_head h q o : let size := matrix_size (head_map b h) * bound in
  let near_read := attend (leaking_row E root epsilon norm sharpness p b f h q)
    (fun k i => rho (f k) * feature_map (head_map b h) (with_codes p f k) i) o in
  `|near_read| <= size /\
  `|near_read - feature_map (head_map b h) (attend (mean_row R (looked_at b h q)) (with_codes p f)) o| <=
    size * (norm_deficit Value norm bound + 2%:R * #|Token|%:R * leak).
Proof.
move=> size near_read; have [[t seen] _ tie] := shown h q.
have read_le k : `|feature_map (head_map b h) (with_codes p f k) o| <= size.
  by apply: feature_map_bound => c; exact: with_codes_bound.
have size_ge0 : 0 <= size by exact: le_trans (read_le t).
have scaled_le k : `|rho (f k) * feature_map (head_map b h) (with_codes p f k) o| <= size.
  have /andP[_ high] := deficit_bounds k.
  by rewrite normrM -[leRHS]mul1r; apply: ler_pmul => //; rewrite ger0_norm // ratio_ge0.
split.
  apply: attend_bound => //; first by move=> k; apply: softmax_nonnegative => k'; exact/ltW/leaking_row_positive.
  by apply: (softmax_sums_to_one q) => k; exact: leaking_row_positive.
rewrite feature_map_sum; set mean := \sum_k _.
pose exact_read := attend (mean_row R (looked_at b h q))
  (fun k i => rho (f k) * feature_map (head_map b h) (with_codes p f k) i) o.
rewrite -(subrKA exact_read) mulrDr addrC; apply: le_trans (ler_norm_add _ _) (ler_add _ _).
  rewrite /mean -/(attend _ (fun k o => feature_map (head_map b h) (with_codes p f k) o) o).
  rewrite attend_difference; apply: (attend_bound (@mean_row_ge0 R _ _)); first exact: sum_mean_row seen.
  move=> k.
  have /andP[low high] := deficit_bounds k.
  rewrite -[X in _ - X]mul1r -mulrBl normrM mulrC; apply: ler_pmul => //.
  by rewrite distrC ger0_norm ?subr_ge0 // ler_subl_addl -ler_subl_addr.
have -> : size * (2%:R * #|Token|%:R * leak) = leak * (#|Token|%:R * (2%:R * size)) by ring.
apply: (attend_set_dominated _ seen) => //.
- by move=> k; exact: leaking_row_positive.
- move=> k in_seen; have [->//|zero] := tie k t in_seen seen.
  have [->//|zero'] := tie t k seen in_seen.
  by rewrite zero zero' !mulr0.
- exact/ltW/exponential_positive.
by move=> k unseen; exact: leaking_row_gap.
Qed.

Lemma near_heads_error q o :
  `|near_heads E root epsilon norm sharpness p b f q o| <= (1 + heads_size b) * bound /\
  `|near_heads E root epsilon norm sharpness p b f q o - after_heads p b f q o| <=
    heads_size b * bound * (norm_deficit Value norm bound + 2%:R * #|Token|%:R * leak).
Proof.
rewrite mulrDl mul1r /heads_size !big_distrl /=; split.
  apply: le_trans (ler_norm_add _ _) (ler_add (value_le _ _) _).
  by apply: le_trans (ler_norm_sum _ _ _) (ler_sum _ _) => h _; case: (near_head h q o).
rewrite /near_heads /after_heads addrAC opprD addrA subrr sub0r addrC -sumrB.
by apply: le_trans (ler_norm_sum _ _ _) (ler_sum _ _) => h _; case: (near_head h q o).
Qed.

End Deficit.

Section Units.

Variables (f : Token -> Value -> R) (bound : R).
Hypotheses (code_le : forall t d, `|p t d| <= bound) (value_le : forall t i, `|f t i| <= bound).
Hypothesis small : 4%:R * norm_deficit Value norm bound * form_bound <= 1.

(** What the hidden units return. *)
Lemma near_units_error q o :
  `|near_units root Phi epsilon norm slope p b f q o| <=
    bound + matrix_size (unit_return b) * (matrix_size (unit_map b) * bound + bend) /\
  `|near_units root Phi epsilon norm slope p b f q o - after_units p b f q o| <=
    matrix_size (unit_return b) * (bend + matrix_size (unit_map b) * (norm_deficit Value norm bound * bound)).
Proof.
have read_le u : `|feature_map (unit_map b) (with_codes p f q) u| <= matrix_size (unit_map b) * bound.
  by apply: feature_map_bound => c; exact: with_codes_bound.
have /andP[low high] := deficit_bounds value_le q.
have ratio_ge := ratio_ge0 value_le small q.
set unit_at := fun u => gelu Phi (slope * (rho (f q) * feature_map (unit_map b) (with_codes p f q) u)) / slope.
have near_unit u : `|unit_at u| <= matrix_size (unit_map b) * bound + bend.
  set z := feature_map (unit_map b) (with_codes p f q) u.
  rewrite -[unit_at u](subrK (rectified (rho (f q) * z))) addrC.
  apply: le_trans (ler_norm_add _ _) (ler_add _ (bent _)); apply: le_trans (rectified_le _) _.
  rewrite normrM -[leRHS]mul1r; apply: ler_pmul (read_le u) => //; by rewrite ger0_norm.
split.
  by apply: le_trans (ler_norm_add _ _) (ler_add (value_le _ _) _); exact: feature_map_bound.
rewrite /near_units /after_units addrAC opprD addrA subrr sub0r addrC feature_map_difference.
apply: feature_map_bound => u; set z := feature_map (unit_map b) (with_codes p f q) u.
rewrite -(subrKA (rectified (rho (f q) * z))).
apply: le_trans (ler_norm_add _ _) (ler_add (bent _) _); apply: le_trans (rectified_difference _ _) _.
rewrite -[X in _ - X]mul1r -mulrBl normrM mulrCA; apply: ler_pmul (read_le u) => //.
by rewrite distrC ger0_norm ?subr_ge0 // ler_subl_addl -ler_subl_addr.
Qed.

End Units.

(** Two streams that differ by at most [off] do so by at most so many times that much afterwards. *)
Section Lipschitz.

Variables (f g : Token -> Value -> R) (off : R).
Hypothesis close : forall t i, `|f t i - g t i| <= off.
Hypothesis off_ge0 : 0 <= off.

Lemma with_codes_close t c : `|with_codes p f t c - with_codes p g t c| <= off.
Proof. by case: c => [d|i] /=; rewrite ?subrr ?normr0. Qed.

Lemma after_heads_close q o :
  `|after_heads p b f q o - after_heads p b g q o| <= (1 + heads_size b) * off.
Proof.
rewrite /after_heads opprD addrACA mulrDl mul1r.
apply: le_trans (ler_norm_add _ _) (ler_add (close _ _) _).
rewrite -sumrB /heads_size big_distrl /=; apply: le_trans (ler_norm_sum _ _ _) (ler_sum _ _) => h _.
rewrite feature_map_difference; apply: feature_map_bound => c; rewrite attend_difference.
have [[t seen] _ _] := shown h q.
apply: (attend_bound (@mean_row_ge0 R _ _)); first exact: sum_mean_row seen.
by move=> k; exact: with_codes_close.
Qed.

Lemma after_units_close q o :
  `|after_units p b f q o - after_units p b g q o| <=
    (1 + matrix_size (unit_map b) * matrix_size (unit_return b)) * off.
Proof.
rewrite /after_units opprD addrACA mulrDl mul1r.
apply: le_trans (ler_norm_add _ _) (ler_add (close _ _) _); rewrite feature_map_difference.
rewrite [_ * matrix_size (unit_return b)]mulrC -mulrA; apply: feature_map_bound => u.
apply: le_trans (rectified_difference _ _) _; rewrite feature_map_difference.
by apply: feature_map_bound => c; exact: with_codes_close.
Qed.

End Lipschitz.

(** One block, on values that differ already. *)
Lemma near_block_error f g (bound off : R) q o : 0 <= bound -> 0 <= off ->
  (forall t d, `|p t d| <= bound) -> (forall t i, `|f t i| <= bound) ->
  (forall t i, `|f t i - g t i| <= off) -> 4%:R * block_deficit norm b bound * form_bound <= 1 ->
  `|near f q o| <= next_bound bend b bound /\
  `|near f q o - after_block p b g q o| <= block_growth b * off + block_error norm leak bend b bound.
Proof.
move=> bound_ge0 off_ge0 code_le value_le close small.
have size_ge0 := heads_size_ge0 b; pose later := (1 + heads_size b) * bound.
have le_later : bound <= later by rewrite /later mulrDl mul1r ler_addl mulr_ge0.
have le_deficit := norm_deficit_monotone Value norm bound_ge0 le_later.
have small_now : 4%:R * norm_deficit Value norm bound * form_bound <= 1.
  apply: le_trans small; rewrite ler_wpmul2r ?(le_trans ler01) // ler_wpmul2l ?ler0n //.
pose mid := near_heads E root epsilon norm sharpness p b f.
have heads t i := near_heads_error code_le value_le small_now t i.
have [le_near near_units_close] := @near_units_error mid later
  (fun t d => le_trans (code_le t d) le_later) (fun t i => proj1 (heads t i)) small q o.
split; first by apply: le_trans le_near _; rewrite /next_bound /block_growth /later le_eqVlt; apply/orP; left;
  apply/eqP; ring.
pose mid_off := heads_size b * bound * (block_deficit norm b bound + 2%:R * #|Token|%:R * leak)
  + (1 + heads_size b) * off.
have mid_close t i : `|mid t i - after_heads p b g t i| <= mid_off.
  rewrite -(subrKA (after_heads p b f t i)); apply: le_trans (ler_norm_add _ _) (ler_add _ _).
    have [_ le] := heads t i; apply: le_trans le _.
    by rewrite ler_wpmul2l ?mulr_ge0 // ler_add2r.
  exact: after_heads_close.
have mid_off_ge0 : 0 <= mid_off by exact: le_trans (mid_close q o).
rewrite -(subrKA (after_units p b mid q o)); apply: le_trans (ler_norm_add _ _) _.
apply: le_trans (ler_add near_units_close (after_units_close mid_close mid_off_ge0 q o)) _.
rewrite /block_growth /block_error /mid_off /block_deficit -/later le_eqVlt; apply/orP; left; apply/eqP; ring.
Qed.

End Block.
