(** S.width (1): in the limit a base offset has room in the heads of the others.

    Let m ≥ r₁ / p₁ and n ≥ r₂ / p₂, let M_δ be the maps of the kernel W over an ordered field, r_δ the
    rank of M_δ, c the number of features of a token, d ≥ 1 the width of a head, and o any one of the
    offsets, such as the centre. Let G = Σ_(δ≠o) ⌈r_δ / d⌉, R the rank of the M_δ, δ ≠ o, side by side, and
    s = min(G d - Σ_(δ≠o) r_δ, c - R). Then for every ε > 0 there are G + ⌈(c - s) / d⌉ heads of width d at
    finite scores whose layer is off the zero-padded convolution by at most ε, at every output of every
    image whose pixels lie between -1 and 1, of any number of patches, with a ring of m × n zero patches.
    Head h attends by the softmax of the positive weights 1 + N Σ_δ w_hδ [key = query + δ], N being the
    number of keys. One set of numbers w_hδ ≥ 0 and maps V_h U_h through d features serves all sizes.

    M_o need not be invertible. The proof's maps grow without bound as ε vanishes. How many heads are
    needed at least is width_necessary. Not covered: exact layers of a given width. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring zify.
From Convattn.foundation Require Import attention image grid patches rank rank_factors head_dimension.
From Convattn.foundation Require Import flattened_kernel offset_heads split_heads spare_rank.
From Convattn.sharpened Require Import kernel_limit.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory Num.Theory Order.Theory.
Local Open Scope ring_scope.

Section Maps.

Variables (F : realFieldType) (Offset In Out : finType) (base : Offset).
Variables (M Z : Offset -> In -> Out -> F) (whole : In -> Out -> F) (eta : F).
Hypothesis parts : forall i o, whole i o = \sum_d Z d i o.
Hypothesis none : forall i o, Z base i o = 0.
Hypothesis pos : 0 < eta.

(** The maps of all offsets but the base, which is zero here. *)
Definition other_maps (d : Offset) (i : In) (o : Out) : F := if d == base then 0 else M d i o.

(** Every head looks at the base, and the heads of another offset there, too. *)
Definition base_numbers (h d : Offset) : F := (d == base)%:R / eta + ((d == h) && (h != base))%:R.

Definition base_maps (h : Offset) (i : In) (o : Out) : F :=
  if h == base then eta * (M base i o - whole i o - eta^-1 * \sum_d other_maps d i o)
  else M h i o + eta * Z h i o.

Lemma base_numbers_ge0 h d : 0 <= base_numbers h d.
Proof. by rewrite addr_ge0 ?ler0n // divr_ge0 ?ler0n // ltW. Qed.

Lemma base_maps_sum i o : \sum_h base_maps h i o = eta * M base i o.
Proof.
have nz : eta != 0 by rewrite gt_eqF.
have each h : base_maps h i o = (if h == base then
    eta * M base i o - eta * whole i o - \sum_d other_maps d i o else 0)
    + (other_maps h i o + eta * Z h i o).
  rewrite /base_maps /other_maps; case: eqP => [->|_]; last by rewrite add0r.
  by rewrite none mulr0 addr0 addr0 !mulrBr mulVKf.
rewrite (eq_bigr _ (fun h _ => each h)) !big_split -big_mkcond big_pred1_eq -big_distrr /=.
by rewrite -parts; ring.
Qed.

Lemma base_family d i o : \sum_h base_numbers h d * base_maps h i o = M d i o + eta * Z d i o.
Proof.
have nz : eta != 0 by rewrite gt_eqF.
under eq_bigr do rewrite mulrDl; rewrite big_split -big_distrr base_maps_sum /=.
case: (eqVneq d base) => [->|ne].
  rewrite none mulr0 addr0 mul1r mulKf // big1 ?addr0 // => h _.
  by case: eqP => [<-|_]; rewrite ?eqxx mul0r.
rewrite mul0r mul0r add0r (bigD1 d) //= eqxx ne mul1r big1 ?addr0 => [|h /negbTE nh].
  by rewrite /base_maps (negbTE ne).
by rewrite eq_sym nh mul0r.
Qed.

End Maps.

Section Layer.

Variables (F : realFieldType) (In Out : finType) (p1 p2 m n r1 r2 dim : nat).
Variables (W : nat -> nat -> In -> Out -> F) (base : token_offset m n) (eps : F).
Variables (count extra : token_offset m n -> nat).
Hypothesis le1 : (r1 <= p1 * m)%N.
Hypothesis le2 : (r2 <= p2 * n)%N.
Hypothesis pos : 0 < eps.

Let maps (d : token_offset m n) (s : patch_feature p1 p2 In) (t : patch_feature p1 p2 Out) : F :=
  flattened_kernel p1 p2 m n r1 r2 W (s, t) d.

Hypothesis room : forall d, d != base -> (family_rank (maps d) + extra d <= count d * dim)%N.
Hypothesis base_extra : extra base = 0%N.
Hypothesis few : (\sum_d extra d <= #|patch_feature p1 p2 In| - family_rank
  (fun s (dt : token_offset m n * patch_feature p1 p2 Out) => other_maps base maps dt.1 s dt.2))%N.
Hypothesis base_room : (#|patch_feature p1 p2 In| - \sum_d extra d <= count base * dim)%N.

Lemma width_layer :
  exists (w : split_head count -> token_offset m n -> F)
      (V : split_head count -> patch_feature p1 p2 In -> 'I_dim -> F)
      (U : split_head count -> 'I_dim -> patch_feature p1 p2 Out -> F),
    [/\ forall h d, 0 <= w h d,
        forall (rows columns : nat) h (q : bare_grid rows columns) k, 0 < offset_weights (w h) q k
      & forall (rows columns : nat) (X : image_type F In) (q : bare_grid rows columns)
            (t : patch_feature p1 p2 Out),
          (forall y x c, `|X y x c| <= 1) ->
          `|attention_layer
              (fun h (q : bare_grid rows columns) => softmax (offset_weights (w h) q))
              (fun h => through (V h) (U h)) (patch_token X) q t -
            convolution (p1 * rows) (p2 * columns) r1 r2 W X
              (p1 * q.1 + t.1.1)%N (p2 * q.2 + t.1.2)%N t.2| <= eps].
Proof.
have [whole low rest] := spare_family (maps base) few.
have [|L [R parts]] := @low_rank_factors F _ _ (split_head extra) whole.
  by rewrite card_split_head.
pose Z d s t := \sum_(j < extra d) L s (head_of j) * R (head_of j) t.
have {}parts s t : whole s t = \sum_d Z d s t by rewrite parts sum_split_head.
have none s t : Z base s t = 0.
  by rewrite /Z big1 // => j _; have := ltn_ord j; rewrite [X in (_ < X)%N]base_extra.
have lowZ d : (family_rank (Z d) <= extra d)%N.
  have := @family_rank_product F _ [finType of 'I_(extra d)] _ (Z d)
    (fun s j => L s (head_of j)) (fun j t => R (head_of j) t).
  by rewrite card_ord; apply.
pose size := \sum_s \sum_t (\sum_d `|Z d s t| + `|maps base s t|).
have size0 : 0 <= size by rewrite !sumr_ge0 // => s _; rewrite sumr_ge0 // => t _; rewrite addr_ge0 ?sumr_ge0.
have pos1 : 0 < size + 1 by rewrite ltr_paddl ?ltr01.
pose eta := eps / (size + 1); have pos_eta : 0 < eta by rewrite divr_gt0.
have nz_eta : eta != 0 by rewrite gt_eqF.
pose w := base_numbers base eta; pose C := base_maps base maps Z whole eta.
have [|V [U split]] := @split_maps F _ _ _ dim count (fun h s t => (1 + \sum_d w h d) * C h s t).
  move=> h; apply: leq_trans (family_rank_scale _ _) _; rewrite /C /base_maps.
  case: (eqVneq h base) => [->|ne].
    by apply: leq_trans (family_rank_scale _ _) (leq_trans (rest _) base_room).
  apply: leq_trans (family_rank_add _ _) (leq_trans _ (room ne)); rewrite leq_add2l.
  exact: leq_trans (family_rank_scale _ _) (lowZ h).
exists (fun h => w (tag h)), V, U.
have ge0 h d : 0 <= w h d := base_numbers_ge0 base pos_eta h d.
split=> [h d|rows columns h q k|rows columns X q t small]; first exact: ge0.
  exact: offset_weights_gt0.
rewrite (split_layer (fun h q => softmax (offset_weights (w h) q)) _ _ _ split).
rewrite -(convolution_of_tokens W X q t le1 le2).
rewrite offset_layer; [|exact: keys_neq0 q|by move=> h; exact: offset_total_neq0].
pose token (d : token_offset m n) (s : patch_feature p1 p2 In) := patch_token X (ringed_key q d) s.
pose mean (s : patch_feature p1 p2 In) :=
  mean_token (fun k : ringed_grid rows columns m n => patch_token X k) s.
rewrite (_ : _ - _ = eta * \sum_s (\sum_d token d s * Z d s t + mean s * maps base s t)); last first.
  rewrite addrAC -sumrB [X in _ = eta * X]big_split mulrDr [X in _ = eta * X + _]exchange_big; congr (_ + _).
    rewrite big_distrr; apply: eq_bigr => d _; rewrite -sumrB big_distrr; apply: eq_bigr => s _ /=.
    by rewrite (base_family maps parts none pos_eta) -/(token d s) /maps /flattened_kernel /=; ring.
  rewrite big_distrr; apply: eq_bigr => s _ /=.
  by rewrite (base_maps_sum maps parts none pos_eta) -/(mean s); ring.
rewrite normrM (gtr0_norm pos_eta); apply: (@le_trans _ _ (eta * size)); last first.
  by rewrite /eta mulrAC ler_pdivr_mulr // ler_wpmul2l ?(ltW pos) // ler_addl ler01.
rewrite ler_wpmul2l ?(ltW pos_eta) //; apply: le_trans (ler_norm_sum _ _ _) _.
apply: ler_sum => s _; rewrite (bigD1 t) //=.
apply: (@le_trans _ _ (\sum_d `|Z d s t| + `|maps base s t|)); last first.
  by rewrite ler_addl sumr_ge0 // => t' _; rewrite addr_ge0 ?sumr_ge0.
have shrink (x y : F) : `|x| <= 1 -> `|x * y| <= `|y|.
  by move=> le; rewrite normrM -[leRHS]mul1r ler_wpmul2r.
apply: le_trans (ler_norm_add _ _) _; apply: ler_add; last exact/shrink/mean_le1.
apply: le_trans (ler_norm_sum _ _ _) _; apply: ler_sum => d _; exact/shrink/token_le1.
Qed.

End Layer.

(** Spare places can be taken as far as they are wanted. *)
Lemma spread (T : finType) (free : T -> nat) (s : nat) : (s <= \sum_t free t)%N ->
  exists2 extra : T -> nat, (forall t, extra t <= free t)%N & (\sum_t extra t = s)%N.
Proof.
elim: s => [|s IH] le; first by exists (fun=> 0%N) => //; rewrite big1.
have [extra lef sum] := IH (ltnW le).
have [t lt] : exists t, (extra t < free t)%N.
  apply/existsP; apply: contraLR le; rewrite negb_exists => /forallP full.
  rewrite -leqNgt -sum; apply: leq_sum => t _; rewrite leqNgt; exact: full.
exists (fun t' => if t' == t then (extra t).+1 else extra t') => [t'|].
  by case: eqP => [->|].
rewrite (bigD1 t) //= eqxx -sum [in RHS](bigD1 t) //= addSn; congr (_ + _).+1.
by apply: eq_bigr => t' /negbTE ->.
Qed.

Theorem width (F : realFieldType) (In Out : finType) (p1 p2 m n r1 r2 dim : nat)
    (W : nat -> nat -> In -> Out -> F) (base : token_offset m n) (eps : F) :
  let maps d s t := flattened_kernel p1 p2 m n r1 r2 W (s, t) d in
  let others s (dt : token_offset m n * patch_feature p1 p2 Out) :=
    if dt.1 == base then 0 else maps dt.1 s dt.2 in
  let groups := (\sum_(d | d != base) heads_for_rank dim (family_rank (maps d)))%N in
  let ranks := (\sum_(d | d != base) family_rank (maps d))%N in
  let features := #|patch_feature p1 p2 In| in
  let spare := minn (groups * dim - ranks) (features - family_rank others) in
  (r1 <= p1 * m)%N -> (r2 <= p2 * n)%N -> (0 < dim)%N -> 0 < eps ->
  exists (Head : finType) (w : Head -> token_offset m n -> F)
      (V : Head -> patch_feature p1 p2 In -> 'I_dim -> F)
      (U : Head -> 'I_dim -> patch_feature p1 p2 Out -> F),
    [/\ #|Head| = (groups + heads_for_rank dim (features - spare))%N,
        forall h d, 0 <= w h d,
        forall (rows columns : nat) h (q : bare_grid rows columns) k, 0 < offset_weights (w h) q k
      & forall (rows columns : nat) (X : image_type F In) (q : bare_grid rows columns)
            (t : patch_feature p1 p2 Out),
          (forall y x c, `|X y x c| <= 1) ->
          `|attention_layer
              (fun h (q : bare_grid rows columns) => softmax (offset_weights (w h) q))
              (fun h => through (V h) (U h)) (patch_token X) q t -
            convolution (p1 * rows) (p2 * columns) r1 r2 W X
              (p1 * q.1 + t.1.1)%N (p2 * q.2 + t.1.2)%N t.2| <= eps].
Proof.
move=> maps others groups ranks features spare le1 le2 lt0 pos.
pose heads d := heads_for_rank dim (family_rank (maps d)).
have enough d : (family_rank (maps d) <= heads d * dim)%N by exact: heads_for_rank_enough.
pose free d := if d == base then 0%N else (heads d * dim - family_rank (maps d))%N.
have total : (\sum_d free d = groups * dim - ranks)%N.
  rewrite /groups /ranks big_distrl /= (bigD1 base) //= /free eqxx add0n -sumnB => [|d _].
    by apply: eq_bigr => d /negbTE ->.
  exact: enough.
have [extra le_free sum] : exists2 extra, (forall d, extra d <= free d)%N & (\sum_d extra d = spare)%N.
  by apply: spread; rewrite total geq_minl.
pose count d := if d == base then heads_for_rank dim (features - spare) else heads d.
have := @width_layer F In Out p1 p2 m n r1 r2 dim W base eps count extra le1 le2 pos.
case=> [d ne||||w [V [U layer]]].
- have := le_free d; have := enough d; rewrite /free /count (negbTE ne) -/(maps d); lia.
- by have := le_free base; rewrite /free eqxx leqn0 => /eqP.
- by rewrite sum geq_minr.
- by rewrite sum /count eqxx heads_for_rank_enough.
exists (split_head count), w, V, U; case: layer => w_ge0 w_gt0 near; split=> //.
rewrite card_split_head (bigD1 base) //= /count eqxx addnC; congr (_ + _)%N.
by apply: eq_bigr => d /negbTE ->.
Qed.
