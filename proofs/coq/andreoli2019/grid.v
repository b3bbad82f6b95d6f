(** A19.grid (as amended): the shifts of a cuboid are the kernels of convolutional networks.

    On a bare grid of any number of axes, take the shifts of eq. 6, Δ_ki = ε_i + (k_i + 1) δ_i with
    k_i from 0 to K_i - 1 (the paper counts from 1), for any integers ε_i and δ_i. The convolution
    with these shifts and the parameter Θ is the zero-padded convolution, as networks compute it,

      y_n = Σ_k x(n + t_k) W_k,   t_ki = o_i + k_i |δ_i|,

    whose dilation on axis i is |δ_i|, whose first tap o_i is -(ε_i + δ_i) if δ_i ≤ 0 and
    -(ε_i + K_i δ_i) if δ_i > 0, and whose kernel W is Θ, turned around on the axes with δ_i > 0. So δ_i
    is a dilation, not a stride. Outputs may be taken at any places, at the nodes (then the basis
    consists of shift matrices) as well as at every s-th node, which is a stride, or outside the
    grid. An axis of K_i = 2r + 1 has its taps centred, o_i = -r |δ_i|, if ε_i = -(r + 1) δ_i. Over every
    field, for all channels. Pooling is no part of this. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import zify ring.
From Convattn.foundation Require Import attention structure shifts.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Definitions.

Variables (F : fieldType) (Axis P : finType) (S : Axis -> nat).

Definition position (m : node S) : shift Axis := [ffun i => (m i)%:Z].

(** The input at an integer place: zero outside the grid. *)
Definition zero_padded (x : node S -> P -> F) (z : shift Axis) (p : P) : F :=
  if [pick m | position m == z] is Some m then x m p else 0.

(** The convolution of a network: [first] taps, a dilation for each axis, the kernel W. *)
Definition network_convolution (Q : Type) (K : Axis -> nat) (first : Axis -> int)
    (dilation : Axis -> nat) (W : node K -> P -> Q -> F) (x : node S -> P -> F)
    (z : shift Axis) (q : Q) : F :=
  \sum_(k : node K) \sum_p
    zero_padded x (z + [ffun i => first i + (k i)%:Z * (dilation i)%:Z]) p * W k p q.

(** Eq. 6, with k counted from 0. *)
Definition cuboid_shift (K : Axis -> nat) (epsilon delta : Axis -> int) (k : node K) : shift Axis :=
  [ffun i => epsilon i + (k i).+1%:Z * delta i].

(** The matrix of the shift d, from the nodes to outputs at the places [at_]. *)
Definition placed_shift_matrix (N : Type) (at_ : N -> shift Axis) (d : shift Axis)
    (m : node S) (n : N) : F :=
  (at_ n - position m == d)%:R.

Definition first_tap (K : Axis -> nat) (epsilon delta : Axis -> int) (i : Axis) : int :=
  if 0 < delta i then - (epsilon i + (K i)%:Z * delta i) else - (epsilon i + delta i).

(** Turned around on the axes where the shifts ascend. *)
Definition turned (K : Axis -> nat) (delta : Axis -> int) (k : node K) : node K :=
  [ffun i => if 0 < delta i then rev_ord (k i) else k i].

End Definitions.

Section Cuboids.

Variables (F : fieldType) (Axis P : finType) (S : Axis -> nat).

Lemma position_inj : injective (@position Axis S).
Proof. by move=> m n /ffunP e; apply: eq_node => i; have := e i; rewrite !ffunE => -[]. Qed.

Lemma turnedK (K : Axis -> nat) (delta : Axis -> int) : involutive (@turned Axis K delta).
Proof. by move=> k; apply/ffunP => i; rewrite !ffunE; case: (0 < delta i); rewrite ?rev_ordK. Qed.

(** A shift matrix reads the place from which it leads, or zero. *)
Lemma attend_placed (N : Type) (at_ : N -> shift Axis) (d : shift Axis) (x : node S -> P -> F) n p :
  attend (fun m => placed_shift_matrix F at_ d m n) x p = zero_padded x (at_ n - d) p.
Proof.
have test m : (at_ n - position m == d) = (position m == at_ n - d).
  by rewrite subr_eq addrC -subr_eq eq_sym.
rewrite /attend /zero_padded; case: pickP => [m0 /eqP e | none].
  rewrite (bigD1 m0) //= /placed_shift_matrix test e eqxx mul1r big1 ?addr0 // => m nm.
  by rewrite test -e (inj_eq position_inj) (negbTE nm) mul0r.
by rewrite big1 // => m _; rewrite /placed_shift_matrix test none mul0r.
Qed.

(** The taps are the shifts, with the other sign, turned where they ascend. *)
Lemma tap_of_shift (K : Axis -> nat) (epsilon delta : Axis -> int) (k : node K) :
  - cuboid_shift epsilon delta (turned delta k) =
    [ffun i => first_tap K epsilon delta i + (k i)%:Z * `|delta i|%N%:Z].
Proof.
apply/ffunP => i; rewrite !ffunE /first_tap; case: ifP => [lt|nlt] /=.
  by rewrite gtz0_abs // -[(K i - (k i).+1).+1]subSn // subSS -subzn; [ring | exact: ltnW].
by rewrite lez0_abs; [ring | rewrite leNgt nlt].
Qed.

End Cuboids.

Theorem grid (F : fieldType) (Axis P : finType) (Q : Type) (S K : Axis -> nat)
    (epsilon delta : Axis -> int) (Theta : node K -> P -> Q -> F) :
  [/\ forall (N : Type) (at_ : N -> shift Axis) (x : node S -> P -> F) n q,
        structured_convolution (fun k => placed_shift_matrix F at_ (cuboid_shift epsilon delta k))
            Theta x n q =
          network_convolution (first_tap K epsilon delta) (fun i => `|delta i|%N)
            (fun k => Theta (turned delta k)) x (at_ n) q,
      forall d (m n : node S), placed_shift_matrix F (@position _ S) d m n = shift_matrix F d m n &
      forall i r, K i = r.*2.+1 -> epsilon i = - (r.+1%:Z * delta i) ->
        first_tap K epsilon delta i = - (r%:Z * `|delta i|%N%:Z)].
Proof.
split=> [N at_ x n q | d m n | i r eK eeps].
- rewrite /structured_convolution /attention_layer /network_convolution.
  rewrite (reindex_inj (inv_inj (@turnedK _ K delta))) /=; apply: eq_bigr => k _.
  by apply: eq_bigr => p _; rewrite attend_placed -tap_of_shift.
- rewrite /placed_shift_matrix /shift_matrix; congr (_ == _)%:R.
  by apply/ffunP => i; rewrite !ffunE.
rewrite /first_tap eeps eK; case: ifP => [lt|nlt].
  by rewrite gtz0_abs //; lia.
by rewrite lez0_abs; lia.
Qed.
