(** How the flattened kernel bounds the number of heads from below.

    Nothing is assumed of the attention but that it does not depend on the
    image: its weights need not be positive, nor sum to one, and limits of
    layers that are layers are covered too. The values are shared by all
    queries, so that every map which some query uses counts. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import zify.
From Convattn.foundation Require Import attention image grid bare rank.
From Convattn.foundation Require Import flattened_kernel independent.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

(** The layer with the attention [A], the value maps [M] and a bias is the
    zero-padded convolution, for every image of [rows] × [columns] patches of
    p₁ × p₂ pixels, in a ring of a × b zero patches (none if a = b = 0). *)
Definition expresses (F : fieldType) (In Out Head : finType)
    (rows columns p1 p2 a b r1 r2 : nat)
    (A : Head -> bare_grid rows columns -> ringed_grid rows columns a b -> F)
    (M : Head -> patch_feature p1 p2 In -> patch_feature p1 p2 Out -> F)
    (bias : patch_feature p1 p2 Out -> F) (W : nat -> nat -> In -> Out -> F) : Prop :=
  forall (X : image_type F In) (q : bare_grid rows columns) (t : patch_feature p1 p2 Out),
    attention_layer A M (patch_token X) q t + bias t =
      convolution (p1 * rows) (p2 * columns) r1 r2 W X
        (p1 * q.1 + t.1.1)%N (p2 * q.2 + t.1.2)%N t.2.

(** The maps of all offsets side by side, and one below the other. *)
Definition in_matricisation (F : fieldType) (In Out : finType) (p1 p2 m n r1 r2 : nat)
    (W : nat -> nat -> In -> Out -> F)
    (s : patch_feature p1 p2 In) (dt : token_offset m n * patch_feature p1 p2 Out) : F :=
  flattened_kernel p1 p2 m n r1 r2 W (s, dt.2) dt.1.

Definition out_matricisation (F : fieldType) (In Out : finType) (p1 p2 m n r1 r2 : nat)
    (W : nat -> nat -> In -> Out -> F)
    (ds : token_offset m n * patch_feature p1 p2 In) (t : patch_feature p1 p2 Out) : F :=
  flattened_kernel p1 p2 m n r1 r2 W (ds.2, t) ds.1.

Arguments in_matricisation {F In Out} p1 p2 m n r1 r2 W s dt.
Arguments out_matricisation {F In Out} p1 p2 m n r1 r2 W ds t.

Lemma near_bound (side l i : nat) : (l < side)%N -> (l - i < side)%N.
Proof. exact: leq_ltn_trans (leq_subr _ _). Qed.

Lemma far_bound (side l : nat) (i : 'I_l.*2.+1) : (l < side)%N -> (i - l < side)%N.
Proof. by case: i => i /=; lia. Qed.

Section Bound.

Variables (F : fieldType) (In Out Head : finType).
Variables (rows columns p1 p2 a b m n r1 r2 : nat).
Variable A : Head -> bare_grid rows columns -> ringed_grid rows columns a b -> F.
Variable M : Head -> patch_feature p1 p2 In -> patch_feature p1 p2 Out -> F.
Variable bias : patch_feature p1 p2 Out -> F.
Variable W : nat -> nat -> In -> Out -> F.

Hypothesis reach1 : (r1 <= p1 * m)%N.
Hypothesis reach2 : (r2 <= p2 * n)%N.
Hypothesis equal : expresses r1 r2 A M bias W.

Local Notation kernel := (flattened_kernel p1 p2 m n r1 r2 W).

(** A convolution has no bias. *)
Lemma expresses_bias (q : bare_grid rows columns) t : bias t = 0.
Proof.
have := equal (fun _ _ _ => 0) q t.
by rewrite attention_blank convolution_blank add0r.
Qed.

(** The map from one token of the image to another. *)
Lemma expresses_map (q k : bare_grid rows columns) s t :
  \sum_h A h q (image_key a b k) * M h s t =
    \sum_(d | ringed_key q d == image_key m n k) kernel (s, t) d.
Proof.
have := equal (unit_image F k s) q t.
by rewrite (expresses_bias q) addr0 attention_unit (convolution_unit _ _ _ _ _ reach1 reach2).
Qed.

(** Zero where the key lies outside the receptive field of the query. *)
Lemma expresses_outside (q k : bare_grid rows columns) s t :
  (forall d : token_offset m n, ringed_key q d != image_key m n k) ->
  \sum_h A h q (image_key a b k) * M h s t = 0.
Proof. by move=> out; rewrite expresses_map big1 // => d; rewrite (negbTE (out d)). Qed.

Section Large.

Hypothesis large1 : (m < rows)%N.
Hypothesis large2 : (n < columns)%N.

(** A query and a key of the image that are joined by the offset. *)
Definition joined_query (d : token_offset m n) : bare_grid rows columns :=
  (Ordinal (near_bound d.1 large1), Ordinal (near_bound d.2 large2)).
Definition joined_key (d : token_offset m n) : bare_grid rows columns :=
  (Ordinal (far_bound d.1 large1), Ordinal (far_bound d.2 large2)).

(** No other offset joins them. *)
Lemma joined_only (d d' : token_offset m n) :
  (ringed_key (joined_query d) d' == image_key m n (joined_key d)) = (d' == d).
Proof.
clear equal reach1 reach2; rewrite ringed_key_image /=.
case: d d' => [[i lti] [j ltj]] [[i' lti'] [j' ltj']] /=.
apply/andP/eqP => [[/eqP e1 /eqP e2] | [-> ->]]; last by split; apply/eqP; lia.
by congr (_, _); apply: val_inj => /=; lia.
Qed.

(** So a layer's map at each offset is the convolution's. *)
Lemma expresses_offset d s t :
  \sum_h A h (joined_query d) (image_key a b (joined_key d)) * M h s t = kernel (s, t) d.
Proof. by rewrite expresses_map (big_pred1 d) // => d'; rewrite joined_only. Qed.

(** Head by head, the flattened kernel is a product through the heads. *)
Lemma kernel_through_heads st d :
  kernel st d =
    \sum_h M h st.1 st.2 * A h (joined_query d) (image_key a b (joined_key d)).
Proof.
case: st => s t; rewrite -expresses_offset; apply: eq_bigr => h _; exact: mulrC.
Qed.

(** Value maps through the inner features [Feature]: the same, through those of all heads. *)
Lemma value_factors (Feature : finType) (V : Head -> patch_feature p1 p2 In -> Feature -> F)
    (U : Head -> Feature -> patch_feature p1 p2 Out -> F) s t d :
  (forall h s t, M h s t = \sum_e V h s e * U h e t) ->
  kernel (s, t) d =
    \sum_(he : Head * Feature) A he.1 (joined_query d) (image_key a b (joined_key d)) *
      (V he.1 s he.2 * U he.1 he.2 t).
Proof.
move=> eM; rewrite -expresses_offset.
rewrite -(pair_bigA _ (fun h e => A h (joined_query d) (image_key a b (joined_key d)) *
  (V h s e * U h e t))) /=.
by apply: eq_bigr => h _; rewrite eM big_distrr.
Qed.

(** So its rank is at most the number of heads, *)
Lemma head_bound : (family_rank kernel <= #|Head|)%N.
Proof. exact: family_rank_product kernel_through_heads. Qed.

(** and less if weights that are not zero add up to a zero map. *)
Lemma one_more_head (c : Head -> F) :
  (0 < family_rank kernel)%N -> (forall h, c h != 0) ->
  (forall s t, \sum_h c h * M h s t = 0) -> (family_rank kernel < #|Head|)%N.
Proof.
move=> pos nz zero; rewrite ltnNge; apply/negP => full.
have noc : forall h, c h = 0.
  apply: (independent_columns kernel_through_heads full) => st.
  by rewrite -[RHS](zero st.1 st.2); apply: eq_bigr => h _; exact: mulrC.
have none : #|Head| = 0%N.
  by apply: eq_card0 => h; have := nz h; rewrite noc eqxx.
by have := head_bound; rewrite none leqNgt pos.
Qed.

(** A query and a key with the map zero, outside the receptive field or in it. *)
Lemma zero_map :
  (m.+1 < rows)%N \/ (n.+1 < columns)%N \/ (exists d, forall st, kernel st d = 0) ->
  exists q k : bare_grid rows columns,
    forall s t, \sum_h A h q (image_key a b k) * M h s t = 0.
Proof.
move=> some.
have [wide | [d zero]] : (m.+1 < rows)%N || (n.+1 < columns)%N \/ exists d, forall st, kernel st d = 0.
- by case: some => [->|[->|some]]; rewrite ?orbT; [left | left | right].
- have [q [k out]] := token_out_of_reach large1 large2 wide.
  by exists q, k => s t; apply: expresses_outside => d; rewrite eq_sym image_key_eq.
by exists (joined_query d), (joined_key d) => s t; rewrite expresses_offset zero.
Qed.

End Large.

End Bound.
