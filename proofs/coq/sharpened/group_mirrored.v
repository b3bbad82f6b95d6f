(** S.group for p4m: filters lifted by turns and reflections take at most Σ d_χ min(m_χ, n d_χ) heads, and
    one more at finite scores.

    Let K = 2 r + 1, and let a filter of K × K taps of one input channel be lifted to eight output channels,
    the filter and its mirror image, each turned 0 to 3 times by 90° anticlockwise. Let n be the number of
    filters, those of all input channels together. Then at most Σ min(n, m_χ) + min(4 n, 2 m_E) heads and one
    more, at finite scores, with numbers and value maps that serve all image sizes, in a ring of r zero
    pixels, are the zero-padded convolution by the lifted kernel. The sum is over the four characters χ of one
    dimension, by the signs of the turn and of the mirror, and m_χ, 2 m_E are the dimensions of what they and
    the representation E of dimension 2 take of the functions on the taps: the ranks of Σ_g χ(g) g and of 1 -
    (the turn by 180°). This holds over every ordered field, for all filters: the number without the one more
    bounds the rank of the flattened form (mirrored_rank), and kernel_sufficient gives the heads.

    Not covered: the values of m_χ and m_E, and that generic filters reach the number. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import zify ring.
From Convattn.foundation Require Import attention image heads grid patches rank.
From Convattn.foundation Require Import flattened_kernel independent lower_bound split_heads offset_heads.
From Convattn.sharpened Require Import heads_pixels kernel_sufficient group.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** Where a copy of a filter, perhaps mirrored and then turned so often, has the entry of this tap from. *)
Definition copied_tap (last turns : nat) (mirror : bool) (i j : nat) : nat * nat :=
  let tap := turned_tap last turns i j in if mirror then (tap.1, last - tap.2)%N else tap.

