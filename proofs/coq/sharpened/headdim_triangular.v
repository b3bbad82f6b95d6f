(** S.headdim (3): for m ≤ P - 1 some kernel takes (T - 1) + ⌈P² D / d⌉ heads of width d, whatever they attend to.

    Let there be D ≥ 2 channels, as many in as out, K₁ = 2 r₁ + 1, K₂ = 2 r₂ + 1, m = ⌈(K₁-1)/(2P₁)⌉ ≤ P₁ - 1,
    n = ⌈(K₂-1)/(2P₂)⌉ ≤ P₂ - 1 and T = (2m+1)(2n+1). There is a kernel such that every layer whose value maps go
    through d ≥ 1 features and that is its zero-padded convolution for all images has at least
    (T - 1) + ⌈P₁ P₂ D / d⌉ heads, and one more if no attention weight is zero, as at finite scores, and some query
    has a token of the image outside its receptive field. The kernel is the identity of the channels in the
    middle, and in one pair of different channels z^(t²) over both axes besides; one kernel serves all image sizes
    of more than m rows and n columns of patches, with a ring of any width or with none, all attention that
    does not depend on the image, all d and all biases. The field is any that holds the absolute values of its
    numbers. For K = 3, P = 16, three channels and d = 64 these are 8 + 12 = 20.

    Not covered: unlike numbers of channels, m ≥ P, and limits. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import zify.
From Convattn.foundation Require Import attention image grid bare patches rank head_dimension.
From Convattn.foundation Require Import flattened_kernel product_kernel independent lower_bound power_line split_heads.
From Convattn.sharpened Require Import heads_patches headdim_pattern.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory Num.Theory Order.Theory.
Local Open Scope ring_scope.

(** The identity of the channels at the middle tap, and a kernel in one pair. *)
Definition middle_kernel (F : fieldType) (C : eqType) (r1 r2 : nat) (i j : nat) (c o : C) : F :=
  [&& i == r1, j == r2 & c == o]%:R.

Definition triangular_kernel (F : fieldType) (C : eqType) (i0 i1 : C) (r1 r2 : nat) (w1 w2 : nat -> F)
    (i j : nat) (c o : C) : F :=
  middle_kernel F r1 r2 i j c o + 1 * product_kernel i0 i1 w1 w2 i j c o.

Lemma axis_tap_middle (p m r : nat) (i : 'I_m.*2.+1) (s t : 'I_p) (u : nat) :
  axis_tap p m r i s t = Some u -> (u == r) = (i == m :> nat) && (s == t).
Proof.
rewrite -eq_block /axis_tap; case: ifP => // /andP [le _] [<-].
by apply/eqP/eqP; lia.
Qed.

Lemma axis_tap_centre (p m r : nat) (s : 'I_p) : axis_tap p m r m s s = Some r.
Proof.
by rewrite /axis_tap addKn leq_addr ltnS -addnn leq_addr.
Qed.

Section Triangular.

Variables (F : numFieldType) (C : finType) (i0 i1 : C) (p1 p2 m n r1 r2 : nat) (w1 w2 : nat -> F).
Hypothesis differ : i0 != i1.

Local Notation kernel := (flattened_kernel p1 p2 m n r1 r2 (triangular_kernel i0 i1 r1 r2 w1 w2)).
Local Notation pair_kernel := (flattened_kernel p1 p2 m n r1 r2 (product_kernel i0 i1 w1 w2)).

Local Notation middle := (centre_offset m n).

Lemma middle_entry (s t : patch_feature p1 p2 C) (d : token_offset m n) :
  flattened_kernel p1 p2 m n r1 r2 (@middle_kernel F C r1 r2) (s, t) d = ((d == middle) && (s == t))%:R.
Proof.
clear differ; have val_middle : (d == middle) = (d.1 == m :> nat) && (d.2 == n :> nat).
  by rewrite -pair_eqE /pair_eq /= -!val_eqE /= !inordK //; lia.
rewrite val_middle; case: s t d {val_middle} => [[s1 s2] c] [[t1 t2] o] [i j] /=.
rewrite -pair_eqE /pair_eq /= -pair_eqE /pair_eq /=.
rewrite /flattened_kernel /output_block /joining_tap /middle_kernel /=.
case e1: axis_tap => [u|]; last first.
  case: eqP => //= ei; case: eqP => //= ej; case: eqP => //= es.
  by move: e1; rewrite ei -es axis_tap_centre.
case e2: axis_tap => [v|]; last first.
  case: eqP => //= ei; case: eqP => //= ej; case: eqP => //= es; case: eqP => //= es2.
  by move: e2; rewrite ej -es2 axis_tap_centre.
rewrite (axis_tap_middle e1) (axis_tap_middle e2); congr (_%:R).
by case: (i == m :> nat) (s1 == t1) (j == n :> nat) (s2 == t2) (c == o) => [] [] [] [] [].
Qed.

Lemma triangular_entry (s t : patch_feature p1 p2 C) (d : token_offset m n) :
  kernel (s, t) d = ((d == middle) && (s == t))%:R + pair_kernel (s, t) d.
Proof. by rewrite flattened_line mul1r middle_entry. Qed.

(** In one pair of channels only. *)
Lemma pair_entry_zero (s t : patch_feature p1 p2 C) (d : token_offset m n) :
  (s.2 != i0) || (t.2 != i1) -> pair_kernel (s, t) d = 0.
Proof.
rewrite /flattened_kernel /output_block /product_kernel -negb_and => /negbTE out.
by case: joining_tap => // uv; rewrite out.
Qed.

(** The identity plus what maps one channel to another has full rank. *)
Lemma triangular_full (c : token_offset m n -> F) :
  family_rank (fun s t => (kernel (s, t) middle + \sum_(d | d != middle) c d * kernel (s, t) d)%R) =
    #|patch_feature p1 p2 C|.
Proof.
apply: full_columns => x zero.
pose g s t := pair_kernel (s, t) middle + \sum_(d | d != middle) c d * pair_kernel (s, t) d.
have g_zero s t : (s.2 != i0) || (t.2 != i1) -> g s t = 0.
  by move=> out; rewrite /g pair_entry_zero // big1 ?addr0 // => d _; rewrite pair_entry_zero // mulr0.
have entry s t : kernel (s, t) middle + \sum_(d | d != middle) c d * kernel (s, t) d = (s == t)%:R + g s t.
  rewrite triangular_entry eqxx -addrA; congr (_ + (_ + _)).
  by apply: eq_bigr => d /negbTE nd; rewrite triangular_entry nd add0r.
have each s : x s + \sum_t g s t * x t = 0.
  rewrite -[RHS](zero s); under [RHS]eq_bigr do rewrite entry mulrDl.
  rewrite big_split /=; congr (_ + _); rewrite (bigD1 s) //= eqxx mul1r big1 ?addr0 // => t.
  by rewrite eq_sym => /negbTE ->; rewrite mul0r.
have low s : s.2 != i0 -> x s = 0.
  move=> ne; have := each s; rewrite big1 ?addr0 // => t _.
  by rewrite g_zero ?ne // mul0r.
move=> s; have := each s; rewrite big1 ?addr0 // => t _.
have [e|ne] := eqVneq t.2 i1; last by rewrite g_zero ?ne ?orbT // mul0r.
by rewrite low ?mulr0 // e eq_sym.
Qed.

End Triangular.

Theorem headdim_triangular (F : numFieldType) (C : finType) (i0 i1 : C) (p1 p2 r1 r2 : nat) :
  let m := patch_reach p1 r1 in
  let n := patch_reach p2 r2 in
  let T := (m.*2.+1 * n.*2.+1)%N in
  i0 != i1 -> (m < p1)%N -> (n < p2)%N ->
  exists W : nat -> nat -> C -> C -> F,
  forall (Head : finType) (rows columns a b dim : nat)
      (A : Head -> bare_grid rows columns -> ringed_grid rows columns a b -> F)
      (V : Head -> patch_feature p1 p2 C -> 'I_dim -> F)
      (U : Head -> 'I_dim -> patch_feature p1 p2 C -> F)
      (bias : patch_feature p1 p2 C -> F),
    (m < rows)%N -> (n < columns)%N -> (0 < dim)%N ->
    expresses r1 r2 A (fun h => through (V h) (U h)) bias W ->
    (T.-1 + heads_for_rank dim (p1 * p2 * #|C|) <= #|Head|)%N /\
    ((forall h q k, A h q k != 0) -> (m.+1 < rows)%N || (n.+1 < columns)%N ->
      (T + heads_for_rank dim (p1 * p2 * #|C|) <= #|Head|)%N).
Proof.
move=> m n T differ ltm ltn.
have lt0p1 : (0 < p1)%N by apply: leq_ltn_trans ltm.
have lt0p2 : (0 < p2)%N by apply: leq_ltn_trans ltn.
have far p r : (patch_reach p r < p)%N -> (patch_reach p r == 0)%N || (p * (patch_reach p r).-1 < r)%N.
  move=> lt; have lt0 : (0 < p)%N by apply: leq_ltn_trans lt.
  by have := counted_far r lt0; rewrite (_ : counted p r = patch_reach p r) // /counted; lia.
have [L1 inverse1] := power_line_inverse ltm (leqnn m) (far _ _ ltm) (small_base_gt0 F m) (small_base_lt1 F m).
have [L2 inverse2] := power_line_inverse ltn (leqnn n) (far _ _ ltn) (small_base_gt0 F n) (small_base_lt1 F n).
pose w1 := power_line (small_base F m) r1; pose w2 := power_line (small_base F n) r2.
exists (triangular_kernel i0 i1 r1 r2 w1 w2).
move=> Head rows columns a b dim A V U bias large1 large2 lt0 equal.
have number : #|token_offset m n| = T by rewrite card_prod !card_ord.
have size : #|patch_feature p1 p2 C| = (p1 * p2 * #|C|)%N by rewrite !card_prod !card_ord.
have lt0k : (0 < p1 * p2 * #|C|)%N.
  by rewrite !muln_gt0 lt0p1 lt0p2; apply/card_gt0P; exists i0.
have independent : family_rank (fun st (d : {d | d != centre_offset m n}) =>
    flattened_kernel p1 p2 m n r1 r2 (triangular_kernel i0 i1 r1 r2 w1 w2) st (val d)) = #|token_offset m n|.-1.
  have card_others : #|[finType of {d : token_offset m n | d != centre_offset m n}]| = #|token_offset m n|.-1.
    by rewrite card_sig (eq_card (B := predC1 (centre_offset m n))) ?cardC1.
  apply/eqP; rewrite eqn_leq -card_others rank_leq_col /=.
  apply: (family_rank_minor
    (L := fun (d : {d | d != centre_offset m n}) r => L1 (val d).1 r.1 * L2 (val d).2 r.2)
    (pick := fun r => ((line_key ltm r.1, line_key ltn r.2, i0), (line_query ltm r.1, line_query ltn r.2, i1)))
    (choose := id)) => d d'.
  rewrite -(inj_eq val_inj) -(left_inverse_product inverse1 inverse2 (val d) (val d')).
  apply: eq_bigr => r _; congr (_ * _); rewrite triangular_entry.
  rewrite (_ : _ && _ = false) ?add0r; last first.
    by apply/negbTE; rewrite negb_and; apply/orP; right; apply: contraNneq differ => -[_ _ ->].
  by rewrite flattened_product; congr (_ * _); congr axis_entry; rewrite /= subnn addn0.
have pattern := headdim_pattern (patch_reach_suffices r1 lt0p1) (patch_reach_suffices r2 lt0p2)
  large1 large2 lt0 lt0k independent _ equal.
rewrite -number; have [c|first second] := pattern.
  by rewrite triangular_full // size.
by split=> // nz wide; apply: second => //; case/orP: wide; [left | right; left].
Qed.
