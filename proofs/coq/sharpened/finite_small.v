(** S.finite, small images: where all tokens are in reach, the heads of the offsets are enough.

    In the setting of L21's Theorem 1 (patches of p₁ × p₂, a ring of m × n zero patches), let the image
    have at most m + 1 rows and n + 1 columns of patches. Then the relative-bias heads alone, one for
    each of the D = (2m+1)(2n+1) offsets and with the weight e at its target and 1 elsewhere, compute
    every zero-padded convolution at finite parameters, exactly: with the maps
    Z / (e - 1) · (M_δ - Σ M / (D + e - 1)), where Z = N + e - 1 and N is the number of keys, in every
    field in which e ≠ 1 and N, Z and D + e - 1 are not zero (as they never are for real e > 0). So the
    last condition of finite_necessary, on the sides, cannot be weakened: the key out of reach must be
    a token of the image; one of the ring, which there is unless the image is a single patch, is zero
    and tells nothing. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring zify.
From Convattn.foundation Require Import attention image heads grid patches bare zero_ring.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

(** The maps of the heads; none is uniform. *)
Definition small_image_maps (F : fieldType) (Offset In : finType) (Out : Type)
    (M : Offset -> In -> Out -> F) (keys : nat) (e : F) (d : Offset) (i : In) (o : Out) : F :=
  (keys%:R + e - 1) / (e - 1) * (M d i o - (\sum_d' M d' i o) / (#|Offset|%:R + e - 1)).

Section Reach.

Variables (F : fieldType) (rows columns m n : nat).
Hypotheses (small1 : (rows <= m.+1)%N) (small2 : (columns <= n.+1)%N).

(** The offset from one token to another. *)
Definition offset_to (q k : bare_grid rows columns) : token_offset m n :=
  (inord (k.1 + m - q.1), inord (k.2 + n - q.2)).

Lemma bare_target_offset_to q k : bare_target q (offset_to q k) = Some k.
Proof.
apply/eqP; rewrite bare_target_some /offset_to.
case: q k => -[y lty] [x ltx] [[y' lty'] [x' ltx']] /=.
by rewrite !inordK; lia.
Qed.

(** From every query the offsets meet each token once. *)
Lemma sum_over_offsets (g : bare_grid rows columns -> F) q :
  \sum_(d : token_offset m n) (if bare_target q d is Some k then g k else 0) = \sum_k g k.
Proof.
rewrite (bigID (fun d => isSome (bare_target q d))) /= addrC big1 ?add0r => [|d]; last first.
  by case: (bare_target q d).
rewrite (reindex_omap (offset_to q) (bare_target q)) /= => [|d]; last first.
  case e: (bare_target q d) => [k|] //= _; congr Some.
  exact: bare_target_inj (bare_target_offset_to q k) e.
by apply: eq_big => [k|k _]; rewrite bare_target_offset_to ?eqxx.
Qed.

End Reach.

Theorem finite_small (F : fieldType) (In Out : finType)
    (rows columns p1 p2 m n r1 r2 : nat) (e : F)
    (W : nat -> nat -> In -> Out -> F) (X : image_type F In)
    (q : bare_grid rows columns) (t : patch_feature p1 p2 Out) :
  let N := #|ringed_grid rows columns m n| in
  let D := #|token_offset m n| in
  (r1 <= p1 * m)%N -> (r2 <= p2 * n)%N -> (rows <= m.+1)%N -> (columns <= n.+1)%N ->
  e != 1 -> N%:R != 0 :> F -> N%:R + e - 1 != 0 -> D%:R + e - 1 != 0 ->
  attention_layer
      (fun d q => softmax (bias_weights e (@ringed_target rows columns m n q d)))
      (small_image_maps (fun d : token_offset m n => output_block m n r1 r2 W d.1 d.2) N e)
      (patch_token X) q t =
    convolution (p1 * rows) (p2 * columns) r1 r2 W X
      (p1 * q.1 + t.1.1)%N (p2 * q.2 + t.1.2)%N t.2.
Proof.
move=> N D le1 le2 small1 small2 ne1 nzN nzZ nzD.
rewrite -(convolution_of_tokens _ _ _ _ le1 le2) /attention_layer /feature_map.
rewrite exchange_big [RHS]exchange_big; apply: eq_bigr => i _ /=.
pose Y (d : token_offset m n) := patch_token X (ringed_key q d) i.
pose M (d : token_offset m n) := output_block m n r1 r2 W d.1 d.2 i t.
pose tokens := @patch_token F In rows columns m n p1 p2 X.
have all_tokens : N%:R * mean_token tokens i = \sum_d Y d.
  rewrite /mean_token mulrCA mulfV // mulr1.
  transitivity (attend (fun=> 1) tokens i); first by apply: eq_bigr => k _; rewrite mul1r.
  rewrite attend_ringed; transitivity (\sum_(k : bare_grid rows columns) bare_token X k i).
    by apply: eq_bigr => k _; rewrite mul1r.
  rewrite -(sum_over_offsets small1 small2 _ q).
  by apply: eq_bigr => d _; rewrite /Y patch_token_bare.
have head (d : token_offset m n) : attend (softmax (bias_weights e (ringed_target q d))) tokens i =
    ((e - 1) * Y d + \sum_d Y d) / (N%:R + e - 1).
  by rewrite attend_bias // all_tokens.
under eq_bigr do rewrite head.
rewrite /small_image_maps -/D -/(\sum_d M d); set y := \sum_d Y d; set s := \sum_d M d.
have nz1 : e - 1 != 0 by rewrite subr_eq0.
pose u := - (s / (D%:R + e - 1)); pose v := y / (e - 1).
transitivity (\sum_d (Y d * M d + (u * Y d + (v * M d + v * u * 1)))).
  by apply: eq_bigr => d _; rewrite -/(M d) /u /v; field; rewrite nz1 nzD nzZ.
rewrite !big_split /= -!big_distrr /= sum_one -/D -/y -/s -[RHS]addr0; congr (_ + _).
by rewrite /u /v; field; rewrite nz1 nzD.
Qed.
