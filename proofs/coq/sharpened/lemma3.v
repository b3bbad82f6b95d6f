(** S.lemma3: value maps exist for every kernel iff one matrix Φ serves all queries.

    Let an image of p₁ · rows by p₂ · columns pixels be cut into tokens of p₁ × p₂ (pixels: 1 × 1),
    with a ring of a × b zero tokens around them or with none (a = b = 0). Let the heads' attention
    be any numbers A h q k that do not depend on the content, from every token q of the image to
    every key k; rows need not sum to one. Let the head dimension be at least the smaller of the
    widths of the tokens in and out, and let there be at least one channel on each side. The
    offsets are -m..m and -n..n with m = ⌈(K₁-1)/(2 p₁)⌉ and n = ⌈(K₂-1)/(2 p₂)⌉.

    Then the following are equivalent: for every K₁ × K₂ kernel there are W_val^(h) and W_out^(h) with
    which the layer is the zero-padded convolution, for every image; and there is one matrix Φ,
    offsets × heads, with E_q = Φ A_q for all queries q at once. The row δ of E_q is one at the image's
    token q + δ and zero elsewhere, all zero if q + δ is no token of the image; A_q has the rows of the
    heads at q, without what they give to the ring's zero tokens. This holds over every field. A bias
    added to the output would be zero, as the zero image shows.

    Kernels with a single one in one pair of channels are all that "only if" uses. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import zify.
From Convattn.foundation Require Import attention image heads grid patches bare.
From Convattn.foundation Require Import head_dimension shared_map zero_ring.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

(** No offset is there in vain: the kernel joins some pixel of its patch to one of the query's. *)
Lemma offset_used (p r i : nat) : (0 < p)%N -> (i < (patch_reach p r).*2.+1)%N ->
  exists s t u, [/\ (s < p)%N, (t < p)%N & axis_tap p (patch_reach p r) r i s t = Some u].
Proof.
rewrite /patch_reach; set m := ((r + p.-1) %/ p)%N => lt0p lti.
have le_m : (p * m <= r + p.-1)%N by rewrite mulnC leq_trunc_div.
have used s t : (s < p)%N -> (t < p)%N ->
    (p * m + t <= p * i + s + r < p * m + t + r.*2.+1)%N ->
    exists s t u, [/\ (s < p)%N, (t < p)%N & axis_tap p m r i s t = Some u].
  move=> lts ltt bounds; exists s, t; rewrite /axis_tap ifT; last by lia.
  by eexists; split.
case: (ltngtP i m) => [ltim | ltmi | eim].
- have le1 : (p * i + p <= p * m)%N by rewrite -mulnSr leq_mul2l ltim orbT.
  by apply: (used p.-1 0%N); lia.
- have le1 : (p * m + p <= p * i)%N by rewrite -mulnSr leq_mul2l ltmi orbT.
  have le2 : (p * i <= p * m.*2)%N by rewrite leq_mul2l -ltnS lti orbT.
  rewrite -doubleMr in le2; apply: (used 0%N p.-1); lia.
by apply: (used 0%N 0%N); rewrite ?eim; lia.
Qed.

(** Two pixels are joined by one tap in one offset only. *)
Lemma tap_of_one_offset (p m r i i' s t u : nat) : (0 < p)%N ->
  axis_tap p m r i s t = Some u -> (axis_tap p m r i' s t == Some u) = (i' == i).
Proof.
rewrite /axis_tap => lt0p; case: ifP => // c1 [eu].
apply/eqP/eqP => [|->]; last by rewrite c1 eu.
case: ifP => // c2 [eu']; apply/eqP; rewrite -(eqn_pmul2l lt0p); lia.
Qed.

(** For every offset there are two pixels and a kernel of a single one, in one pair of channels,
    whose blocks join them at that offset and at no other. *)
Lemma one_tap_kernel (F : fieldType) (In Out : finType) (p1 p2 r1 r2 : nat) (c : In) (o : Out)
    (d : token_offset (patch_reach p1 r1) (patch_reach p2 r2)) :
  (0 < p1)%N -> (0 < p2)%N ->
  exists (W : nat -> nat -> In -> Out -> F) (s : patch_feature p1 p2 In) (t : patch_feature p1 p2 Out),
  forall d' : token_offset (patch_reach p1 r1) (patch_reach p2 r2),
    output_block (patch_reach p1 r1) (patch_reach p2 r2) r1 r2 W d'.1 d'.2 s t = (d' == d)%:R.
Proof.
case: d => i j lt0p1 lt0p2.
have [s1 [t1 [u [lts1 ltt1 eu]]]] := offset_used lt0p1 (ltn_ord i).
have [s2 [t2 [v [lts2 ltt2 ev]]]] := offset_used lt0p2 (ltn_ord j).
exists (fun y x c' o' => [&& y == u, x == v, c' == c & o' == o]%:R).
exists (Ordinal lts1, Ordinal lts2, c), (Ordinal ltt1, Ordinal ltt2, o) => -[i' j'].
rewrite /output_block /joining_tap /= !eqxx -pair_eqE /= -!val_eqE /=.
rewrite -(tap_of_one_offset i' lt0p1 eu) -(tap_of_one_offset j' lt0p2 ev).
case: (axis_tap _ _ _ i' _ _) => [u'|] //; case: (axis_tap _ _ _ j' _ _) => [v'|] //=.
  by rewrite andbT.
by rewrite andbF.
Qed.

Theorem lemma3 (F : fieldType) (Head In Out Inner : finType) (rows columns a b p1 p2 r1 r2 : nat)
    (A : Head -> bare_grid rows columns -> ringed_grid rows columns a b -> F) :
  (0 < p1)%N -> (0 < p2)%N -> (0 < #|In|)%N -> (0 < #|Out|)%N ->
  (minn #|patch_feature p1 p2 In| #|patch_feature p1 p2 Out| <= #|Inner|)%N ->
  (forall W : nat -> nat -> In -> Out -> F,
    exists (V : Head -> patch_feature p1 p2 In -> Inner -> F)
           (O : Head -> Inner -> patch_feature p1 p2 Out -> F),
    forall (X : image_type F In) (q : bare_grid rows columns) (t : patch_feature p1 p2 Out),
      attention_layer A (fun h => through (V h) (O h)) (patch_token X) q t =
        convolution (p1 * rows) (p2 * columns) r1 r2 W X
          (p1 * q.1 + t.1.1)%N (p2 * q.2 + t.1.2)%N t.2)
  <->
  (exists Phi : token_offset (patch_reach p1 r1) (patch_reach p2 r2) -> Head -> F,
    forall q d (k : bare_grid rows columns),
      one_hot F (bare_target q d) k = \sum_h Phi d h * A h q (image_key a b k)).
Proof.
move=> lt0p1 lt0p2 /card_gt0P[c _] /card_gt0P[o _] wide.
have le1 := patch_reach_suffices r1 lt0p1; have le2 := patch_reach_suffices r2 lt0p2.
pose block W := fun d : token_offset (patch_reach p1 r1) (patch_reach p2 r2) =>
  output_block (F := F) (p1 := p1) (p2 := p2) (In := In) (Out := Out)
    (patch_reach p1 r1) (patch_reach p2 r2) r1 r2 W d.1 d.2.
have layer_on_image M (X : image_type F In) q t : attention_layer A M (patch_token X) q t =
    attention_layer (fun h q k => A h q (image_key a b k)) M (bare_token X) q t.
  by apply: eq_bigr => h _; apply: eq_feature_map => // i; rewrite attend_ringed.
split=> [express | [Phi one_map] W].
  have express_one (d : token_offset (patch_reach p1 r1) (patch_reach p2 r2)) :
      exists phi : Head -> F, forall q k,
      one_hot F (bare_target q d) k = \sum_h phi h * A h q (image_key a b k).
    have [W [s [t one_tap]]] := one_tap_kernel F c o d lt0p1 lt0p2.
    have [V [O eq_conv]] := express W.
    exists (fun h => through (V h) (O h) s t).
    apply: (one_map_row (M := fun h => through (V h) (O h)) (B := block W) one_tap) => T q.
    have := eq_conv (image_of_tokens T) q t.
    rewrite layer_on_image -(convolution_of_bare_tokens _ _ _ _ le1 le2) => eq_layer.
    transitivity (attention_layer (fun h q k => A h q (image_key a b k))
        (fun h => through (V h) (O h)) (bare_token (image_of_tokens T)) q t).
      apply: eq_bigr => h _; apply: eq_feature_map => // i.
      by apply: eq_bigr => k _; rewrite bare_token_image.
    rewrite eq_layer; apply: eq_bigr => d' _; apply: eq_feature_map => // i.
    by case: bare_target => // k; rewrite bare_token_image.
  by have [Phi one_map] := fin_all_exists express_one; exists Phi.
have [V [O eM]] := heads_through (fun h s t => \sum_d Phi d h * block W d s t) wide.
exists V, O => X q t; rewrite layer_on_image (eq_layer_maps _ _ _ _ eM).
by rewrite (one_map_suffices _ _ _ _ one_map) -(convolution_of_bare_tokens _ _ _ _ le1 le2).
Qed.
