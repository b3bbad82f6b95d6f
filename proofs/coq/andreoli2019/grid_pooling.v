(** A19.grid: average pooling is a convolution, of size 1 or of the size of the window.

    A window is a finite family of different taps t_k, and its mean at an output is the mean of the
    inputs at the places n + t_k, zero outside the grid. Let there be outputs at any places, for
    instance every s-th node. Pooling with that window is the convolution of size 1 with Θ = I and the
    one matrix that has 1/|w| at the nodes of the window of n; and it is the convolution with the
    shifts -t_k and Θ_k = I/|w|. Over every field, on grids of any number of axes. (Where |w| is zero in
    the field, 1/|w| is zero, and the mean with it.) *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention structure shifts.
From Convattn.andreoli2019 Require Import grid.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Section Pooling.

Variables (F : fieldType) (Axis P Tap : finType) (S : Axis -> nat) (N : Type).
Variables (at_ : N -> shift Axis) (tap : Tap -> shift Axis).

(** The mean over the window, zero padded. *)
Definition average_pooling (x : node S -> P -> F) (n : N) (p : P) : F :=
  (\sum_k zero_padded x (at_ n + tap k) p) / #|Tap|%:R.

(** 1/|w| at the nodes of the window. *)
Definition window_matrix (m : node S) (n : N) : F :=
  if [exists k, position m == at_ n + tap k] then #|Tap|%:R^-1 else 0.

(** The identity as a parameter, with a factor. *)
Definition scaled_identity (c : F) (p q : P) : F := if p == q then c else 0.

Lemma feature_map_identity (c : F) (x : P -> F) q : feature_map (scaled_identity c) x q = x q * c.
Proof.
rewrite /feature_map (bigD1 q) //= /scaled_identity eqxx big1 ?addr0 // => p /negbTE ->.
exact: mulr0.
Qed.

(** The window's matrix is the sum of its shifts. *)
Lemma window_as_shifts (m : node S) (n : N) : injective tap ->
  window_matrix m n = \sum_k placed_shift_matrix F at_ (- tap k) m n * #|Tap|%:R^-1.
Proof.
move=> inj; have test k : (at_ n - position m == - tap k) = (position m == at_ n + tap k).
  by rewrite -eqr_opp opprB opprK subr_eq addrC.
rewrite /window_matrix /placed_shift_matrix; case: existsP => [[k e] | none]; last first.
  rewrite big1 // => k _; rewrite test; case: eqP => [e|_]; last by rewrite mul0r.
  by case: none; exists k; apply/eqP.
rewrite (bigD1 k) //= test e mul1r big1 ?addr0 // => l nl.
by rewrite test (eqP e) (inj_eq (addrI _)) (inj_eq inj) eq_sym (negbTE nl) mul0r.
Qed.

End Pooling.

Theorem grid_pooling (F : fieldType) (Axis P Tap : finType) (S : Axis -> nat) (N : Type)
    (at_ : N -> shift Axis) (tap : Tap -> shift Axis) (x : node S -> P -> F) n p :
  injective tap ->
  structured_convolution (fun _ : unit => window_matrix F at_ tap) (fun _ => scaled_identity 1) x n p =
    average_pooling at_ tap x n p /\
  structured_convolution (fun k => placed_shift_matrix F at_ (- tap k))
      (fun _ => scaled_identity #|Tap|%:R^-1) x n p =
    average_pooling at_ tap x n p.
Proof.
move=> inj; have shifts : structured_convolution (fun k => placed_shift_matrix F at_ (- tap k))
    (fun _ => scaled_identity #|Tap|%:R^-1) x n p = average_pooling at_ tap x n p.
  rewrite /average_pooling big_distrl; apply: eq_bigr => k _ /=.
  by rewrite feature_map_identity attend_placed opprK.
split=> //; rewrite -shifts /structured_convolution /attention_layer.
rewrite (bigD1 tt) //= [X in _ + X]big1 ?addr0 => [|[] //].
rewrite feature_map_identity mulr1 /attend; under [RHS]eq_bigr do rewrite feature_map_identity big_distrl.
rewrite [RHS]exchange_big; apply: eq_bigr => m _ /=; rewrite window_as_shifts // big_distrl.
by apply: eq_bigr => k _ /=; rewrite mulrAC.
Qed.
