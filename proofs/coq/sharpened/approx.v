(** S.approx, without singular values: what N heads of any sign reach, N + 1 heads at finite scores reach.

    Let W be a kernel over an ordered field and M_δ its maps at the offsets in {-m..m} × {-n..n}, which are
    all that it has if m ≥ r₁ / p₁ and n ≥ r₂ / p₂. Let any N heads be given, with rows of any numbers, of any
    sign, from some query to the keys of some image, among which are those of all offsets, and with any value
    maps. The squared distance of these heads from the convolution, at that query, is the sum of the squares
    of the entries, over all keys and all pairs of features, of the map that the heads put at a key less the
    convolution's, which is M_δ at the key of δ and zero at all others.

    Then there are N + 1 heads at finite scores, one set of numbers w_hδ ≥ 0 and of value maps for all image sizes,
    whose squared distance from the convolution is no greater: at every query, for every number of patches, with a
    ring of m × n patches. Head h attends by the softmax of the positive weights 1 + N' Σ_δ w_hδ [key = query + δ], N'
    being the number of keys. So whatever the least distance of N heads is, N + 1 softmax heads reach it; that it is
    at least Σ_(i>N) σ_i² (Eckart and Young), and what singular values have to do with it, is not covered. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention image heads grid bare rank.
From Convattn.foundation Require Import flattened_kernel offset_heads.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory Num.Theory Order.Theory.
Local Open Scope ring_scope.

(** The squared distance, at one query, of heads from what is [target] at the keys of the offsets. *)
Definition squared_error (F : fieldType) (Head Key Offset Pair : finType)
    (key : Offset -> Key) (A : Head -> Key -> F) (M : Head -> Pair -> F) (target : Pair -> Offset -> F) : F :=
  \sum_k \sum_st (\sum_h A h k * M h st - \sum_(d | k == key d) target st d) ^+ 2.

Section Keys.

Variables (F : realFieldType) (Key Offset : finType) (key : Offset -> Key).
Hypothesis key_inj : injective key.

Lemma sum_at_key (e : Offset -> F) d : \sum_(d' | key d == key d') e d' = e d.
Proof. by rewrite (big_pred1 d) // => d'; rewrite (inj_eq key_inj) eq_sym. Qed.

(** Squares of what stands at the offsets' keys alone. *)
Lemma sum_squares (e : Offset -> F) :
  \sum_k (\sum_(d | k == key d) e d) ^+ 2 = \sum_d e d ^+ 2.
Proof.
transitivity (\sum_k \sum_(d | k == key d) e d ^+ 2).
  apply: eq_bigr => k _; have [/existsP [d /eqP ->]|] := boolP [exists d, k == key d].
    by rewrite !sum_at_key.
  rewrite negb_exists => /forallP none.
  by rewrite !big_pred0 ?expr0n // => d; exact/negbTE/none.
under eq_bigr do rewrite big_mkcond; rewrite exchange_big; apply: eq_bigr => d _ /=.
by rewrite -big_mkcond (big_pred1 (key d)).
Qed.

(** What is not negative adds up to at least its part at the offsets' keys. *)
Lemma sum_over_keys (g : Key -> F) : (forall k, 0 <= g k) -> \sum_d g (key d) <= \sum_k g k.
Proof.
move=> ge0; have -> : \sum_d g (key d) = \sum_k \sum_(d | k == key d) g k.
  under [RHS]eq_bigr do rewrite big_mkcond; rewrite exchange_big; apply: eq_bigr => d _ /=.
  by rewrite -big_mkcond (big_pred1 (key d)).
apply: ler_sum => k _; have [/existsP [d /eqP ->]|] := boolP [exists d, k == key d].
  by rewrite (sum_at_key (fun=> g (key d))).
by rewrite negb_exists => /forallP none; rewrite big_pred0 // => d; exact/negbTE/none.
Qed.

End Keys.

Lemma ringed_key_inj (rows columns m n : nat) (q : bare_grid rows columns) :
  injective (@ringed_key rows columns m n q).
Proof.
move=> [i j] [i' j'] e; have := congr1 (fun k => (val k.1, val k.2)) e => -[/addnI e1 /addnI e2].
by congr (_, _); apply: val_inj.
Qed.

(** The weight of such a head at a key, up to its factor. *)
Lemma offset_coefficient_at (F : numFieldType) (rows columns m n : nat) (w : token_offset m n -> F)
    (q : bare_grid rows columns) k : (forall d, 0 <= w d) ->
  softmax (offset_weights w q) k * (1 + \sum_d w d) =
    #|ringed_grid rows columns m n|%:R^-1 + \sum_(d | k == ringed_key q d) w d.
Proof.
move=> ge0; have nzN := keys_neq0 F m n q; have nzZ := offset_total_neq0 ge0.
have total : \sum_k offset_weights w q k = #|ringed_grid rows columns m n|%:R * (1 + \sum_d w d).
  rewrite big_split sum_one -big_distrr mulrDr mulr1; congr (_ + _ * _).
  under [RHS]eq_bigr do rewrite -[w _]mulr1.
  by rewrite -(sum_by_key w q (fun=> 1)); apply: eq_bigr => k' _; rewrite mulr1.
by rewrite /softmax total /offset_weights invfM mulrA divfK // mulrDl mul1r mulrAC mulfV // mul1r.
Qed.

Theorem approx (F : realFieldType) (In Out Head Key : finType) (p1 p2 m n r1 r2 : nat)
    (W : nat -> nat -> In -> Out -> F) (key : token_offset m n -> Key)
    (A : Head -> Key -> F) (M : Head -> patch_feature p1 p2 In * patch_feature p1 p2 Out -> F) :
  injective key ->
  exists (w : option Head -> token_offset m n -> F)
      (C : option Head -> patch_feature p1 p2 In * patch_feature p1 p2 Out -> F),
    [/\ forall h d, 0 <= w h d,
        forall (rows columns : nat) h (q : bare_grid rows columns) k, 0 < offset_weights (w h) q k
      & forall (rows columns : nat) (q : bare_grid rows columns),
          squared_error (ringed_key q) (fun h => softmax (offset_weights (w h) q)) C
              (flattened_kernel p1 p2 m n r1 r2 W) <=
            squared_error key A M (flattened_kernel p1 p2 m n r1 r2 W)].
Proof.
move=> key_inj; pose kernel := flattened_kernel p1 p2 m n r1 r2 W.
pose lift := \sum_h \sum_d `|A h (key d)|.
have lift0 : 0 <= lift by rewrite sumr_ge0 // => h _; rewrite sumr_ge0.
have lifted h d : 0 <= A h (key d) + lift.
  have : `|A h (key d)| <= lift.
    rewrite /lift (bigD1 h) //= (bigD1 d) //= -addrA ler_addl addr_ge0 ?sumr_ge0 // => h' _.
    by rewrite sumr_ge0.
  move=> le; rewrite -ler_subl_addl sub0r; apply: le_trans le.
  by rewrite -normrN ler_norm.
pose w h d := if h is Some h' then A h' (key d) + lift else lift.
have ge0 h d : 0 <= w h d by case: h => [h|] /=.
pose B h st := if h is Some h' then M h' st else - \sum_h M h st.
have none st : \sum_h B h st = 0 by rewrite sum_option /= addNr.
exists w, (fun h st => (1 + \sum_d w h d) * B h st).
split=> [//|rows columns h q k|rows columns q]; first exact: offset_weights_gt0.
pose e st d := \sum_h A h (key d) * M h st - kernel st d.
have own k st : \sum_h softmax (offset_weights (w h) q) k * ((1 + \sum_d w h d) * B h st)
      - \sum_(d | k == ringed_key q d) kernel st d = \sum_(d | k == ringed_key q d) e st d.
  rewrite /e sumrB; congr (_ - _).
  under eq_bigr do rewrite mulrA offset_coefficient_at // mulrDl.
  rewrite big_split -big_distrr /= none mulr0 add0r /=.
  under eq_bigr do rewrite big_distrl; rewrite exchange_big; apply: eq_bigr => d _ /=.
  rewrite sum_option /= mulrN big_distrr /= addrC -sumrB; apply: eq_bigr => h _.
  by rewrite mulrDl addrK.
rewrite /squared_error; under eq_bigr do under eq_bigr do rewrite own.
rewrite exchange_big; under eq_bigr do rewrite (sum_squares (@ringed_key_inj _ _ _ _ q)).
rewrite [leRHS]exchange_big; apply: ler_sum => st _ /=.
pose g k := (\sum_h A h k * M h st - \sum_(d | k == key d) kernel st d) ^+ 2.
apply: le_trans (sum_over_keys key_inj (g := g) (fun k => sqr_ge0 _)).
by apply: ler_sum => d _; rewrite /g sum_at_key.
Qed.
