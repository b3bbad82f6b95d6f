(** S.kernel in the limit: as many heads as the rank suffice, given a nonnegative row.

    Let m ≥ r₁ / p₁ and n ≥ r₂ / p₂, let F be the flattened form of the kernel W over an ordered field, and
    let the row space of F contain a vector y ≥ 0 that is not zero. Then for every ε > 0 there are
    rank F heads at finite scores whose layer is off the zero-padded convolution by at most ε, at
    every output of every image whose pixels lie between -1 and 1, of any number of patches, with a
    ring of m × n zero patches. Head h attends by the softmax of the positive weights
    1 + N Σ_δ w_hδ [key = query + δ], N being the number of keys. One set of numbers w_hδ ≥ 0 and value
    maps serves all sizes.

    That fewer than rank F heads stay away from the convolution is heads_limit; that rank F heads stay
    away where the row space contains no such y is kernel_limit_necessary. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Convattn.foundation Require Import attention image heads grid patches rank.
From Convattn.foundation Require Import flattened_kernel lower_bound offset_heads.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory Num.Theory Order.Theory.
Local Open Scope ring_scope.

Section Exchange.

Variables (F : realFieldType) (Row Column : finType) (M : Row -> Column -> F).
Variables (y : Column -> F) (e : 'I_(family_rank M) -> F) (j : 'I_(family_rank M)) (eta : F).
Hypothesis combination : forall d, y d = \sum_i e i * basis M i d.
Hypothesis nz : e j != 0.
Hypothesis pos : 0 < eta.

(** The coordinates in the basis that has y for its element number j, but for y's own. *)
Definition exchanged (i : 'I_(family_rank M)) (st : Row) : F :=
  coordinate M i st - e i / e j * coordinate M j st.

Definition limit_numbers (i : 'I_(family_rank M)) (d : Column) : F :=
  y d / eta + if i == j then lift_amount M else basis M i d + lift_amount M.
Definition limit_maps (i : 'I_(family_rank M)) (st : Row) : F :=
  exchanged i st + (if i == j then eta / e j * coordinate M j st - \sum_k exchanged k st else 0).

Lemma limit_numbers_ge0 i d : 0 <= y d -> 0 <= limit_numbers i d.
Proof.
move=> ge0; rewrite /limit_numbers addr_ge0 //; first by rewrite divr_ge0 // ltW.
by case: ifP => _; rewrite ?lift_ge0 ?lift_basis.
Qed.

Lemma limit_maps_sum st : \sum_i limit_maps i st = eta / e j * coordinate M j st.
Proof. by rewrite big_split -big_mkcond big_pred1_eq /= addrC subrK. Qed.

(** The heads are off the family by what vanishes with η. *)
Lemma limit_family st d :
  \sum_i limit_numbers i d * limit_maps i st =
    M st d + eta / e j * (lift_amount M * coordinate M j st).
Proof.
have none : exchanged j st = 0 by rewrite /exchanged divff // mul1r subrr.
transitivity (\sum_i ((y d / eta + lift_amount M) * limit_maps i st + basis M i d * exchanged i st)).
  apply: eq_bigr => i _; rewrite /limit_numbers /limit_maps.
  by case: eqP => [->|_]; rewrite ?none; ring.
rewrite big_split -big_distrr limit_maps_sum /= (family_in_basis M).
have -> : \sum_i basis M i d * exchanged i st =
    \sum_i coordinate M i st * basis M i d - y d / e j * coordinate M j st.
  rewrite combination big_distrl big_distrl /= -sumrB; apply: eq_bigr => i _.
  by rewrite /exchanged; field.
by field; rewrite nz (lt0r_neq0 pos).
Qed.

End Exchange.

Section Bounds.

Variables (F : realFieldType) (In : finType) (rows columns p1 p2 m n : nat) (X : image_type F In).
Hypothesis small : forall y x c, `|X y x c| <= 1.

Lemma token_le1 (k : ringed_grid rows columns m n) (s : patch_feature p1 p2 In) :
  `|patch_token X k s| <= 1.
Proof. by rewrite /patch_token /zero_framed; case: ifP => _ //; rewrite normr0 ler01. Qed.

Lemma mean_le1 (q : bare_grid rows columns) (s : patch_feature p1 p2 In) :
  `|mean_token (fun k : ringed_grid rows columns m n => patch_token X k) s| <= 1.
Proof.
rewrite /mean_token normrM normfV normr_nat ler_pdivr_mulr; last first.
  by rewrite lt_def ler0n andbT (keys_neq0 F m n q).
rewrite mul1r -sum_one; apply: le_trans (ler_norm_sum _ _ _) _.
by apply: ler_sum => k _; exact: token_le1.
Qed.

End Bounds.

Theorem kernel_limit (F : realFieldType) (In Out : finType) (p1 p2 m n r1 r2 : nat)
    (W : nat -> nat -> In -> Out -> F) (y : token_offset m n -> F)
    (c : patch_feature p1 p2 In * patch_feature p1 p2 Out -> F) (eps : F) :
  (r1 <= p1 * m)%N -> (r2 <= p2 * n)%N ->
  (forall d, 0 <= y d) -> (exists d, y d != 0) ->
  (forall d, y d = \sum_st c st * flattened_kernel p1 p2 m n r1 r2 W st d) ->
  0 < eps ->
  exists (Head : finType) (w : Head -> token_offset m n -> F)
      (M : Head -> patch_feature p1 p2 In -> patch_feature p1 p2 Out -> F),
    [/\ #|Head| = family_rank (flattened_kernel p1 p2 m n r1 r2 W),
        forall h d, 0 <= w h d,
        forall (rows columns : nat) h (q : bare_grid rows columns) k, 0 < offset_weights (w h) q k
      & forall (rows columns : nat) (X : image_type F In) (q : bare_grid rows columns)
            (t : patch_feature p1 p2 Out),
          (forall y x c, `|X y x c| <= 1) ->
          `|attention_layer
              (fun h (q : bare_grid rows columns) => softmax (offset_weights (w h) q))
              M (patch_token X) q t -
            convolution (p1 * rows) (p2 * columns) r1 r2 W X
              (p1 * q.1 + t.1.1)%N (p2 * q.2 + t.1.2)%N t.2| <= eps].
Proof.
move=> le1 le2 ge0 [d0 nzy] in_rows pos; pose kernel := flattened_kernel p1 p2 m n r1 r2 W.
pose e i := \sum_st c st * coordinate kernel i st.
have combination d : y d = \sum_i e i * basis kernel i d.
  rewrite in_rows; under [RHS]eq_bigr do rewrite big_distrl /=.
  rewrite exchange_big; apply: eq_bigr => st _ /=.
  by rewrite -/kernel family_in_basis big_distrr; apply: eq_bigr => i _ /=; rewrite mulrA.
have [j nz] : exists j, e j != 0.
  apply/existsP; apply: contraNT nzy; rewrite negb_exists => /forallP zero.
  by rewrite combination big1 // => i _; have := zero i; rewrite negbK => /eqP ->; rewrite mul0r.
pose size := (lift_amount kernel * #|token_offset m n|%:R + 1) * \sum_st `|coordinate kernel j st / e j|.
have size0 : 0 <= size.
  by rewrite mulr_ge0 ?sumr_ge0 // addr_ge0 ?ler01 // mulr_ge0 ?ler0n ?lift_ge0.
have pos1 : 0 < size + 1 by rewrite ltr_paddl ?ltr01.
pose eta := eps / (size + 1); have pos_eta : 0 < eta by rewrite divr_gt0.
exists [finType of 'I_(family_rank kernel)], (limit_numbers y j eta).
have wge0 h d : 0 <= limit_numbers y j eta h d := limit_numbers_ge0 j pos_eta h (ge0 d).
exists (fun h s t => (1 + \sum_d limit_numbers y j eta h d) * limit_maps e j eta h (s, t)).
split=> [|//|rows columns h q k|rows columns X q t small].
- by rewrite card_ord.
- exact: offset_weights_gt0.
rewrite -(convolution_of_tokens W X q t le1 le2).
rewrite offset_layer; [|exact: keys_neq0 q|by move=> h; exact: offset_total_neq0].
pose token (d : token_offset m n) (s : patch_feature p1 p2 In) := patch_token X (ringed_key q d) s.
pose mean (s : patch_feature p1 p2 In) :=
  mean_token (fun k : ringed_grid rows columns m n => patch_token X k) s.
pose total s := \sum_d token d s; pose z s := lift_amount kernel * total s + mean s.
pose ratio st := coordinate kernel j st / e j.
rewrite (_ : _ - _ = eta * \sum_s z s * ratio (s, t)); last first.
  rewrite addrAC -sumrB.
  transitivity (\sum_d \sum_s token d s * (eta / e j * (lift_amount kernel * coordinate kernel j (s, t)))
      + \sum_s mean s * (eta / e j * coordinate kernel j (s, t))).
    congr (_ + _); last by apply: eq_bigr => s _; rewrite limit_maps_sum.
    apply: eq_bigr => d _; rewrite -sumrB; apply: eq_bigr => s _.
    rewrite (limit_family combination nz pos_eta) mulrDr addrC; exact: addKr.
  rewrite exchange_big -big_split big_distrr; apply: eq_bigr => s _ /=.
  by rewrite -big_distrl /= -[X in X * _ + _]/(total s) /z /ratio; field.
rewrite normrM (gtr0_norm pos_eta).
have z_small s : `|z s| <= lift_amount kernel * #|token_offset m n|%:R + 1.
  apply: le_trans (ler_norm_add _ _) _; apply: ler_add; last exact: mean_le1.
  rewrite normrM (ger0_norm (lift_ge0 kernel)) ler_wpmul2l ?lift_ge0 // -sum_one.
  apply: le_trans (ler_norm_sum _ _ _) _; apply: ler_sum => d _; exact: token_le1.
apply: (@le_trans _ _ (eta * size)); last first.
  by rewrite /eta mulrAC ler_pdivr_mulr // ler_wpmul2l ?(ltW pos) // ler_addl ler01.
rewrite ler_wpmul2l ?(ltW pos_eta) //; apply: le_trans (ler_norm_sum _ _ _) _.
have pairs : \sum_st `|ratio st| = \sum_s \sum_t `|ratio (s, t)|.
  by rewrite pair_bigA; apply: eq_bigr => -[].
rewrite /size [X in _ * X]pairs big_distrr; apply: ler_sum => s _ /=; rewrite normrM.
have bound0 := le_trans (normr_ge0 _) (z_small s).
apply: le_trans (ler_wpmul2r (normr_ge0 _) (z_small s)) _; apply: ler_wpmul2l => //.
by rewrite (bigD1 t) //= ler_addl sumr_ge0.
Qed.
