(** S.vit, with numbers: how far the logits of the compiled vision transformer are from the network's.

    Let a network on tokens have blocks of heads, hidden units with ReLU and residual sums
    ([token_network]), and let the tokens that each head looks at show in a bilinear form of the codes of
    query and key, with a gap of one ([shows_targets]). [compiled_transformer] is a vision transformer
    with as many blocks, heads and hidden units, for any ε ≥ 0 of its layer normalisations. It has
    three parameters: Λ, the root of the square sum of a token's constants; κ ≥ 0, the factor of
    the position scores; s ≥ 1, the slope of the hidden units. GELU is z Φ(z), within c of ReLU.

    Let B_0 bound the codes and the values of an image, and in block l let H, M₁, M₂ be the sums of the
    absolute entries of the heads' maps and of the two maps of the hidden units. Then all values after
    block l are at most B_(l+1) = K B_l + M₂ c, where K = (1 + H)(1 + M₁ M₂), and the error is at most

      e_(l+1) = K e_l + (1 + M₁ M₂) H B_l (η + 2 N x) + M₂ (c/s + M₁ η (1 + H) B_l),

    with η = D ((1 + H) B_l)² / (2 Λ²), x = exp(-κ/4), N tokens and D values of a token; e_0 = 0.
    The logits are within W (e_L + D B_L³ / (2 Λ²)), W being the sum of the absolute entries of the
    readout. So errors are those that arise in each block, times the product of the later factors K, summed.
    Λ must be large enough: 4 η (1 + the sum of the sizes of all position scores) ≤ 1 in each block.

    Rounding is not covered, nor are circular and clamped borders, and dropout is none. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention scores exponential square_root vision_transformer.
From Convattn.foundation Require Import token_network compiled_transformer row_bounds block_error.
From Convattn.sharpened Require Import vit_parts.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Errors.

Variables (R : realFieldType) (Token Code Value Head Hidden : finType) (p : Token -> Code -> R).
Implicit Types (b : network_block R Token Code Value Head Hidden).
Implicit Types (blocks : seq (network_block R Token Code Value Head Hidden)).

(** The sizes of all position scores of a block together, and one. *)
Definition scores_size b : R :=
  1 + \sum_h \sum_q \sum_k `|bilinear (code_form b h) (p q) (p k)|.

(** The bound on the values after some blocks. *)
Fixpoint values_bound (c : R) blocks (bound : R) : R :=
  if blocks is b :: rest then values_bound c rest (next_bound c b bound) else bound.

(** The error after them, of values that are off already. *)
Fixpoint values_error (c norm leak bend : R) blocks (bound off : R) : R :=
  if blocks is b :: rest then
    values_error c norm leak bend rest (next_bound c b bound)
      (block_growth b * off + block_error norm leak bend b bound)
  else off.

(** Λ is large enough for them. *)
Fixpoint norm_suffices (c norm : R) blocks (bound : R) : Prop :=
  if blocks is b :: rest then
    4%:R * block_deficit norm b bound * scores_size b <= 1 /\ norm_suffices c norm rest (next_bound c b bound)
  else True.

Lemma scores_size_ge1 b : 1 <= scores_size b.
Proof.
by rewrite ler_addl sumr_ge0 // => h _; rewrite sumr_ge0 // => q _; rewrite sumr_ge0.
Qed.

Lemma score_le b h q k : `|bilinear (code_form b h) (p q) (p k)| <= scores_size b.
Proof.
have term (T : finType) (g : T -> R) t : (forall t, 0 <= g t) -> g t <= \sum_t g t.
  by move=> ge0; rewrite (bigD1 t) //= ler_addl sumr_ge0.
apply: (@le_trans _ _ (\sum_h \sum_q \sum_k `|bilinear (code_form b h) (p q) (p k)|)); last by rewrite ler_addr ler01.
apply: (le_trans (term _ (fun k => `|bilinear _ (p q) (p k)|) k _)) => //.
apply: (le_trans (term _ (fun q => \sum_k `|bilinear _ (p q) (p k)|) q _)) => [q'|]; first by rewrite sumr_ge0.
apply: (term _ (fun h => \sum_q \sum_k `|bilinear (code_form b h) (p q) (p k)|)) => h'.
by rewrite sumr_ge0 // => q' _; rewrite sumr_ge0.
Qed.

End Errors.

Theorem vit_bound (R : realFieldType) (E root Phi : R -> R) (c epsilon norm sharpness slope : R)
    (Place Pixel Code Value Head Hidden Label : finType)
    (N : token_network R Place Pixel Code Value Head Hidden Label) (image_bound bound : R) :
  is_exponential E -> is_square_root root -> (forall z, `|z * Phi z - Num.max 0 z| <= c) ->
  0 <= epsilon -> 0 < norm -> 0 <= sharpness -> 1 <= slope -> (0 < #|Head|)%N -> network_shows N ->
  (forall t, \sum_d position_code N t d ^+ 2 <= norm ^+ 2) ->
  (forall t d, `|position_code N t d| <= bound) -> 0 <= bound ->
  matrix_size (pixel_map N) * image_bound <= bound ->
  norm_suffices (position_code N) c norm (network_blocks N) bound ->
  let last := values_bound c (network_blocks N) bound in
  forall X : Place -> Pixel -> R, (forall k i, `|X k i| <= image_bound) -> forall l,
  `|transformer_logit E root Phi epsilon (compiled_transformer root epsilon norm sharpness slope N) X l
    - network_logit N X l| <=
  matrix_size (readout N) *
    (values_error c norm (E (- (sharpness / 4%:R))) (c / slope) (network_blocks N) bound 0
     + norm_deficit Value norm last * last).
Proof.
move=> E_exp root_root bent epsilon_ge0 norm_gt0 sharpness_ge0 slope_ge1 some_head shows code_fits code_le.
move=> bound_ge0 first_le suffices last X image_le l.
have slope_gt0 : 0 < slope by exact: lt_le_trans ltr01 slope_ge1.
have c_ge0 : 0 <= c by exact: le_trans (bent 0).
have bend_le : c / slope <= c by rewrite ler_pdivr_mulr // ler_pemulr.
rewrite compiled_logit //; set near := near_values _ _ _ _ _ _ _ _ _; set exact := last_values N X.
set p := position_code N in code_le *; set leak := E _.
have run : forall (blocks : seq (network_block R [finType of option Place] Code Value Head Hidden)) B off f g,
    every (shows_targets p) blocks -> norm_suffices p c norm blocks B ->
    (forall t d, `|p t d| <= B) -> 0 <= B -> 0 <= off ->
    (forall t i, `|f t i| <= B) -> (forall t i, `|f t i - g t i| <= off) ->
  let near_end := foldl (fun f b => near_block E root Phi epsilon norm sharpness slope p b f) f blocks in
  let B_end := values_bound c blocks B in
  [/\ 0 <= values_error c norm leak (c / slope) blocks B off,
      forall t d, `|p t d| <= B_end, forall t i, `|near_end t i| <= B_end &
      forall t i, `|near_end t i - foldl (fun f b => after_block p b f) g blocks t i| <=
        values_error c norm leak (c / slope) blocks B off].
  elim=> [|b blocks IH] B off f g //= [shown rest_shown] [small rest_small] p_le B_ge0 off_ge0 f_le fg_le.
  have step t i := near_block_error E_exp root_root norm_gt0 epsilon_ge0 sharpness_ge0
    (fun z => gelu_near_rectified z slope_gt0 bent) shown (@score_le _ _ _ _ _ _ p b) (scores_size_ge1 p b)
    t i B_ge0 off_ge0 p_le f_le fg_le small.
  have next_ge := next_bound_ge b c_ge0 B_ge0.
  apply: IH => //.
  - by move=> t d; exact: le_trans next_ge.
  - exact: le_trans next_ge.
  - apply: addr_ge0; first by apply: mulr_ge0 => //; exact: le_trans ler01 (block_growth_ge1 b).
    apply: block_error_ge0 => //; first exact/ltW/exponential_positive.
    by rewrite divr_ge0 // ltW.
  - move=> t i; have [le _] := step t i; apply: le_trans le _.
    by rewrite ler_add2l ler_wpmul2l ?matrix_size_ge0.
  by move=> t i; have [_ le] := step t i.
have first_close t i : `|first_values N X t i - first_values N X t i| <= 0 by rewrite subrr normr0.
have first_bound t i : `|first_values N X t i| <= bound.
  case: t => [k|] /=; last by rewrite normr0.
  by apply: le_trans first_le; exact: feature_map_bound.
have [error_ge0 p_le near_le near_close] :=
  run _ _ _ _ _ shows suffices code_le bound_ge0 (lexx 0) first_bound first_close.
have /andP[low high] := deficit_bounds Code root_root norm_gt0 epsilon_ge0 near_le None.
set e := values_error _ _ _ _ _ _ _ in error_ge0 near_close *.
set U := fun f => feature_map (readout N) (with_codes p f None) l.
rewrite -(subrKA (U near)) mulrDr addrC; apply: le_trans (ler_norm_add _ _) (ler_add _ _).
  rewrite /U /network_logit feature_map_difference; apply: feature_map_bound => d.
  by apply: with_codes_close => // t i; exact: near_close.
rewrite -[X in _ - X]mul1r -mulrBl normrM mulrCA; apply: ler_pmul => //.
  by rewrite distrC ger0_norm ?subr_ge0 // ler_subl_addl -ler_subl_addr.
by apply: feature_map_bound => d; exact: with_codes_bound.
Qed.
