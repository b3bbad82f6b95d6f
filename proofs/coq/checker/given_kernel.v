(** A certificate of heads for one given kernel: what the checker asks is enough, for every image.

    Let W be one kernel, over an ordered field, with its maps F_δ at the token offsets δ. Each head h
    has numbers c_hδ ≥ 0, u_h > 0 and V_hδ. Write X_δ'δ = Σ_h V_hδ' c_hδ and x_δ' = Σ_h V_hδ' u_h. The
    checker asks F X = F and F x = 0,

        Σ_δ' F_δ'(s, t) X_δ'δ = F_δ(s, t),      Σ_δ' F_δ'(s, t) x_δ' = 0,

    for all channels and, on each axis, for those pixels s and t of which one is 0: an entry of F
    depends on t and s through s - t alone. Then for every number of patches, with a ring as wide as
    the offsets reach, the heads with the rows (Σ_δ c_hδ [k = q + δ] + u_h/N)/Z_h, Z_h = Σ_δ c_hδ +
    u_h, and the value maps Z_h Σ_δ V_hδ F_δ, which do not depend on N, are the zero-padded
    convolution with W; and the rows are softmaxes of finite scores: positive, with the sum one. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring zify.
From Convattn.foundation Require Import attention image grid dilated certified_heads framed.
From Convattn.checker Require Import interior equality.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** The pixels of which, on each axis, one is the first. *)
Definition representative (p1 p2 : nat) (In Out : finType)
    (s : patch_feature p1 p2 In) (t : patch_feature p1 p2 Out) : bool :=
  (minn s.1.1 t.1.1 == 0%N) && (minn s.1.2 t.1.2 == 0%N).

(** Every pair of features has the entries of a representative one. *)
Lemma representative_exists (F : fieldType) (In Out : finType) (p1 p2 K1 K2 d1 d2 : nat)
    (W : nat -> nat -> In -> Out -> F) (s : patch_feature p1 p2 In) (t : patch_feature p1 p2 Out) :
  exists s' t', representative s' t' /\
    forall z1 z2, @offset_map F In Out p1 p2 K1 K2 d1 d2 W z1 z2 s t =
                  @offset_map F In Out p1 p2 K1 K2 d1 d2 W z1 z2 s' t'.