(** The kernel of the lifting convolution. *)
Definition mirrored_kernel (F : fieldType) (In Filter : Type) (last : nat)
    (f : In -> Filter -> nat -> nat -> F) (i j : nat) (c : In) (o : Filter * ('I_4 * bool)) : F :=
  let tap := copied_tap last o.2.1 o.2.2 i j in f c o.1 tap.1 tap.2.

(** The character with these signs of the turn and of the mirror. *)
Definition character (F : fieldType) (chi : bool * bool) (turns : nat) (mirror : bool) : F :=
  (-1) ^+ (chi.1 && odd turns) * (-1) ^+ (chi.2 && mirror).

(** Whether this tap is that one. *)
Definition tap_is (r : nat) (e : token_offset r r) (tap : nat * nat) : bool :=
  (e.1 == tap.1 :> nat) && (e.2 == tap.2 :> nat).

(** Σ_g χ(g) g on the functions on the taps, and 1 - (the turn by 180°). *)
Definition character_part (F : fieldType) (r : nat) (chi : bool * bool) (e d : token_offset r r) : F :=
  \sum_(g < 4) \sum_m character F chi g m * (tap_is e (copied_tap r.*2 g m d.1 d.2))%:R.

Definition plane_part (F : fieldType) (r : nat) (e d : token_offset r r) : F :=
  (e == d)%:R - (tap_is e (turned_tap r.*2 2 d.1 d.2))%:R.

Arguments character_part F r chi e d : clear implicits.
Arguments plane_part F r e d : clear implicits.

Section Bound.

Variables (F : fieldType) (In Filter : finType) (r : nat).
Variable f : In -> Filter -> nat -> nat -> F.
Hypothesis two : 2%:R != 0 :> F.

Local Notation Copy := [finType of (In * Filter) * ('I_4 * bool)].
Local Notation Tap := (token_offset r r).
Local Notation filters_and_channels := (#|In| * #|Filter|)%N.

(** The entry of a copy at a tap. *)
Definition copy (ck : In * Filter) (turns : nat) (mirror : bool) (d : Tap) : F :=
  let tap := copied_tap r.*2 turns mirror d.1 d.2 in f ck.1 ck.2 tap.1 tap.2.

Definition filter_part (chi : bool * bool) (ck : In * Filter) (d : Tap) : F :=
  \sum_(g < 4) \sum_m character F chi g m * copy ck g m d.

Definition half_turned (turns : nat) : nat := match turns with 0 => 2 | 1 => 3 | 2 => 0 | _ => 1 end.

Definition odd_part (st : Copy) (d : Tap) : F :=
  copy st.1 st.2.1 st.2.2 d - copy st.1 (half_turned st.2.1) st.2.2 d.

(** The entries by their parts. *)
Lemma copies_in_parts (st : Copy) d :
  8%:R * copy st.1 st.2.1 st.2.2 d =
    \sum_chi character F chi st.2.1 st.2.2 * filter_part chi st.1 d + 4%:R * odd_part st d.
Proof.
case: st => ck [g m]; rewrite /odd_part /= -(pair_bigA _ (fun a b =>
  character F (a, b) g m * filter_part (a, b) ck d)) /= !big_bool /= /filter_part.
rewrite !big_ord_recl !big_ord0 !big_bool /character /= /bump !leq0n !add1n !expr0 !expr1.
by case: g => [[|[|[|[|]]]]] //= _; case: m; rewrite /= ?expr0 ?expr1; ring.
Qed.

(** What two turns more do to a tap. *)
Lemma half_turned_tap (turns : nat) (mirror : bool) (d : Tap) :
  (turns < 4)%N -> copied_tap r.*2 (half_turned turns) mirror d.1 d.2 =
    let tap := turned_tap r.*2 2 d.1 d.2 in copied_tap r.*2 turns mirror tap.1 tap.2.
Proof.
case: d => [[i lti] [j ltj]] /=.
by case: turns => [|[|[|[|]]]] //= _; rewrite /copied_tap /=; case: mirror; congr (_, _); lia.
Qed.

(** A function on the taps at a place. *)
Lemma at_tap (g : nat -> nat -> F) (tap : nat * nat) : (tap.1 <= r.*2)%N -> (tap.2 <= r.*2)%N ->
  \sum_(e : Tap) g e.1 e.2 * (tap_is e tap)%:R = g tap.1 tap.2.
Proof.
rewrite -ltnS => lt1; rewrite -ltnS => lt2.
rewrite (bigD1 ((Ordinal lt1, Ordinal lt2) : Tap)) //= /tap_is !eqxx mulr1.
rewrite big1 ?addr0 // => e ne.
have /negbTE -> : ~~ ((e.1 == tap.1 :> nat) && (e.2 == tap.2 :> nat)).
  by apply: contraNN ne => /andP [/eqP e1 /eqP e2]; rewrite -pair_eqE /= -!val_eqE /= e1 e2 !eqxx.
by rewrite mulr0.
Qed.

Lemma tap_bounds (turns : nat) (mirror : bool) (d : Tap) :
  ((copied_tap r.*2 turns mirror d.1 d.2).1 <= r.*2)%N &&
  ((copied_tap r.*2 turns mirror d.1 d.2).2 <= r.*2)%N.
Proof.
case: d => [[i lti] [j ltj]]; rewrite /copied_tap /=.
by case: turns => [|[|[|turns]]]; case: mirror => /=; lia.
Qed.

(** A character's part has no more dimensions than there are filters, or that it takes of the taps. *)
Lemma character_rank chi :
  (family_rank (fun (st : Copy) d => (character F chi st.2.1 st.2.2 * filter_part chi st.1 d)%R) <=
    minn filters_and_channels (family_rank (character_part F r chi)))%N.
Proof.
rewrite leq_min; apply/andP; split.
  rewrite -card_prod; apply: (family_rank_product
    (L := fun (st : Copy) ck => (character F chi st.2.1 st.2.2 * (st.1 == ck)%:R)%R)
    (R := filter_part chi)) => st d.
  rewrite (bigD1 st.1) //= eqxx mulr1 big1 ?addr0 // => ck /negbTE ne.
  by rewrite eq_sym ne mulr0 mul0r.
apply: (family_rank_right
  (L := fun (st : Copy) (e : Tap) => (character F chi st.2.1 st.2.2 * f st.1.1 st.1.2 e.1 e.2)%R)) => st d.
under [RHS]eq_bigr do rewrite -mulrA; rewrite -big_distrr /=; congr (_ * _).
under [RHS]eq_bigr do rewrite /character_part big_distrr /=.
rewrite exchange_big; apply: eq_bigr => g _ /=.
under [RHS]eq_bigr do rewrite big_distrr /=.
rewrite exchange_big; apply: eq_bigr => m _ /=.
under eq_bigr do rewrite mulrCA; rewrite -big_distrr /=; congr (_ * _).
by have /andP [] := tap_bounds g m d => b1 b2; rewrite at_tap.
Qed.

(** That of E, four copies a filter. *)
Lemma plane_rank : (family_rank odd_part <= minn (4 * filters_and_channels) (family_rank (plane_part F r)))%N.
Proof.
rewrite leq_min; apply/andP; split.
  apply: leq_trans (family_rank_product
    (Inner := [finType of (In * Filter) * (bool * bool)])
    (L := fun (st : Copy) x => ((-1) ^+ (1 < st.2.1)%N *
      ((st.1 == x.1) && (odd st.2.1 == x.2.1) && (st.2.2 == x.2.2))%:R)%R)
    (R := fun x d => (copy x.1 x.2.1 x.2.2 d - copy x.1 (half_turned x.2.1) x.2.2 d)%R) _) _; last first.
    by rewrite !card_prod !card_bool; lia.
  move=> [ck [g m]] d; rewrite (bigD1 (ck, (odd g, m))) //= !eqxx mulr1 big1 ?addr0; last first.
    move=> [ck' [a b]] ne /=; have /negbTE -> : ~~ ((ck == ck') && (odd g == a) && (m == b)).
      by apply: contraNN ne => /andP [/andP [/eqP -> /eqP ->] /eqP ->].
    by rewrite mulr0 mul0r.
  by rewrite /odd_part /=; case: g => [[|[|[|[|]]]]] //= _; ring.
apply: (family_rank_right
  (L := fun (st : Copy) (e : Tap) => copy st.1 st.2.1 st.2.2 e)) => st d.
have [b1 b2] : ((turned_tap r.*2 2 d.1 d.2).1 <= r.*2)%N /\ ((turned_tap r.*2 2 d.1 d.2).2 <= r.*2)%N.
  by case: d => [[i lti] [j ltj]] /=; lia.
rewrite /plane_part; under eq_bigr do rewrite mulrBr; rewrite sumrB; congr (_ - _).
  rewrite (bigD1 d) //= eqxx mulr1 big1 ?addr0 // => e /negbTE ne; by rewrite ne mulr0.
rewrite (at_tap (fun i j => let tap := copied_tap r.*2 st.2.1 st.2.2 i j in
  f st.1.1 st.1.2 tap.1 tap.2) b1 b2).
by rewrite /copy half_turned_tap.
Qed.

Local Notation most :=
  (\sum_chi minn filters_and_channels (family_rank (character_part F r chi)) +
    minn (4 * filters_and_channels) (family_rank (plane_part F r)))%N.

Lemma mirrored_rank :
  (family_rank (flattened_kernel 1 1 r r r r (mirrored_kernel r.*2 f)) <= most)%N.
Proof.
pose copies (st : Copy) (d : Tap) := copy st.1 st.2.1 st.2.2 d.
apply: (@leq_trans (family_rank copies)).
  apply: (family_rank_right (L := fun st (st' : Copy) =>
    (((st.1.2, st.2.2.1) == st'.1)%:R * (st.2.2.2 == st'.2)%:R)%R)) => -[s t] d.
  rewrite (bigD1 ((s.2, t.2.1), t.2.2)) //= !eqxx !mul1r big1 ?addr0 => [|st' ne].
    by rewrite flattened_pixels.
  rewrite -natrM mulnb; have /negbTE -> : ~~ (((s.2, t.2.1) == st'.1) && (t.2.2 == st'.2)).
    by apply: contraNN ne => /andP [/eqP e1 /eqP e2]; rewrite [st']surjective_pairing -e1 -e2.
  by rewrite mul0r.
have eight : 8%:R != 0 :> F.
  by rewrite (_ : 8%:R = 2%:R * 2%:R * 2%:R :> F) ?mulf_neq0 // -!natrM.
have parts st d : copies st d = 8%:R^-1 *
    (\sum_chi character F chi st.2.1 st.2.2 * filter_part chi st.1 d + 4%:R * odd_part st d).
  by rewrite -copies_in_parts mulKf.
rewrite (eq_family_rank parts); apply: leq_trans (family_rank_scale _ _) _.
apply: leq_trans (family_rank_add _ _) (leq_add _ _).
  apply: leq_trans (family_rank_sum _ _) _; apply: leq_sum => chi _; exact: character_rank.
exact: leq_trans (family_rank_scale _ _) plane_rank.
Qed.

End Bound.

Theorem group_mirrored (F : realFieldType) (In Filter : finType) (r : nat)
    (f : In -> Filter -> nat -> nat -> F) :
  exists (Head : finType) (w : Head -> token_offset r r -> F)
      (M : Head -> patch_feature 1 1 In -> patch_feature 1 1 [finType of Filter * ('I_4 * bool)] -> F),
    [/\ (#|Head| <= (\sum_chi minn (#|In| * #|Filter|) (family_rank (character_part F r chi)) +
          minn (4 * (#|In| * #|Filter|)) (family_rank (plane_part F r))).+1)%N,
        forall h d, 0 <= w h d,
        forall (rows columns : nat) h (q : bare_grid rows columns) k, 0 < offset_weights (w h) q k
      & forall rows columns : nat, expresses r r
          (fun h (q : bare_grid rows columns) => softmax (offset_weights (w h) q))
          M (fun=> 0) (mirrored_kernel r.*2 f)].
Proof.
have reach : (r <= 1 * r)%N by rewrite mul1n.
have [Head [w [M [card ge0 pos equal]]]] := kernel_sufficient (mirrored_kernel r.*2 f) reach reach.
exists Head, w, M; split=> //; rewrite card ltnS; apply: mirrored_rank.
by rewrite pnatr_eq0.
Qed.
