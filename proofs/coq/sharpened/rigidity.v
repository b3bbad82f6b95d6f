(** S.rigidity: what exactness forces.

    Let m ≥ r₁ / p₁ and n ≥ r₂ / p₂, let the image have more than m rows and n columns of patches, and
    let a layer with as many heads as the kernel's flattened form F has rank, or fewer, be the
    zero-padded convolution for all images. Then

    - the value maps are linearly independent;
    - each head gives two tokens of the image the same weight if they stand to their queries alike;
    - and it gives none to a token of the image outside the receptive field.

    If the layer has one head more, weights that are positive, and some query has a token of the image
    outside its receptive field (or some offset the map zero), then some c > 0 spans all relations
    between the value maps, and weights of tokens that stand alike to their queries differ by a
    multiple of c.

    This holds with a ring of any width or none, for any attention that does not depend on the image.
    Not covered: weights of the tokens of the ring, and the robust form. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import zify.
From Convattn.foundation Require Import attention image grid bare rank.
From Convattn.foundation Require Import flattened_kernel lower_bound independent.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.Theory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** The token [k] stands to [q] as [k'] to [q']. *)
Definition alike (rows columns : nat) (q k q' k' : bare_grid rows columns) : bool :=
  (q.1 + k'.1 == q'.1 + k.1)%N && (q.2 + k'.2 == q'.2 + k.2)%N.

Definition relation (F : fieldType) (Head In Out : finType) (M : Head -> In -> Out -> F)
    (c : Head -> F) : Prop :=
  forall s t, \sum_h c h * M h s t = 0.

Lemma alike_offsets (rows columns m n : nat) (q k q' k' : bare_grid rows columns)
    (d : token_offset m n) :
  alike q k q' k' -> (ringed_key q d == image_key m n k) = (ringed_key q' d == image_key m n k').
Proof.
case/andP => /eqP e1 /eqP e2; rewrite !ringed_key_image.
by apply/andP/andP => -[/eqP a1 /eqP a2]; split; apply/eqP; lia.
Qed.

(** If the rank of the other factor is one less than their number, relations are multiples of one. *)
Lemma one_relation (F : fieldType) (Row Column Head : finType) (N : Row -> Column -> F)
    (L : Row -> Head -> F) (R : Head -> Column -> F) (c e : Head -> F) (h0 : Head) :
  (forall i j, N i j = \sum_h L i h * R h j) -> (#|Head| <= (family_rank N).+1)%N ->
  c h0 != 0 -> (forall i, \sum_h L i h * c h = 0) -> (forall i, \sum_h L i h * e h = 0) ->
  forall h, e h = e h0 / c h0 * c h.
Proof.
move=> eN few nz0 zero_c zero_e h1; apply/eqP; rewrite -subr_eq0; apply/negPn/negP => nz1.
pose f h := e h - e h0 / c h0 * c h.
have zero_f i : \sum_h L i h * f h = 0.
  rewrite (eq_bigr (fun h => L i h * e h - e h0 / c h0 * (L i h * c h))); last first.
    by move=> h _; rewrite /f mulrBr mulrCA.
  by rewrite sumrB -big_distrr /= zero_c zero_e mulr0 subrr.
have f0 : f h0 = 0 by rewrite /f divfK // subrr.
pose P h (b : bool) := if b then c h else f h.
have zero i (b : bool) : \sum_h L i h * P h b = 0 by case: b; [exact: zero_c | exact: zero_f].
have at_head h (g : Head -> F) : \sum_h' (h' == h)%:R * g h' = g h.
  by rewrite (bigD1 h) //= eqxx mul1r big1 ?addr0 // => h' /negbTE ->; rewrite mul0r.
pose Q (b : bool) h : F :=
  if b then (h == h0)%:R / c h0 else ((h == h1)%:R - c h1 / c h0 * (h == h0)%:R) / f h1.
have inverse (x y : bool) : \sum_h Q x h * P h y = (x == y)%:R.
  have first (g : Head -> F) : \sum_h (h == h0)%:R / c h0 * g h = g h0 / c h0.
    rewrite (eq_bigr (fun h => (c h0)^-1 * ((h == h0)%:R * g h))); last by move=> h _; rewrite mulrAC mulrC mulrA.
    by rewrite -big_distrr /= at_head mulrC.
  have second (g : Head -> F) :
      \sum_h ((h == h1)%:R - c h1 / c h0 * (h == h0)%:R) / f h1 * g h =
        (g h1 - c h1 / c h0 * g h0) / f h1.
    rewrite (eq_bigr (fun h => (f h1)^-1 * ((h == h1)%:R * g h - c h1 / c h0 * ((h == h0)%:R * g h)))).
      by rewrite -big_distrr sumrB -big_distrr /= !at_head mulrC.
    by move=> h _; rewrite mulrAC mulrC mulrBl !mulrA.
  case: x y => -[] /=; rewrite /Q /P ?first ?second.
  - by rewrite divff.
  - by rewrite f0 mul0r.
  - by rewrite -mulrA (mulrC _ (c h0)) mulfV // mulr1 subrr mul0r.
  - by rewrite f0 mulr0 subr0 divff.
