(** One axis of a certificate of equality: its offsets, its ring and its pattern, decided by trial.

    The offsets must be increasing; for each pixel and tap there must be one whose token holds the
    pixel that is read, and each must be read by some pixel and tap; the ring must reach all of them.
    So they are the offsets of the axis. The pattern must name, between each two pixels, the tap that
    stands between them, found by trying all. *)

From Coq Require Import BinInt.
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ssrZ zify.
From Convattn.foundation Require Import dilated framed listed_integers.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** [axis_step]: only every so many output pixels of a patch are computed. *)
Record axis_body := AxisBody {
  axis_kernel : nat; axis_patch : nat; axis_dilation : nat; axis_step : nat;
  axis_low : nat; axis_high : nat;
  axis_shifts : seq Z;
  axis_pattern : seq (seq (seq Z)) }.

Lemma same_listed (T : Type) (r : T -> T -> bool) :
  (forall x y, r x y -> x = y) -> forall s s', all2 r s s' -> s = s'.
Proof.
by move=> same; elim=> [|x s IH] [|y s'] //= /andP[/same -> /IH ->].
Qed.

Lemma same_nested s s' : all2 (all2 (all2 Z.eqb)) s s' -> s = s'.
Proof. by do 3 apply: same_listed; move=> x y /Z.eqb_spec. Qed.

Section Axis.

Variable a : axis_body.
Let K := axis_kernel a.
Let P := axis_patch a.
Let d := axis_dilation a.

(** The token at the shift z holds the pixel that pixel t reads through tap i. *)
Definition token_holds (z : Z) (t i : nat) : bool :=
  let s := Z.sub (Z.add (Z.of_nat t) (tap_distance K d i)) (Z.mul (Z.of_nat P) z) in
  Z.leb Z0 s && Z.ltb s (Z.of_nat P).

(** The tap between pixel s of the token at the shift z and output pixel t, or -1. *)
Definition tap_between (z : Z) (s t : nat) : Z :=
  if [seq i <- iota 0 K | tap_joins P K d z s t i] is i :: _ then Z.of_nat i else Zneg xH.

Definition listed_pattern : seq (seq (seq Z)) :=
  [seq [seq [seq tap_between z s (m * axis_step a) | s <- iota 0 P]
     | m <- iota 0 (P %/ axis_step a)] | z <- axis_shifts a].

Definition axis_accept : bool :=
  [&& (0 < P)%N, (0 < d)%N, sorted Z.ltb (axis_shifts a),
      all (fun t => all (fun i => has (fun z => token_holds z t i) (axis_shifts a)) (iota 0 K)) (iota 0 P),
      all (fun z => has (fun t => has (token_holds z t) (iota 0 K)) (iota 0 P)) (axis_shifts a),
      all (fun z => Z.leb (Z.opp (Z.of_nat (axis_low a))) z && Z.leb z (Z.of_nat (axis_high a)))
        (axis_shifts a) &
      all2 (all2 (all2 Z.eqb)) (axis_pattern a) listed_pattern].

Hypothesis accepted : axis_accept.

Lemma patch_positive : (0 < P)%N.
Proof. by case/and3P: accepted. Qed.

Lemma token_holdsE z t i :
  token_holds z t i = (int_of_Z z == ((t%:Z + tap_shift K d i) %/ P%:Z)%Z).
Proof.
have P0 := patch_positive; rewrite /token_holds -tap_distanceE.
rewrite int_of_Z_le int_of_Z_lt !int_of_ZB int_of_ZD int_of_ZM !int_of_Z_nat.
move: (t%:Z + _) (int_of_Z z) => y w; have P_nz : P%:Z != 0 by lia.
have := modz_ge0 y P_nz; have := ltz_mod y P_nz; have := divz_eq y P%:Z.
move: (y %/ P)%Z (y %% P)%Z => q r -> lt ge; rewrite mulrC.
apply/andP/eqP => [[le_y y_lt]|->]; last by lia.
have [lt_wq|lt_qw|//] := ltgtP w q; nia.
Qed.

Definition axis_integers : seq int := [seq int_of_Z z | z <- axis_shifts a].

Lemma axis_integers_uniq : uniq axis_integers.
Proof.
case/and4P: accepted => _ _ incr _; rewrite map_inj_uniq; last exact: int_of_Z_inj.
by apply: sorted_uniq incr => [x y z|x]; lia.
Qed.

Lemma axis_integersE : axis_integers =i axis_offsets P K d.
Proof.
case/and5P: accepted => _ _ _ /allP complete /andP[/allP needed _] z; rewrite mem_undup.
apply/mapP/allpairsP => [[x in_x ->]|[[t i] /= [in_t in_i ->]]].
  have /hasP[t in_t /hasP[i in_i]] := needed _ in_x.
  by rewrite token_holdsE => /eqP ->; exists (t, i).
have /allP /(_ _ in_i) /hasP[x in_x] := complete _ in_t.
by rewrite token_holdsE => /eqP <-; exists x.
Qed.

Lemma axis_ring : ring_reaches (axis_low a) (axis_high a) (axis_offsets P K d).
Proof.
case/and5P: accepted => _ _ _ _ /and3P[_ ring _].
rewrite /ring_reaches -(eq_all_r axis_integersE) all_map; apply: sub_all ring => z /=.
lia.
Qed.

(** The pattern names the tap that joins two pixels. *)
Lemma axis_patternE n m s i :
  (n < size (axis_shifts a))%N -> (m < P %/ axis_step a)%N -> (s < P)%N -> (i < K)%N ->
  (nth Z0 (nth [::] (nth [::] (axis_pattern a) n) m) s == Z.of_nat i) =
    joins P K d (nth 0 axis_integers n) s (m * axis_step a) i.
Proof.
case/and5P: accepted => _ lt0d _ _ /and3P[_ _ /same_nested ->] ltn ltm lts lti.
rewrite /listed_pattern (nth_map Z0) // (nth_map 0%N) ?size_iota // (nth_map 0%N) ?size_iota //.
rewrite !nth_iota // !add0n /axis_integers (nth_map Z0) //.
set z := nth _ _ _; rewrite -tap_joinsE /tap_between.
case e: [seq _ <- _ | _] => [|i' rest]; last first.
  have : i' \in i' :: rest by rewrite mem_head.
  rewrite -e mem_filter => /andP[join' _]; apply/eqP/idP => [e_i|join].
    by have <- : i' = i by lia.
  by move: join join'; rewrite !tap_joinsE => join join'; rewrite (one_tap_at_offset lt0d join join').
have : i \notin [seq i <- iota 0 K | tap_joins P K d z s (m * axis_step a) i] by rewrite e.
rewrite mem_filter mem_iota /= add0n lti andbT => /negbTE ->.
by apply/negbTE/eqP; lia.
Qed.

End Axis.
