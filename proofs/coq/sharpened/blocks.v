(** S.blocks: the product over the blocks of their numbers of heads plus one is at least the rank of a
    convolution that a transformer without positions in its tokens has as its derivative.

    A block takes tokens x_k, k in any finite type, to f(s(x_q) + Σ_h Σ_k A_h(X)(q, k) v_h(x_k)). Here s, the
    v_h and f are any maps of one token: s the residual connection, if there is one, v_h a LayerNorm and the value
    and output map of head h, f the MLP with its own residual connection and LayerNorm. The weights A_h(X) depend
    on positions and on all tokens in any way, as long as the rows sum to one and are continuous at the point. Let a
    network be a map of one token, the embedding, any blocks one after the other, and a map of one token, the
    read-out.

    Take an image of which all tokens are the one x. Let each map of one token have a Jacobian where its tokens
    are then: along every path with a derivative at zero, that derivative is taken to another by one matrix
    (maps that are differentiable there do so). Let m ≥ r₁ / p₁ and n ≥ r₂ / p₂ be the reach of a kernel W, and for
    every offset of its flattened form F let there be tokens q and k, joined by that offset, such that the
    derivative of the output at q by the token k is the map that F has there: at one query of which all offsets
    are tokens, or each at another one. Then the product over the blocks of the numbers of heads, plus one where
    there is a residual connection, is at least rank F. If moreover all weights are positive at the point, some
    block has a head, F is not zero and some output q does not change with some token k, to first order, it is
    more than rank F.

    The weights need no derivative. Not covered: that LayerNorm and MLPs have Jacobians, and limits of networks. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention image grid bare rank limits slopes.
From Convattn.foundation Require Import flattened_kernel independent.
From Convattn.sharpened Require Import depth.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Networks.

Variables (R : realFieldType) (Token : finType).

(** A token, and tokens: functions that are equal if their values are. *)
Definition token (Feature : finType) : Type := {ffun Feature -> R}.
Definition tokens (Feature : finType) : Type := {ffun Token -> token Feature}.

Definition has_jacobian (In Out : finType) (f : token In -> token Out) (x : token In)
    (J : In -> Out -> R) : Prop :=
  forall (path : R -> token In) (d : In -> R), path 0 = x ->
    (forall i, has_slope (fun t => path t i) (d i)) ->
    forall o, has_slope (fun t => f (path t) o) (feature_map J d o).

Record block (Feature : finType) : Type := Block {
  block_head : finType;
  weight : tokens Feature -> block_head -> Token -> Token -> R;
  head_value : block_head -> token Feature -> token Feature;
  residual : bool;
  skip : token Feature -> token Feature;
  after : token Feature -> token Feature }.

Section Blocks.

Variable Feature : finType.
Implicit Types (b : block Feature) (X : tokens Feature) (x : token Feature).

Definition run_block b X : tokens Feature :=
  [ffun q => after b [ffun c => \sum_(s < residual b) skip b (X q) c +
    \sum_h \sum_k weight X h q k * @head_value _ b h (X k) c]].

Definition run_blocks (blocks : seq (block Feature)) X : tokens Feature :=
  foldl (fun Y b => run_block b Y) X blocks.

Definition alike x : tokens Feature := [ffun=> x].

(** What a block makes of tokens that are alike. *)
Definition before_after b x : token Feature :=
  [ffun c => \sum_(s < residual b) skip b x c + \sum_h @head_value _ b h x c].

(** Its heads, and the residual connection if it has one. *)
Definition paths b : finType := [finType of 'I_(residual b) + block_head b].

Definition path_weight b x (h : paths b) (q k : Token) : R :=
  if h is inr h' then @weight _ b (alike x) h' q k else (k == q)%:R.

Definition smooth_block b x : Prop :=
  [/\ forall X h q, \sum_k @weight _ b X h q k = 1,
      forall (path : R -> tokens Feature) h q k,
        (forall k c, tends_at_zero (fun t => path t k c) (x c)) ->
        tends_at_zero (fun t => @weight _ b (path t) h q k) (@weight _ b (alike x) h q k)
    & [/\ forall h, exists J, has_jacobian (@head_value _ b h) x J,
          exists J, has_jacobian (skip b) x J
        & exists J, has_jacobian (after b) (before_after b x) J]].

(** Every block is smooth at the tokens that those before it make of tokens alike. *)
Fixpoint smooth_blocks (blocks : seq (block Feature)) x : Prop :=
  if blocks is b :: rest then smooth_block b x /\ smooth_blocks rest (after b (before_after b x))
  else True.

Fixpoint positive_blocks (blocks : seq (block Feature)) x : Prop :=
  if blocks is b :: rest then
    (forall h q k, 0 < @weight _ b (alike x) h q k) /\
      positive_blocks rest (after b (before_after b x))
  else True.

(** The tokens stay alike. *)
Lemma run_block_alike b x : smooth_block b x ->
  run_block b (alike x) = alike (after b (before_after b x)).
Proof.
case=> sums _ _; apply/ffunP => q; rewrite !ffunE; congr (after b _); apply/ffunP => c.
rewrite !ffunE; congr (_ + _); apply: eq_bigr => h _.
under eq_bigr do rewrite ffunE.
by rewrite -mulr_suml sums mul1r.
Qed.

Lemma run_blocks_alike (blocks : seq (block Feature)) x : smooth_blocks blocks x ->
  run_blocks blocks (alike x) = alike (foldl (fun y b => after b (before_after b y)) x blocks).
Proof.
elim: blocks x => //= b rest IH x [smooth smooth_rest].
by rewrite run_block_alike // IH.
Qed.

(** A block's derivative is a layer with its heads and one for the residual connection. *)
Lemma block_slope b x : smooth_block b x ->
  exists M : paths b -> Feature -> Feature -> R,
  forall (path : R -> tokens Feature) (D : Token -> Feature -> R), path 0 = alike x ->
    (forall k c, has_slope (fun t => path t k c) (D k c)) ->
    forall q c, has_slope (fun t => run_block b (path t) q c)
      (attention_layer (path_weight x) M D q c).
Proof.
case=> sums near [/fin_all_exists[JV jv] [JS js] [JA ja]].
pose N (h : paths b) := if h is inr h' then JV h' else JS.
exists (fun h i o => \sum_c N h i c * JA c o).
move=> path D start slopes q o; pose A := @path_weight b x.
pose inner t : token Feature := [ffun c => \sum_(s < residual b) skip b (path t q) c +
  \sum_h \sum_k weight (path t) h q k * @head_value _ b h (path t k) c].
have at0 k : path 0 k = x by rewrite start ffunE.
have start_inner : inner 0 = before_after b x.
  apply/ffunP => c; rewrite !ffunE at0; congr (_ + _); apply: eq_bigr => h _.
  by under eq_bigr do rewrite at0; rewrite -mulr_suml sums mul1r.
have inner_slope c : has_slope (fun t => inner t c) (attention_layer A N D q c).
  apply: (@eq_slope _ (fun t => \sum_(s < residual b) skip b (path t q) c +
    \sum_h \sum_k weight (path t) h q k * @head_value _ b h (path t k) c)) => [t|].
    by rewrite ffunE.
  rewrite /attention_layer big_sumType /=; apply: slope_add; apply: slope_sum => h.
    have -> : feature_map JS (attend (A (inl h) q) D) c = feature_map JS (D q) c.
      apply: eq_feature_map => // i; rewrite /attend (bigD1 q) //= eqxx mul1r big1 ?addr0 //.
      by move=> k /negbTE ->; rewrite mul0r.
    exact: js (at0 q) (slopes q) c.
  rewrite feature_map_sum.
  have from k : has_slope (fun t => @head_value _ b h (path t k) c) (feature_map (JV h) (D k) c).
    exact: jv (at0 k) (slopes k) c.
  have lim : tends_at_zero
      (fun t => \sum_k weight (path t) h q k * ((@head_value _ b h (path t k) c - @head_value _ b h x c) / t))
      (\sum_k @weight _ b (alike x) h q k * feature_map (JV h) (D k) c).
    apply: tends_sum => k; apply: tends_mul.
      apply: near => k' c'; rewrite -(at0 k'); exact: slope_continuous (slopes k' c').
    by rewrite -[in X in tends_at_zero X _](at0 k); exact: from.
  apply: eq_tends lim => t.
  under [X in _ = (_ - X) / t]eq_bigr do rewrite at0.
  rewrite -[X in _ = (_ - X) / t]mulr_suml sums mul1r.
  rewrite -[X in _ = (_ - X) / t]mul1r -(sums (path t) h q) mulr_suml -sumrB mulr_suml.
  by apply: eq_bigr => k _; rewrite -mulrBr mulrA.
have := ja inner (attention_layer A N D q) start_inner inner_slope o.
rewrite (_ : feature_map JA _ o = attention_layer A (fun h i o => \sum_c N h i c * JA c o) D q o).
  by apply: eq_slope => t; rewrite /run_block ffunE.
rewrite /feature_map /attention_layer; under eq_bigr do rewrite mulr_suml.
rewrite exchange_big; apply: eq_bigr => h _ /=; rewrite /feature_map.
under eq_bigr do rewrite mulr_suml.
rewrite exchange_big; apply: eq_bigr => i _ /=; rewrite mulr_sumr.
by apply: eq_bigr => c _; rewrite mulrA.
Qed.

(** The product of the numbers of heads and residual connections. *)
Definition all_paths (blocks : seq (block Feature)) : nat :=
  (\prod_(b <- blocks) (residual b + #|block_head b|))%N.

(** So is that of all blocks, with as many heads as the product says. *)
Lemma blocks_slope (blocks : seq (block Feature)) x : smooth_blocks blocks x ->
  exists (Head : finType) (A : Head -> Token -> Token -> R) (M : Head -> Feature -> Feature -> R),
  [/\ #|Head| = all_paths blocks,
      forall (path : R -> tokens Feature) (D : Token -> Feature -> R), path 0 = alike x ->
        (forall k c, has_slope (fun t => path t k c) (D k c)) ->
        forall q c, has_slope (fun t => run_blocks blocks (path t) q c) (attention_layer A M D q c)
    & positive_blocks blocks x -> (0 < all_paths blocks)%N ->
      exists h, ((forall q k, A h q k = (k == q)%:R) \/ (forall q k, 0 < A h q k)) /\
        (has (fun b => 0 < #|block_head b|)%N blocks -> forall q k, 0 < A h q k)].
Proof.
elim: blocks x => [|b rest IH] x /=.
  move=> _; exists [finType of unit], (fun _ q k => (k == q)%:R), (fun _ i o => (i == o)%:R).
  split=> [|path D _ slopes q c|_ _]; [by rewrite /all_paths big_nil card_unit| |].
    suff -> : attention_layer (fun (_ : unit) (q k : Token) => (k == q)%:R)
        (fun _ i o => (i == o)%:R) D q c = D q c by [].
    rewrite /attention_layer (big_pred1 tt) => [|[]//].
    rewrite /feature_map (bigD1 c) //= eqxx mulr1 [X in _ + X]big1 ?addr0 => [|i /negbTE ->].
      rewrite /attend (bigD1 q) //= eqxx mul1r big1 ?addr0 // => k /negbTE ->; exact: mul0r.
    exact: mulr0.
  by exists tt; split=> //; left.
case=> smooth smooth_rest.
have [N slope_b] := block_slope smooth.
have [G [A [M [count slope_rest pos_rest]]]] := IH _ smooth_rest.
exists [finType of G * paths b], (composite_attention (path_weight x) A), (composite_map N M); split.
- by rewrite card_prod card_sum card_ord count /all_paths big_cons mulnC.
- move=> path D start slopes q c; rewrite -composite.
  apply: slope_rest => [|k c']; first by rewrite start run_block_alike.
  exact: slope_b.
rewrite /all_paths big_cons muln_gt0 => -[pos pos_blocks] /andP[some some_rest].
have [g [kind has_rest]] := pos_rest pos_blocks some_rest.
case: (pickP (fun _ : block_head b => true)) => [h _|none].
  suff all_pos q k : 0 < composite_attention (path_weight x) A (g, inr h) q k.
    by exists (g, inr h); split=> //; right.
  rewrite /composite_attention /= (bigD1 q) //=.
  case: kind => [id_g|pos_g]; last first.
    by rewrite ltr_paddr ?mulr_gt0 // sumr_ge0 // => p _; rewrite ltW ?mulr_gt0.
  by rewrite id_g eqxx mul1r big1 ?addr0 => [|p /negbTE np]; rewrite ?id_g ?np ?mul0r.
move: some; rewrite eq_card0 //= addn0 => some; pose s := Ordinal some.
have same q k : composite_attention (path_weight x) A (g, inl s) q k = A g q k.
  rewrite /composite_attention /= (bigD1 k) //= eqxx mulr1.
  by rewrite big1 ?addr0 // => p; rewrite eq_sym => /negbTE ->; rewrite mulr0.
exists (g, inl s); split=> [|some_head q k]; last by rewrite same has_rest.
by case: kind => [id_g|pos_g]; [left|right] => q k; rewrite same.
Qed.

End Blocks.

(** Embedding, blocks, read-out. *)
Definition run_network (In Feature Out : finType) (embed : token In -> token Feature)
    (blocks : seq (block Feature)) (read : token Feature -> token Out) (X : tokens In) (q : Token) :
    token Out :=
  read (run_blocks blocks [ffun k => embed (X k)] q).

End Networks.

(** Tokens alike, but for t more in one feature of one. *)
Definition perturbed (R : realFieldType) (Token In : finType) (x : token R In) (k : Token) (s : In) (t : R) :
    tokens R Token In :=
  [ffun k' => [ffun i => x i + t * ((k' == k) && (i == s))%:R]].

Theorem blocks (R : realFieldType) (In Feature Out : finType) (rows columns p1 p2 m n r1 r2 : nat)
    (embed : token R (patch_feature p1 p2 In) -> token R Feature)
    (chain : seq (block R (bare_grid rows columns) Feature))
    (read : token R Feature -> token R (patch_feature p1 p2 Out))
    (x : token R (patch_feature p1 p2 In)) (W : nat -> nat -> In -> Out -> R) :
  let kernel := flattened_kernel p1 p2 m n r1 r2 W in
  let changes (k q : bare_grid rows columns) s o :=
    has_slope (fun t => run_network embed chain read (perturbed x k s t) q o) in
  let output := foldl (fun y b => after b (before_after b y)) (embed x) chain in
  (exists J, has_jacobian embed x J) -> smooth_blocks chain (embed x) ->
  (exists J, has_jacobian read output J) ->
  (forall d : token_offset m n, exists q k : bare_grid rows columns,
     ringed_key q d = image_key m n k /\ forall s o, changes k q s o (kernel (s, o) d)) ->
  (family_rank kernel <= all_paths chain)%N /\
  (positive_blocks chain (embed x) -> has (fun b => 0 < #|block_head b|)%N chain ->
   (0 < family_rank kernel)%N -> (exists q k, forall s o, changes k q s o 0) ->
   (family_rank kernel < all_paths chain)%N).
Proof.
move=> kernel changes output [E je] smooth [U ju] convolves.
have [G [A [M [count slope positive]]]] := blocks_slope smooth.
pose N h s o := \sum_c (\sum_i E s i * M h i c) * U c o.
have change k q s o : changes k q s o (\sum_h N h s o * A h q k).
  pose D (k' : bare_grid rows columns) c := (k' == k)%:R * E s c.
  pose path t : tokens R _ Feature := [ffun k' => embed (perturbed x k s t k')].
  have start k' : perturbed x k s 0 k' = x.
    by apply/ffunP => i; rewrite !ffunE mul0r addr0.
  have pathE u k' : path u k' = embed (perturbed x k s u k') by rewrite ffunE.
  have start_path : path 0 = alike _ (embed x) by apply/ffunP => k'; rewrite pathE start ffunE.
  have slope_path k' c : has_slope (fun t => path t k' c) (D k' c).
    pose e i : R := ((k' == k) && (i == s))%:R.
    have slope_e i : has_slope (fun t => perturbed x k s t k' i) (e i).
      move=> eps pos; exists 1 => [|t /andP[t_gt0 _]]; first exact: ltr01.
      rewrite !ffunE mul0r addr0 addrAC subrr add0r mulrAC mulfV ?lt0r_neq0 // mul1r.
      by rewrite subrr normr0.
    have := je (fun t => perturbed x k s t k') e (start k') slope_e c.
    rewrite (_ : feature_map E e c = D k' c); last first.
      rewrite /feature_map (bigD1 s) //= [X in _ + X]big1 ?addr0 => [|i /negbTE ns].
        by rewrite /e eqxx andbT.
      by rewrite /e ns andbF mul0r.
    by move=> slope_c; apply: eq_slope slope_c => u; rewrite pathE.
  have := ju (fun t => run_blocks chain (path t) q) (attention_layer A M D q) _ _ o.
  rewrite (_ : feature_map U _ o = \sum_h N h s o * A h q k); last first.
    rewrite /feature_map; under eq_bigr do rewrite mulr_suml.
    rewrite exchange_big; apply: eq_bigr => h _ /=; rewrite mulr_suml; apply: eq_bigr => c _.
    rewrite mulrAC; congr (_ * _); rewrite /feature_map mulr_suml; apply: eq_bigr => i _.
    rewrite /attend (bigD1 k) //= /D eqxx mul1r big1 ?addr0 => [|k' /negbTE ->].
      by rewrite mulrC mulrA mulrAC.
    by rewrite mul0r mulr0.
  apply=> [|c]; first by rewrite start_path run_blocks_alike // ffunE.
  exact: slope start_path slope_path q c.
have [q q_joins] := fin_all_exists convolves; have [k joins] := fin_all_exists q_joins.
have through st d : kernel st d = \sum_h N h st.1 st.2 * A h (q d) (k d).
  case: st => s o; have [_ slope_d] := joins d.
  exact: tends_unique (slope_d s o) (change (k d) (q d) s o).
have least : (family_rank kernel <= all_paths chain)%N.
  by rewrite -count; exact: family_rank_product through.
split=> // pos some_head rank_pos [q0 [k0 none]].
have [h [_ /(_ some_head) pos_h]] := positive pos (leq_trans rank_pos least).
rewrite -count.
rewrite ltnNge; apply/negP => full.
have zero : forall st : patch_feature p1 p2 In * patch_feature p1 p2 Out,
    \sum_h N h st.1 st.2 * A h q0 k0 = 0.
  by case=> s o; exact: tends_unique (change k0 q0 s o) (none s o).
have := independent_columns through full zero h; have := pos_h q0 k0.
by move=> + e; rewrite e ltxx.
Qed.