have two : (2 <= family_rank P)%N.
  by have := @family_rank_left_inverse F _ _ _ P Q id inverse; rewrite card_bool.
have many : (family_rank N <= family_rank L)%N := family_rank_left eN.
have := family_rank_zero_product zero.
by rewrite leqNgt; apply/negP/negPn; rewrite (leq_ltn_trans few) // -addn2 -addn1 leq_add.
Qed.

Theorem rigidity (F : realFieldType) (In Out Head : finType)
    (rows columns p1 p2 a b m n r1 r2 : nat)
    (A : Head -> bare_grid rows columns -> ringed_grid rows columns a b -> F)
    (M : Head -> patch_feature p1 p2 In -> patch_feature p1 p2 Out -> F)
    (bias : patch_feature p1 p2 Out -> F) (W : nat -> nat -> In -> Out -> F) :
  let rank := family_rank (flattened_kernel p1 p2 m n r1 r2 W) in
  (r1 <= p1 * m)%N -> (r2 <= p2 * n)%N -> (m < rows)%N -> (n < columns)%N ->
  expresses r1 r2 A M bias W ->
  ((#|Head| <= rank)%N ->
    [/\ forall c, relation M c -> forall h, c h = 0,
        forall q k q' k', alike q k q' k' ->
          forall h, A h q (image_key a b k) = A h q' (image_key a b k') &
        forall q k, (forall d : token_offset m n, ringed_key q d != image_key m n k) ->
          forall h, A h q (image_key a b k) = 0]) /\
  ((#|Head| <= rank.+1)%N -> (0 < #|Head|)%N -> (forall h q k, 0 < A h q k) ->
    (m.+1 < rows)%N \/ (n.+1 < columns)%N \/
      (exists d, forall st, flattened_kernel p1 p2 m n r1 r2 W st d = 0) ->
    exists c : Head -> F,
      [/\ forall h, 0 < c h, relation M c,
          forall e, relation M e -> exists x, forall h, e h = x * c h &
          forall q k q' k', alike q k q' k' -> exists x, forall h,
            A h q (image_key a b k) = A h q' (image_key a b k') + x * c h]).
Proof.
move=> rank reach1 reach2 large1 large2 equal.
have through := kernel_through_heads reach1 reach2 equal large1 large2.
have swapped c : relation M c -> forall st : patch_feature p1 p2 In * patch_feature p1 p2 Out,
    \sum_h M h st.1 st.2 * c h = 0.
  by move=> zero st; rewrite -[RHS](zero st.1 st.2); apply: eq_bigr => h _; exact: mulrC.
have same q k q' k' : alike q k q' k' ->
    relation M (fun h => A h q (image_key a b k) - A h q' (image_key a b k')).
  move=> near s t; under eq_bigr do rewrite mulrBl.
  rewrite sumrB !(expresses_map reach1 reach2 equal).
  by rewrite (eq_bigl _ _ (fun d => alike_offsets d near)) subrr.
split=> [few | few some pos outside].
  have independent c : relation M c -> forall h, c h = 0.
    by move=> /swapped; exact: independent_columns through few.
  split=> // [q k q' k' near h | q k out h].
    by apply/eqP; rewrite -subr_eq0; apply/eqP; exact: (independent _ (same q k q' k' near)).
  apply: (independent (fun h => A h q (image_key a b k))) => s t.
  exact: (expresses_outside reach1 reach2 equal).
have [q [k zero]] := zero_map reach1 reach2 equal large1 large2 outside.
pose c h := A h q (image_key a b k); exists c.
have /card_gt0P [h0 _] := some.
have multiple e : relation M e -> exists x, forall h, e h = x * c h.
  move=> /swapped zero_e; exists (e h0 / c h0).
  by apply: one_relation through few _ (swapped c zero) zero_e; apply: lt0r_neq0; exact: pos.
split=> [h | // | // | q1 k1 q2 k2 near]; first exact: pos.
have [x ex] := multiple _ (same q1 k1 q2 k2 near).
by exists x => h; rewrite -ex addrC subrK.
Qed.
