(** S.headdim (2), in the limit: with N_H · d_H below either rank a layer stays away from the convolution.

    Let m ≥ r₁ / p₁ and n ≥ r₂ / p₂. For every kernel there is an ε > 0 such that every layer whose N_H value
    maps go through d_H features, with N_H · d_H < max(rk_in, rk_out), is off its zero-padded convolution by more
    than ε: at some output of some image of zeros and ones. So no such layers tend to the convolution, whether
    their values stay bounded or not. rk_in is the rank of the maps of all offsets side by side, rk_out that of
    the maps one below the other. The ε serves all layers, all image sizes of more than m rows and n columns of
    patches, with a ring of any width or with none, whatever the attention, so long as it does not depend on the
    image, and any bias. The field is any that holds the absolute values of its numbers. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention image grid patches bare rank head_dimension.
From Convattn.foundation Require Import flattened_kernel lower_bound near_identity near_layers.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory Num.Theory Order.Theory.
Local Open Scope ring_scope.

Theorem headdim_limit (F : numFieldType) (In Out : finType) (p1 p2 m n r1 r2 : nat)
    (W : nat -> nat -> In -> Out -> F) :
  (r1 <= p1 * m)%N -> (r2 <= p2 * n)%N ->
  exists2 eps, 0 < eps &
  forall (Head Feature : finType) (rows columns a b : nat)
      (A : Head -> bare_grid rows columns -> ringed_grid rows columns a b -> F)
      (V : Head -> patch_feature p1 p2 In -> Feature -> F)
      (U : Head -> Feature -> patch_feature p1 p2 Out -> F)
      (bias : patch_feature p1 p2 Out -> F),
    (m < rows)%N -> (n < columns)%N ->
    (#|Head| * #|Feature| < maxn (family_rank (in_matricisation p1 p2 m n r1 r2 W))
                                 (family_rank (out_matricisation p1 p2 m n r1 r2 W)))%N ->
    exists (X : nat -> nat -> In -> bool) (q : bare_grid rows columns) (t : patch_feature p1 p2 Out),
      eps < output_error r1 r2 A (fun h => through (V h) (U h)) bias W (binary_image F X) q t.
Proof.
move=> reach1 reach2.
have [ball1 pos1 nearby1] := family_rank_nearby (in_matricisation p1 p2 m n r1 r2 W).
have [ball2 pos2 nearby2] := family_rank_nearby (out_matricisation p1 p2 m n r1 r2 W).
pose ball := (ball1^-1 + ball2^-1)^-1.
have pos_sum : 0 < ball1^-1 + ball2^-1 by rewrite addr_gt0 ?invr_gt0.
have pos : 0 < ball by rewrite invr_gt0.
have small1 : ball <= ball1 by rewrite -[leRHS]invrK lef_pinv ?posrE ?invr_gt0 // ler_addl invr_ge0 ltW.
have small2 : ball <= ball2 by rewrite -[leRHS]invrK lef_pinv ?posrE ?invr_gt0 // ler_addr invr_ge0 ltW.
have half : 0 < ball / 2%:R by rewrite divr_gt0 ?ltr0n.
exists (ball / 2%:R) => // Head Feature rows columns a b A V U bias large1 large2 few.
apply: (off_somewhere bias reach1 reach2 (large1 := large1) (large2 := large2)) half _ => near.
pose M h := through (V h) (U h).
pose N := layer_map A M large1 large2.
have {}near st d : `|N st d - flattened_kernel p1 p2 m n r1 r2 W st d| <= ball.
  by rewrite [leRHS](splitr ball); exact: near.
pose weight h d := A h (joined_query large1 large2 d) (image_key a b (joined_key large1 large2 d)).
have layer s t d : N (s, t) d = \sum_(he : Head * Feature) weight he.1 d * (V he.1 s he.2 * U he.1 he.2 t).
  rewrite -(pair_bigA _ (fun h e => weight h d * (V h s e * U h e t))) /=.
  by apply: eq_bigr => h _; rewrite /= mulrC big_distrr.
move: few; rewrite ltnNge => /negP; apply; rewrite -card_prod geq_max; apply/andP; split.
  apply: leq_trans (nearby1 (fun s dt => N (s, dt.2) dt.1) _) _ => [s [d t]|].
    exact: le_trans (near _ _) small1.
  apply: (family_rank_product (L := fun s he => V he.1 s he.2)
    (R := fun he dt => weight he.1 dt.1 * U he.1 he.2 dt.2)) => s [d t].
  by rewrite layer; apply: eq_bigr => he _; rewrite mulrCA.
apply: leq_trans (nearby2 (fun ds t => N (ds.2, t) ds.1) _) _ => [[d s] t|].
  exact: le_trans (near _ _) small2.
apply: (family_rank_product (L := fun ds he => weight he.1 ds.1 * V he.1 ds.2 he.2)
  (R := fun he t => U he.1 he.2 t)) => -[d s] t.
by rewrite layer; apply: eq_bigr => he _; rewrite mulrA.
Qed.
