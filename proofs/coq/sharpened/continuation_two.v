(** S.continuation: two heads whose scores differ by F waves are exact on no m + 2F + 2 keys.

    Two heads give the key k the weights z_h E(s_h(k)), where z_h does not depend on the key, and s_1(k) - s_0(k)
    is a constant and F waves, sequences with x(k + 2) + x(k) = 2 c x(k + 1), as a cos(ω k) + b sin(ω k) is
    with c = cos ω. On N ≥ m + 2F + 2 keys no value maps and no z_h make the heads what a kernel on the keys
    0, …, m makes of all tokens, unless the kernel is zero there. With F = (p - 1)/2 waves of period p they do
    on p keys for m = 0, which is not covered here. The exponential E is positive, takes sums to products and
    is 1 at 0 alone, as the real one is. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring zify.
From Convattn.foundation Require Import attention exponential.
From Convattn.sharpened Require Import continuation.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** A multiple of a cosine and a sine of multiples of one angle. *)
Definition wave (R : ringType) (c : R) (x : nat -> R) : Prop :=
  forall k, x k.+2 + x k = c *+ 2 * x k.+1.

Section Zeros.

Variable R : comRingType.

Definition with_waves (F : nat) (e : R) (x : nat -> nat -> R) (k : nat) : R := e + \sum_(j < F) x j k.

(** Two zeros in a row of one wave, and it is zero. *)
Lemma wave_zero (c : R) (x : nat -> R) s : wave c x -> x s = 0 -> x s.+1 = 0 -> forall k, x k = 0.
Proof.
move=> is_wave; elim: s => [|s IH] zero next; last first.
  apply: IH => //; have := is_wave s; by rewrite next zero add0r mulr0.
move=> k; suff [] : x k = 0 /\ x k.+1 = 0 by [].
elim: k => [//|k [zero_k next_k]]; split=> //.
by have := is_wave k; rewrite zero_k next_k addr0 mulr0.
Qed.

(** A constant and F waves have no 2F + 1 zeros in a row, unless they are zero. *)
Lemma waves_zero F (c : nat -> R) (e : R) (x : nat -> nat -> R) s :
  (forall j, (j < F)%N -> wave (c j) (x j)) ->
  (forall i, (i < F.*2.+1)%N -> with_waves F e x (s + i) = 0) -> forall k, with_waves F e x k = 0.
Proof.
elim: F e x s => [|F IH] e x s waves zeros k.
  by have := zeros 0%N isT; rewrite /with_waves !big_ord0.
pose d := with_waves F.+1 e x; pose y j l := (c j *+ 2 - c F *+ 2) * x j l.+1.
have step l : d l.+2 + d l - c F *+ 2 * d l.+1 = with_waves F (e *+ 2 - c F *+ 2 * e) y l.
  rewrite /d /with_waves !big_ord_recr /=; have := waves F (ltnSn F) l.
  set S2 := \sum_(j < F) x j l.+2; set S1 := \sum_(j < F) x j l.+1; set S0 := \sum_(j < F) x j l => last.
  have -> : \sum_(j < F) y j l = S2 + S0 - c F *+ 2 * S1.
    rewrite /S2 /S0 /S1 -big_split mulr_sumr -sumrB /=; apply: eq_bigr => j _.
    by rewrite (waves j (leqW (ltn_ord j)) l) /y mulrBl.
  have -> : x F l.+2 = c F *+ 2 * x F l.+1 - x F l by rewrite -last addrK.
  by ring.
have is_wave : wave (c F) d.
  move=> l; apply/eqP; rewrite -subr_eq0; apply/eqP; rewrite step.
  apply: (IH _ y s) => [j lt l'|i lt].
    have := waves j (leqW lt) l'.+1; rewrite /y => /(congr1 (fun v => (c j *+ 2 - c F *+ 2) * v)) eq.
    by rewrite -mulrDr eq; ring.
  rewrite -step /d -!addnS !zeros ?mulr0 ?addr0 ?subr0 //; lia.
apply: (wave_zero (s := s) is_wave); first by have := zeros 0%N isT; rewrite addn0.
by have := zeros 1%N isT; rewrite addn1.
Qed.

End Zeros.

Theorem continuation_two (R : numFieldType) (E : R -> R) (s : bool -> nat -> R) (m F N : nat)
    (c : nat -> R) (e : R) (x : nat -> nat -> R) (In Out : finType) (z : bool -> R)
    (V : bool -> In -> Out -> R) (K : 'I_N -> In -> Out -> R) :
  (forall a, E a != 0) -> (forall a b, E (a + b) = E a * E b) -> (forall a, E a = 1 -> a = 0) ->
  (forall j, (j < F)%N -> wave (c j) (x j)) -> (forall k, s true k - s false k = with_waves F e x k) ->
  (m + F.*2.+2 <= N)%N -> makes_kernel m (fun h k => E (s h k)) z V K -> forall k i o, K k i o = 0.
Proof.
move=> nz sums only waves differ large [outside equal] k i o.
pose w h := z h * V h i o.
have entry (l : 'I_N) : w true * E (s true l) + w false * E (s false l) = K l i o.
  have [+ _] := layer_coefficients (fun h (_ : unit) (k : 'I_N) => z h * E (s h k)) V K tt o.
  move=> /(_ (fun X => equal X o)) /(_ l i) <-; rewrite big_bool /=.
  by rewrite /w ![z _ * V _ _ _ * _]mulrAC.
have far l : (m < l)%N -> (l < N)%N -> w true * E (s true l) + w false * E (s false l) = 0.
  by move=> lt ltN; rewrite (entry (Ordinal ltN)) outside.
have E0 : E 0 = 1 by apply: (mulfI (nz 0)); rewrite -sums addr0 mulr1.
have split_true l : E (s true l) = E (with_waves F e x l) * E (s false l).
  by rewrite -sums -differ subrK.
have [w0 | w_nz] := eqVneq (w true) 0.
  have ltN : (m.+1 < N)%N by lia.
  have := far m.+1 (ltnSn m) ltN; rewrite -entry w0 !mul0r !add0r => /eqP.
  by rewrite mulf_eq0 (negbTE (nz _)) orbF => /eqP ->; rewrite mul0r.
pose e' := e - with_waves F e x m.+1.
have shifted l : with_waves F e' x l = with_waves F e x l - with_waves F e x m.+1.
  by rewrite /e' /with_waves addrAC.
have ratio l : (m < l)%N -> (l < N)%N -> w true * E (with_waves F e x l) = - w false.
  move=> lt ltN; apply: (mulIf (nz (s false l))); apply/eqP; rewrite -subr_eq0 mulNr opprK -mulrA.
  by rewrite -split_true far.
have zero : forall l, with_waves F e' x l = 0.
  apply: (waves_zero (s := m.+1) waves) => l lt; apply: only; rewrite shifted sums.
  have [lt1 lt2] : (m.+1 < N)%N /\ (m.+1 + l < N)%N by lia.
  have same : E (with_waves F e x (m.+1 + l)) = E (with_waves F e x m.+1).
    by apply: (mulfI w_nz); rewrite !ratio ?leq_addr.
  by rewrite same -sums addrN.
have ltN : (m.+1 < N)%N by lia.
rewrite -entry split_true mulrA.
have -> : with_waves F e x k = with_waves F e x m.+1.
  by apply/eqP; rewrite -subr_eq0 -shifted zero.
by rewrite (ratio _ (ltnSn m) ltN) mulNr addNr.
Qed.
