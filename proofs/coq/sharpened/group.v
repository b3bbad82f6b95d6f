(** S.group for p4: filters lifted by turns take min(4 n, K²) heads, and one more at finite scores.

    Let K = 2 r + 1, and let a filter of K × K taps of one input channel be lifted to four output
    channels, the filter turned 0 to 3 times by 90° anticlockwise. Let n be the number of filters, those of
    all input channels together. The flattened form of every lifted kernel has at most the rank
    min(4 n, K²), and that of some lifted kernel, of zeros and ones, at least that rank: every layer that is
    its zero-padded convolution, for all images, has at least so many heads, and more, if there are
    any filters, all weights differ from zero, as those of a softmax at finite scores do, and the image has
    more than r + 1 rows or columns of pixels. This holds over every field, for every image of more than r
    rows and columns, with a ring of zero pixels of any width or with none, whatever the attention, so
    long as it does not depend on the image, and with any value maps and bias. One kernel serves all
    image sizes.

    As the four characters have the multiplicities (K² + 3) / 4 and three times (K² - 1) / 4 on the taps,
    the number is the sum of min(m_χ, n). That rank F + 1 heads suffice is kernel_sufficient; limits are
    heads_limit, generic filters heads_generic with this kernel. Not covered: even K; p4m, for which
    group_mirrored has the upper bound. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import zify.
From Convattn.foundation Require Import attention image grid patches rank.
From Convattn.foundation Require Import flattened_kernel independent lower_bound.
From Convattn.sharpened Require Import heads_pixels kernel.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

(** Where a filter that was turned so often has the entry of this tap from; taps are numbered from 0 to
    [last] on each axis. *)
Definition turned_tap (last turns i j : nat) : nat * nat :=
  match turns with
  | 0 => (i, j)
  | 1 => (j, last - i)%N
  | 2 => (last - i, last - j)%N
  | _ => (last - j, i)%N
  end.

(** The kernel of the lifting convolution. *)
Definition lifted_kernel (F : fieldType) (In Filter : Type) (last : nat)
    (f : In -> Filter -> nat -> nat -> F) (i j : nat) (c : In) (o : Filter * 'I_4) : F :=
  let tap := turned_tap last o.2 i j in f c o.1 tap.1 tap.2.

Section Rank.

Variables (F : fieldType) (In Filter : finType) (r : nat).

Local Notation lifted_form f := (flattened_kernel 1 1 r r r r (lifted_kernel r.*2 f)).
Local Notation filters := (#|In| * #|Filter|)%N.
Local Notation least := (minn (4 * filters) (r.*2.+1 * r.*2.+1))%N.

(** There are no more rows and no more columns. *)
Lemma lifted_rank_most (f : In -> Filter -> nat -> nat -> F) : (family_rank (lifted_form f) <= least)%N.
Proof.
rewrite leq_min; apply/andP; split; last first.
  by apply: leq_trans (rank_leq_col _) _; rewrite card_prod !card_ord.
by apply: leq_trans (rank_leq_row _) _; rewrite !card_prod !card_ord; lia.
Qed.

(** Filter number e has one tap: the representative number e of the orbits, and last the centre. *)
Definition orbit_filter (c : In) (k : Filter) (i j : nat) : F :=
  ((i * r.+1 + (j - r) == pair_number c k) && (r <= j <= r.*2))%N%:R.

(** The orbits of four that have a filter, and whether the centre has one. *)
Local Notation orbits := (minn filters (r * r.+1))%N.
Local Notation centre := (nat_of_bool (r * r.+1 < filters)%N).

Lemma orbit_bound (e : 'I_orbits) : (e < filters)%N.
Proof. exact: leq_trans (ltn_ord e) (geq_minl _ _). Qed.

Definition filter_of (x : ('I_orbits * 'I_4) + 'I_centre) : nat :=
  if x is inl e then e.1 else (r * r.+1)%N.

Lemma filter_bound x : (filter_of x < filters)%N.
Proof.
case: x => [[e g]|e] /=; first exact: orbit_bound.
by case: ltnP e => // _ [].
 Qed.

Definition turns_of (x : ('I_orbits * 'I_4) + 'I_centre) : 'I_4 :=
  if x is inl e then e.2 else ord0.

Definition row_of x : patch_feature 1 1 In * patch_feature 1 1 [finType of Filter * 'I_4] :=
  let pair := digits (leqnn filters) (Ordinal (filter_bound x)) in
  ((ord0, ord0, enum_val pair.1), (ord0, ord0, (enum_val pair.2, turns_of x))).

(** Turned back, as often as the filter was turned. *)
Definition back (last turns i j : nat) : nat * nat :=
  turned_tap last (match turns with 0 => 0 | 1 => 3 | 2 => 2 | _ => 1 end) i j.

Definition tap_of x : nat * nat :=
  back r.*2 (turns_of x) (filter_of x %/ r.+1) (r + filter_of x %% r.+1).

Lemma digits_of x : exists i j,
  [/\ filter_of x = (i * r.+1 + j)%N, (filter_of x %/ r.+1 = i)%N, (filter_of x %% r.+1 = j)%N,
      (j <= r)%N & (i < r)%N \/ i = r /\ j = 0%N /\ turns_of x = 0%N :> nat].
Proof.
exists (filter_of x %/ r.+1)%N, (filter_of x %% r.+1)%N.
rewrite -divn_eq -ltnS ltn_pmod //; split=> //.
case: x => [[e g]|e] /=; last by right; rewrite mulnK // modnMl.
by left; rewrite ltn_divLR //; exact: leq_trans (ltn_ord e) (geq_minr _ _).
Qed.

Lemma tap_bound x : ((tap_of x).1 < r.*2.+1)%N && ((tap_of x).2 < r.*2.+1)%N.
Proof.
rewrite /tap_of; have [i [j [_ -> -> lej lti]]] := digits_of x.
have lei : (i <= r)%N by case: lti => [/ltnW|[->]].
by case: (turns_of x) => [[|[|[|[|]]]]] //= _; lia.
Qed.

Lemma tap_bound1 x : ((tap_of x).1 < r.*2.+1)%N. Proof. by case/andP: (tap_bound x). Qed.
Lemma tap_bound2 x : ((tap_of x).2 < r.*2.+1)%N. Proof. by case/andP: (tap_bound x). Qed.

Definition column_of x : token_offset r r := (Ordinal (tap_bound1 x), Ordinal (tap_bound2 x)).

Lemma filter_of_row x : pair_number (row_of x).1.2 (row_of x).2.2.1 = filter_of x.
Proof. by rewrite /pair_number /= !enum_valK -divn_eq. Qed.

Lemma same_filter x y : (x == y) = (filter_of x == filter_of y) && (turns_of x == turns_of y).
Proof.
apply/eqP/andP => [->|[/eqP ef /eqP et]]; first by rewrite !eqxx.
case: x y ef et => [[e g]|e] [[e' g']|e'] /= ef et.
- by congr (inl (_, _)); first exact: val_inj.
- by have := leq_trans (ltn_ord e) (geq_minr _ _); rewrite ef ltnn.
- by have := leq_trans (ltn_ord e') (geq_minr _ _); rewrite -ef ltnn.
have one : (centre <= 1)%N := leq_b1 _.
have := leq_trans (ltn_ord e) one; have := leq_trans (ltn_ord e') one; rewrite !ltnS !leqn0.
by move=> /eqP z' /eqP z; congr inr; apply: val_inj; exact: etrans z (esym z').
Qed.

Lemma same_digits a b c d : (d <= r)%N ->
  ((a * r.+1 + (b - r) == c * r.+1 + d) && (r <= b <= r.*2))%N = (a == c) && (b == r + d)%N.
Proof.
move=> led; apply/andP/andP => [[/eqP e leb]|[/eqP -> /eqP ->]]; last by split; lia.
have small : (b - r < r.+1)%N by lia.
suff [-> <-] : a = c /\ (b - r)%N = d by split; lia.
have := congr1 (divn^~ r.+1) e; have := congr1 (modn^~ r.+1) e.
by rewrite !modnMDl !modn_small // !divnMDl // !divn_small // !addn0 => -> ->.
Qed.

Lemma minor_entry x y : lifted_form orbit_filter (row_of x) (column_of y) = (x == y)%:R.
Proof.
rewrite [row_of x]surjective_pairing flattened_pixels /lifted_kernel /orbit_filter.
have -> : (row_of x).2.2.2 = turns_of x by [].
rewrite filter_of_row same_filter /= /tap_of.
have [i [j [ex _ _ lej lti]]] := digits_of x; have [k [l [ey -> -> lel ltk]]] := digits_of y.
congr (nat_of_bool _)%:R; rewrite ex ey same_digits //.
have -> : (i * r.+1 + j == k * r.+1 + l)%N = (i == k) && (j == l).
  by have := same_digits i (r + j) k lel; rewrite addKn eqn_add2l => <-; lia.
case: (turns_of x) lti => [[|[|[|[|]]]]] //= ? lti; case: (turns_of y) ltk => [[|[|[|[|]]]]] //= ? ltk;
  rewrite -?val_eqE /= in lti ltk *; lia.
Qed.

Lemma orbit_rank : (least <= family_rank (lifted_form orbit_filter))%N.
Proof.
apply: leq_trans (family_rank_minor (L := fun a b => (a == b)%:R) (pick := row_of)
  (choose := column_of) _) => [|a b].
  by rewrite card_sum card_prod !card_ord; lia.
rewrite (bigD1 a) //= eqxx mul1r minor_entry big1 ?addr0 // => z /negbTE nz.
by rewrite eq_sym nz mul0r.
Qed.

End Rank.

Theorem group (F : fieldType) (In Filter : finType) (r : nat) :
  let least := minn (4 * (#|In| * #|Filter|)) (r.*2.+1 * r.*2.+1) in
  (forall f : In -> Filter -> nat -> nat -> F,
    (family_rank (flattened_kernel 1 1 r r r r (lifted_kernel r.*2 f)) <= least)%N) /\
  exists2 f : In -> Filter -> nat -> nat -> F,
    (least <= family_rank (flattened_kernel 1 1 r r r r (lifted_kernel r.*2 f)))%N &
  forall (Head : finType) (rows columns a b : nat)
      (A : Head -> bare_grid rows columns -> ringed_grid rows columns a b -> F)
      (M : Head -> patch_feature 1 1 In -> patch_feature 1 1 [finType of Filter * 'I_4] -> F)
      (bias : patch_feature 1 1 [finType of Filter * 'I_4] -> F),
    (r < rows)%N -> (r < columns)%N ->
    expresses r r A M bias (lifted_kernel r.*2 f) ->
    (least <= #|Head|)%N /\
    ((0 < #|In| * #|Filter|)%N -> (r.+1 < rows)%N \/ (r.+1 < columns)%N ->
      (forall h q k, A h q k != 0) -> (least < #|Head|)%N).
Proof.
move=> least; split; first exact: lifted_rank_most.
exists (@orbit_filter F In Filter r); first exact: orbit_rank.
move=> Head rows columns a b A M bias large1 large2 equal; split.
  by apply: leq_trans (orbit_rank F In Filter r) (head_bound _ _ equal large1 large2); rewrite mul1n.
move=> some outside nz; apply: leq_ltn_trans (orbit_rank F In Filter r) _.
apply: (kernel _ _ large1 large2 equal nz); rewrite ?mul1n //.
  by apply: leq_trans (orbit_rank F In Filter r); lia.
by case: outside; [left | right; left].
Qed.
