(** S.dp2: two positional features give one-hot heads on every finite image.

    Number the shifts of a list by n = 0, 1, ..., T - 1, give every other shift the one spare number
    T, and let the positional features of a shift be (n, n²). To look at the offset Δ of the list,
    with α > 0, let a head's vector be v = α (2 n_Δ, -1). Then, for every list and every Δ in it:
    the score v·r of a shift is -α (n - n_Δ)² up to a constant; it is less than Δ's score, by at
    least α, for every other shift; and on every finite set of keys with distinct positions, from
    every query whose key at Δ exists, the attention is within (N - 1) e^-α of the one-hot row in
    total variation, N being the number of keys. One list of features serves all images.

    The numbers are those of a totally ordered field with some exponential, such as the reals.
    That the layer tends to the convolution is dp2_limit. Rounding of n² in floating point is not covered. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring zify.
From Convattn.foundation Require Import attention exponential total_variation.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** The number of a shift: its place in the list, or the list's length. *)
Definition shift_number (offsets : seq (int * int)) (shift : int * int) : nat :=
  index shift offsets.

(** The two features of a shift: n and n². *)
Definition shift_features (R : ringType) (offsets : seq (int * int)) (shift : int * int)
    (feature : 'I_2) : R :=
  let n := (shift_number offsets shift)%:R in if feature == 0%N :> nat then n else n * n.

(** What the head of an offset multiplies them with: 2 α n_Δ and -α. *)
Definition head_vector (R : ringType) (alpha : R) (offsets : seq (int * int)) (offset : int * int)
    (feature : 'I_2) : R :=
  if feature == 0%N :> nat then 2%:R * alpha * (shift_number offsets offset)%:R else - alpha.

Definition enumerated_score (R : ringType) (alpha : R) (offsets : seq (int * int))
    (offset shift : int * int) : R :=
  \sum_i head_vector alpha offsets offset i * shift_features R offsets shift i.

Section Scores.

Variables (R : realFieldType) (alpha : R) (offsets : seq (int * int)) (offset : int * int).
Hypotheses (listed : offset \in offsets) (alpha_gt0 : 0 < alpha).

(** The number of a shift, in the field. *)
Let shift_value shift : R := (shift_number offsets shift)%:R.

(** Completing the square. *)
Lemma enumerated_scoreE shift :
  enumerated_score alpha offsets offset shift =
    - (alpha * (shift_value shift - shift_value offset) ^+ 2) + alpha * shift_value offset ^+ 2.
Proof.
by rewrite /enumerated_score !big_ord_recl big_ord0 /head_vector /shift_features /= -!/(shift_value _); ring.
Qed.

(** No other shift has the number of a listed one. *)
Lemma shift_number_inj shift :
  shift != offset -> shift_number offsets shift != shift_number offsets offset.
Proof.
apply: contraNneq => eqn; apply/eqP.
have listed' : shift \in offsets by rewrite -index_mem -/(shift_number _ _) eqn index_mem.
by rewrite -(nth_index (0, 0) listed') -/(shift_number _ _) eqn nth_index.
Qed.

(** Different natural numbers are at least one apart. *)
Lemma square_gap (a b : nat) : a != b -> 1 <= (a%:R - b%:R : R) ^+ 2.
Proof.
move=> neq; rewrite -[a%:R]/(a%:Z%:~R) -[b%:R]/(b%:Z%:~R) -rmorphB -rmorphX /= ler1z.
have : a%:Z - b%:Z != 0 by lia.
nia.
Qed.

(** Every other score is less, by at least α. *)
Lemma enumerated_gap shift : shift != offset ->
  enumerated_score alpha offsets offset shift + alpha <=
    enumerated_score alpha offsets offset offset.
Proof.
move=> neq; rewrite !enumerated_scoreE subrr expr0n mulr0 oppr0 add0r addrAC ger_addr.
rewrite addrC subr_le0 ler_pmulr //; exact/square_gap/shift_number_inj.
Qed.

End Scores.

Theorem dp2 (R : realFieldType) (alpha : R) (offsets : seq (int * int)) (offset : int * int) :
  offset \in offsets -> 0 < alpha ->
  let shift_value shift : R := (shift_number offsets shift)%:R in
  let score := enumerated_score alpha offsets offset in
  [/\ forall shift,
        score shift = - (alpha * (shift_value shift - shift_value offset) ^+ 2) + alpha * shift_value offset ^+ 2,
      forall shift, shift != offset -> score shift + alpha <= score offset
    & forall E : R -> R, is_exponential E ->
      forall (Key : finType) (position : Key -> int * int) (query : int * int) (target : Key),
        injective position -> position target = query + offset ->
        total_variation (softmax (fun k => E (score (position k - query))))
            (one_hot R (Some target)) <= (#|Key|.-1)%:R * E (- alpha)].
Proof.
move=> listed alpha_gt0 shift_value score.
split=> [shift|shift|E E_exp Key position query target inj at_offset]; first exact: enumerated_scoreE.
  exact: enumerated_gap.
have E_gt0 := exponential_positive E_exp.
pose x : R := (#|Key|.-1)%:R * E (- alpha).
have x_ge0 : 0 <= x by rewrite mulr_ge0 ?ler0n // ltW.
have le_sum : \sum_k E (score (position k - query)) <= (x + 1) * E (score (position target - query)).
  rewrite (bigD1 target) //= at_offset addrC [query + offset]addrC addrK mulrDl mul1r ler_add2r.
  rewrite -mulrA -exponential_add //.
  apply: (@le_trans _ _ (\sum_(k | k != target) E (- alpha + score offset))).
    apply: ler_sum => k neq; apply: exponential_monotone => //.
    rewrite [- alpha + _]addrC ler_subr_addr; apply: enumerated_gap => //.
    apply: contraNneq neq => eqs; apply/eqP/inj.
    by rewrite at_offset -eqs addrC subrK.
  by rewrite sumr_const (cardC1 target) -[leLHS]mulr_natl.
apply: le_trans (softmax_distance_le _ le_sum) _ => //.
have x1_gt0 : 0 < x + 1 by rewrite ltr_paddl ?ltr01.
rewrite ler_subl_addr -ler_subl_addl -[(x + 1)^-1]mul1r ler_pdivl_mulr //.
have -> : (1 - x) * (x + 1) = 1 - x ^+ 2 by ring.
by rewrite ler_subl_addr ler_addl exprn_ge0.
Qed.