Proof.
have lower (p : nat) (a b : 'I_p) : exists a' b' : 'I_p, (minn a' b' == 0%N) /\
    (a : nat)%:Z - (b : nat)%:Z = (a' : nat)%:Z - (b' : nat)%:Z.
  have lta : (a - minn a b < p)%N by apply: leq_ltn_trans (leq_subr _ _) (ltn_ord a).
  have ltb : (b - minn a b < p)%N by apply: leq_ltn_trans (leq_subr _ _) (ltn_ord b).
  by exists (Ordinal lta), (Ordinal ltb) => /=; split; lia.
case: s t => -[s1 s2] c [[t1 t2] o].
have [a1 [b1 [min1 e1]]] := lower _ s1 t1; have [a2 [b2 [min2 e2]]] := lower _ s2 t2.
exists ((a1, a2), c), ((b1, b2), o); split=> [|z1 z2]; first by rewrite /representative min1.
apply: eq_bigr => i _; apply: eq_bigr => j _ /=; rewrite /joins -!addrA.
by rewrite e1 e2.
Qed.

Theorem given_kernel (F : numFieldType) (Head In Out : finType)
    (low1 n1 high1 low2 n2 high2 p1 p2 K1 K2 : nat)
    (c V : Head -> grid_offset p1 p2 K1 K2 1 1 -> F) (u : Head -> F)
    (W : nat -> nat -> In -> Out -> F) (X : image_type F In)
    (q : bare_grid n1 n2) (t : patch_feature p1 p2 Out) :
  let map (d : grid_offset p1 p2 K1 K2 1 1) := @offset_map F In Out p1 p2 K1 K2 1 1 W (val d.1) (val d.2) in
  let A h := @certified_row F low1 n1 high1 low2 n2 high2 _ _ _ _ _ _ (c h) (u h) 0 in
  (forall h d, 0 <= c h d) -> (forall h, 0 < u h) ->
  (forall s t d, representative s t ->
     \sum_d' map d' s t * (\sum_h V h d' * c h d) = map d s t) ->
  (forall s t, representative s t -> \sum_d' map d' s t * (\sum_h V h d' * u h) = 0) ->
  ring_reaches low1 high1 (axis_offsets p1 K1 1) ->
  ring_reaches low2 high2 (axis_offsets p2 K2 1) ->
  [/\ forall h k, 0 < A h q k, forall h, \sum_k A h q k = 1 &
      attention_layer A (fun h s t => \sum_d (\sum_d' c h d' + u h) * V h d * map d s t)
          (framed_token X) q t =
        dilated_convolution (p1 * n1) (p2 * n2) K1 K2 1 1 W X
          (p1 * q.1 + t.1.1)%N (p2 * q.2 + t.1.2)%N t.2].
Proof.
move=> map A c_ge0 u_gt0 eq_c eq_u ring1 ring2.
have fin h : finite_row (c h) (u h) 0.
  apply/and4P; split; rewrite ?addr0 ?(ltW (u_gt0 h)) //.
  by apply/forallP => d; rewrite addr0 c_ge0 u_gt0 orbT.
have [A_gt0 A_sum _] := rows_are_softmax q ring1 ring2 fin.
split=> //; rewrite -(convolution_of_framed ring1 ring2).
apply: layer_of_maps => k s; set N := #|framed_grid low1 n1 high1 low2 n2 high2|.
have [s' [t' [rep same]]] := representative_exists K1 K2 1 1 W s t.
have mapE d : map d s t = map d s' t' by rewrite /map same.
have Z_gt0 h : 0 < \sum_d' c h d' + u h by rewrite ltr_paddl ?sumr_ge0.
transitivity (\sum_d (k == framed_key ring1 ring2 q d)%:R * map d s t +
    N%:R^-1 * \sum_d map d s t * (\sum_h V h d * u h)); last first.
  by rewrite (eq_bigr _ (fun d _ => congr1 (fun x => x * _) (mapE d))) eq_u // mulr0 addr0.
pose at_ d := (k == framed_key ring1 ring2 q d)%:R : F.
have AE h : A h q k * (\sum_d' c h d' + u h) = \sum_d c h d * at_ d + u h / N%:R.
  rewrite /A (certified_rowE ring1 ring2) /shared_row /row_total mul0r addr0.
  by rewrite divfK ?gt_eqF // /shared_weight mul0r addr0.
transitivity (\sum_d' \sum_d at_ d * (map d' s t * (\sum_h V h d' * c h d)) +
    N%:R^-1 * \sum_d map d s t * (\sum_h V h d * u h)).
  rewrite big_distrr -big_split; apply: eq_bigr => d' _ /=.
  rewrite (eq_bigr (fun h => (\sum_d c h d * at_ d) * V h d' + N%:R^-1 * (V h d' * u h))) => [|h _].
    rewrite big_split mulrDl /=; congr (_ + _); last first.
      by rewrite -big_distrr /= mulrAC -mulrA.
    under eq_bigr do rewrite big_distrl; rewrite exchange_big big_distrl; apply: eq_bigr => d _ /=.
    rewrite [LHS]big_distrl mulrA [RHS]big_distrr; apply: eq_bigr => h _ /=; ring.
  by rewrite mulrA AE mulrDl; congr (_ + _); rewrite mulrC [u h * _]mulrC mulrCA mulrA.
congr (_ + _); rewrite exchange_big; apply: eq_bigr => d _ /=; rewrite -big_distrr /=; congr (_ * _).
by rewrite (eq_bigr _ (fun d' _ => congr1 (fun x => x * _) (mapE d'))) eq_c // mapE.
Qed.
