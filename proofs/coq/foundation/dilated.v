(** Convolution with any kernel size and dilation, and its maps between tokens.

    Kernels have any sizes, odd or even: the taps of an axis of K are the integers
    -⌊(K-1)/2⌋ … ⌊K/2⌋, counted from 0, and tap t reads the pixel t·d further on, d the dilation.
    Shifts between tokens are integers, key minus query, and F_δ is the map that the convolution
    puts between the token at q + δ and the token at q: it has the tap t between the pixels s and p
    where P·δ + s - p = t·d. Outputs at the pixels 0, s, 2s, … alone, as with a stride, are some of
    the outputs here. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import zify.
From Convattn.foundation Require Import attention image patches.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

(** How far on the tap of the index [i] reads. *)
Definition tap_shift (K d i : nat) : int := (i%:Z - (K.-1 %/ 2)%N%:Z) * d%:Z.

(** The tap [i] stands between pixel [s] of the token at the shift [z] and pixel [t]. *)
Definition joins (P K d : nat) (z : int) (s t i : nat) : bool :=
  P%:Z * z + s%:Z - t%:Z == tap_shift K d i.

(** The token offsets of an axis, ⌊(p + t·d)/P⌋ over its pixels p and taps t, each once. *)
Definition axis_offsets (P K d : nat) : seq int :=
  undup [seq ((t%:Z + tap_shift K d i) %/ P%:Z)%Z | t <- iota 0 P, i <- iota 0 K].

(** The image, and zero outside it. *)
Definition zero_outside (F : fieldType) (Channel : Type) (height width : nat)
    (X : image_type F Channel) (y x : int) (c : Channel) : F :=
  if (0 <= y < height%:Z) && (0 <= x < width%:Z) then X `|y|%N `|x|%N c else 0.

(** The zero-padded convolution at the pixel (y, x), from its definition. *)
Definition dilated_convolution (F : fieldType) (In : finType) (Out : Type)
    (height width K1 K2 d1 d2 : nat) (W : nat -> nat -> In -> Out -> F)
    (X : image_type F In) (y x : nat) (o : Out) : F :=
  \sum_(i < K1) \sum_(j < K2) \sum_c
    zero_outside height width X (y%:Z + tap_shift K1 d1 i) (x%:Z + tap_shift K2 d2 j) c
      * W i j c o.

(** F_δ: the convolution's map between two tokens at the shift (z₁, z₂). *)
Definition offset_map (R : ringType) (In Out : finType) (p1 p2 K1 K2 d1 d2 : nat)
    (W : nat -> nat -> In -> Out -> R) (z1 z2 : int)
    (s : patch_feature p1 p2 In) (t : patch_feature p1 p2 Out) : R :=
  \sum_(i < K1) \sum_(j < K2)
    if joins p1 K1 d1 z1 s.1.1 t.1.1 i && joins p2 K2 d2 z2 s.1.2 t.1.2 j
    then W i j s.2 t.2 else 0.

(** The token whose first pixel is (y, x). *)
Definition token_at (F : fieldType) (Channel : finType) (height width p1 p2 : nat)
    (X : image_type F Channel) (y x : int) (s : patch_feature p1 p2 Channel) : F :=
  zero_outside height width X (y + s.1.1%:Z) (x + s.1.2%:Z) s.2.

Lemma mem_axis_offsets (P K d t i : nat) : (t < P)%N -> (i < K)%N ->
  ((t%:Z + tap_shift K d i) %/ P%:Z)%Z \in axis_offsets P K d.
Proof.
move=> ltP ltK; rewrite mem_undup.
by apply/allpairsP; exists (t, i); rewrite !mem_iota.
Qed.

(** At one offset two pixels are joined by one tap at most. *)
Lemma one_tap_at_offset (P K d : nat) (z : int) (s t i i' : nat) : (0 < d)%N ->
  joins P K d z s t i -> joins P K d z s t i' -> i = i'.
Proof.
rewrite /joins => lt0d /eqP -> /eqP/mulIf e; have d0 : d%:Z != 0 by case: d lt0d {e}.
by have := e d0; lia.
Qed.

Section Axis.

Variable F : fieldType.

(** Some tokens [e], at the shift [z e] from the query [q] and with the first pixel [at_ e], hold
    all pixels inside that a tap reads from the query. *)
Definition holds_reads (D : finType) (z at_ : D -> int) (inside : int -> bool) (P K d q : nat) :=
  forall (t i : nat) (g : int -> F), (t < P)%N -> (i < K)%N ->
    (forall a, ~~ inside a -> g a = 0) ->
    \sum_e \sum_(s < P) (if joins P K d (z e) s t i then g (at_ e + s%:Z) else 0) =
      g ((P * q + t)%N%:Z + tap_shift K d i).

(** So do the tokens at the offsets. *)
Lemma offsets_hold_reads (P K d q : nat) :
  @holds_reads [finType of seq_sub (axis_offsets P K d)] val (fun e => P%:Z * (q%:Z + val e))
    xpredT P K d q.
Proof.
move=> t i g ltP ltK _; have P0 : P%:Z != 0 by case: P ltP.
set w := t%:Z + tap_shift K d i.
have lt_s : (`|w %% P%:Z|%Z < P)%N.
  by have := ltz_mod w P0; have := modz_ge0 w P0; lia.
pose e0 := SeqSub (mem_axis_offsets d ltP ltK); pose s0 := Ordinal lt_s.
have eq_w := divz_eq w P%:Z; have ge0 := modz_ge0 w P0.
have hit : P%:Z * val e0 + (s0 : nat)%:Z = w.
  by rewrite [RHS]eq_w /= gez0_abs // mulrC.
rewrite (bigD1 e0) //= [X in _ + X]big1 ?addr0 => [|e ne]; last first.
  apply: big1 => s _; case: ifP => // /eqP join; case/negP: ne; apply/eqP/val_inj => /=.
  have -> : t%:Z + tap_shift K d i = val e * P%:Z + s%:Z by rewrite -join addrC subrK mulrC.
  rewrite divzMDl // divz_small ?addr0 //; apply/andP; split => //.
  by rewrite ltz_nat; exact: (leq_trans (ltn_ord s)).
rewrite (bigD1 s0) //= [X in _ + X]big1 ?addr0 => [|s ne]; last first.
  case: ifP => // /eqP join; case/negP: ne; apply/eqP/val_inj => /=.
  by move: hit join; rewrite /w /=; lia.
rewrite /joins; move: hit; rewrite /w /= => hit; case: eqP => [_|]; last by lia.
by congr g; lia.
Qed.

(** So do the tokens of the image, without a ring. *)
Lemma grid_holds_reads (n P K d q : nat) :
  @holds_reads [finType of 'I_n] (fun k => k%:Z - q%:Z) (fun k => (P * k)%N%:Z)
    (fun a => 0 <= a < (P * n)%N%:Z) P K d q.
Proof.
move=> t i g ltP ltK outside; set w := _ + tap_shift K d i.
transitivity (\sum_(a < P * n) (if a%:Z == w then g a%:Z else 0)).
  rewrite -(sum_blocks n P (fun a => if a%:Z == w then g a%:Z else 0)).
  apply: eq_bigr => k _; apply: eq_bigr => s _; rewrite /joins PoszD.
  suff -> : (P%:Z * ((k : nat)%:Z - q%:Z) + s%:Z - t%:Z == tap_shift K d i) =
            ((P * k)%N%:Z + s%:Z == w) by [].
  by rewrite /w PoszD !PoszM mulrBr; apply/eqP/eqP; lia.
have [in_w|out] := boolP (0 <= w < (P * n)%N%:Z); last first.
  rewrite outside // big1 // => a _; case: eqP => // eq_a; case/negP: out.
  by rewrite -eq_a ltz_nat ltn_ord.
have lt_w : (`|w| < P * n)%N by lia.
rewrite (bigD1 (Ordinal lt_w)) //= big1 ?addr0 => [|a /eqP ne]; last first.
  by case: eqP => // eq_a; case: ne; apply: val_inj => /=; lia.
by case: eqP => [->|] //; lia.
Qed.

End Axis.

Section TwoAxes.

Variables (F : fieldType) (In Out : finType) (p1 p2 K1 K2 d1 d2 : nat).

(** Sums over tokens of two axes and their features, one by one. *)
Lemma sum_tokens (D1 D2 : finType) (f : D1 -> D2 -> 'I_p1 -> 'I_p2 -> In -> F) :
  \sum_(e : D1 * D2) \sum_(s : patch_feature p1 p2 In) f e.1 e.2 s.1.1 s.1.2 s.2 =
  \sum_c \sum_e1 \sum_s1 \sum_e2 \sum_s2 f e1 e2 s1 s2 c.
Proof.
rewrite -(pair_bigA _ (fun e1 e2 => \sum_(s : patch_feature p1 p2 In)
  f e1 e2 s.1.1 s.1.2 s.2)) /= [RHS]exchange_big; apply: eq_bigr => e1 _ /=.
transitivity (\sum_e2 \sum_s1 \sum_s2 \sum_c f e1 e2 s1 s2 c).
  apply: eq_bigr => e2 _.
  rewrite -(pair_bigA _ (fun s c => f e1 e2 s.1 s.2 c)) /=.
  by rewrite -(pair_bigA _ (fun s1 s2 => \sum_c f e1 e2 s1 s2 c)).
rewrite exchange_big [RHS]exchange_big; apply: eq_bigr => s1 _ /=.
rewrite [RHS]exchange_big; apply: eq_bigr => e2 _ /=.
by rewrite [RHS]exchange_big.
Qed.

(** Tokens that hold all reads make up the convolution: Σ_e X_e F_(z e). *)
Lemma convolution_by_tokens (D1 D2 : finType) (z1 at1 : D1 -> int) (z2 at2 : D2 -> int)
    (inside1 inside2 : int -> bool) (height width : nat) (q1 q2 : nat)
    (W : nat -> nat -> In -> Out -> F) (X : image_type F In) (t : patch_feature p1 p2 Out) :
  holds_reads F z1 at1 inside1 p1 K1 d1 q1 ->
  holds_reads F z2 at2 inside2 p2 K2 d2 q2 ->
  (forall a, ~~ inside1 a -> ~~ (0 <= a < height%:Z)) ->
  (forall a, ~~ inside2 a -> ~~ (0 <= a < width%:Z)) ->
  \sum_(e : D1 * D2)
      feature_map (offset_map K1 K2 d1 d2 W (z1 e.1) (z2 e.2))
        (token_at height width X (at1 e.1) (at2 e.2)) t =
    dilated_convolution height width K1 K2 d1 d2 W X
      (p1 * q1 + t.1.1)%N (p2 * q2 + t.1.2)%N t.2.
Proof.
move=> reads1 reads2 out1 out2; pose Z := zero_outside height width X.
pose f (i : 'I_K1) (j : 'I_K2) e1 e2 (s1 : 'I_p1) (s2 : 'I_p2) c :=
  if joins p1 K1 d1 (z1 e1) s1 t.1.1 i then
    if joins p2 K2 d2 (z2 e2) s2 t.1.2 j then
      Z (at1 e1 + (s1 : nat)%:Z) (at2 e2 + (s2 : nat)%:Z) c * W i j c t.2 else 0 else 0.
transitivity (\sum_i \sum_j \sum_(e : D1 * D2) \sum_(s : patch_feature p1 p2 In)
    f i j e.1 e.2 s.1.1 s.1.2 s.2).
  under [RHS]eq_bigr do rewrite exchange_big.
  rewrite [RHS]exchange_big; apply: eq_bigr => e _ /=.
  under [RHS]eq_bigr do rewrite exchange_big.
  rewrite [RHS]exchange_big; apply: eq_bigr => s _ /=.
  rewrite /offset_map big_distrr; apply: eq_bigr => i _ /=.
  rewrite big_distrr; apply: eq_bigr => j _ /=; rewrite /f.
  by case: (joins p1 _ _ _ _ _ _) => /=; last rewrite mulr0 //; case: ifP => _; rewrite ?mulr0.
rewrite /dilated_convolution; apply: eq_bigr => i _; apply: eq_bigr => j _.
rewrite sum_tokens; apply: eq_bigr => c _.
pose g2 y x := Z y x c * W i j c t.2.
pose g1 y := \sum_e2 \sum_(s2 < p2)
  (if joins p2 K2 d2 (z2 e2) s2 t.1.2 j then g2 y (at2 e2 + (s2 : nat)%:Z) else 0).
have g1E y : g1 y = g2 y ((p2 * q2 + t.1.2)%N%:Z + tap_shift K2 d2 j).
  apply: (reads2 _ _ (g2 y)) => // a /out2/negbTE out.
  by rewrite /g2 /Z /zero_outside out andbF mul0r.
transitivity (\sum_e1 \sum_(s1 < p1)
    (if joins p1 K1 d1 (z1 e1) s1 t.1.1 i then g1 (at1 e1 + (s1 : nat)%:Z) else 0)).
  apply: eq_bigr => e1 _; apply: eq_bigr => s1 _; rewrite /f /g1; case: ifP => // _.
  by rewrite big1 // => e2 _; rewrite big1.
rewrite (reads1 _ _ g1) // => [|a /out1/negbTE out]; first by rewrite g1E.
by rewrite g1E /g2 /Z /zero_outside out mul0r.
Qed.

End TwoAxes.

(** An odd kernel without dilation: the convolution of [image.v]. *)
Lemma dilated_convolution_odd (F : fieldType) (In : finType) (Out : Type) (height width r1 r2 : nat)
    (W : nat -> nat -> In -> Out -> F) (X : image_type F In) (y x : nat) (o : Out) :
  dilated_convolution height width r1.*2.+1 r2.*2.+1 1 1 W X y x o =
    convolution height width r1 r2 W X y x o.
Proof.
have shift (r i a : nat) : a%:Z + tap_shift r.*2.+1 1 i = (a + i)%N%:Z - r%:Z.
  by rewrite /tap_shift /= divn2 doubleK; lia.
apply: eq_bigr => i _; apply: eq_bigr => j _; apply: eq_bigr => c _; congr (_ * _).
rewrite !shift /zero_outside /zero_framed.
case: ifP => inside; case: ifP => framed //; try by exfalso; lia.
by congr X; lia.
Qed.
