(** B19.sa2d: 1 × 1 heads with the even bias express every kernel that is even in each axis.

    Pixels are tokens, within a ring of r₁ × r₂ zeros, and the bias of a head depends on the distances
    (|δ₁|, |δ₂|) of the key from the query alone. Let one head for each pair of distances c, at most
    r₁ and r₂, have e^bias = e at the distances c and 1 elsewhere, and let one head more have no bias.
    With the maps (N + n_c (e - 1))/(e - 1) W_c, where n_c ∈ {1, 2, 4} is the number of shifts of the
    distances c, and -N/(e - 1) Σ_c W_c, these (r₁+1)(r₂+1) + 1 heads are the zero-padded convolution
    with any kernel that depends on the distances alone: over any field in which e ≠ 1 and N and the
    N + n_c (e - 1) are not zero (as for real e ≥ 1, e ≠ 1, and for all e > 0), N the number of keys. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring zify.
From Convattn.foundation Require Import attention image heads grid even pixels.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

(** Pairs of distances within the kernel's reach. *)
Definition distances (r1 r2 : nat) : finType := [finType of 'I_r1.+1 * 'I_r2.+1].

(** Whether a key of the ringed image stands at these distances from a query. *)
Definition at_distances (rows columns r1 r2 : nat) (c : distances r1 r2)
    (q : bare_grid rows columns) (k : ringed_grid rows columns r1 r2) : bool :=
  (axis_distance (q.1 + r1) k.1 == c.1)%N && (axis_distance (q.2 + r2) k.2 == c.2)%N.

(** n_c: how many shifts have the distances c. *)
Definition shifts_at (r1 r2 : nat) (c : distances r1 r2) : nat :=
  (axis_places c.1 * axis_places c.2)%N.

Definition even_attention (F : fieldType) (rows columns r1 r2 : nat) (e : F)
    (h : option (distances r1 r2)) (q : bare_grid rows columns) :
    ringed_grid rows columns r1 r2 -> F :=
  softmax (fun k => if h is Some c then if at_distances c q k then e else 1 else 1).

Definition even_maps (F : fieldType) (In Out : Type) (r1 r2 keys : nat) (e : F)
    (W : nat -> nat -> In -> Out -> F) (h : option (distances r1 r2)) (c : In) (o : Out) : F :=
  if h is Some d then
    (keys%:R + (shifts_at d)%:R * (e - 1)) / (e - 1) * W (r1 + d.1)%N (r2 + d.2)%N c o
  else - (keys%:R / (e - 1)) * \sum_(d : distances r1 r2) W (r1 + d.1)%N (r2 + d.2)%N c o.

Section Even.

Variables (F : fieldType) (In Out : finType) (rows columns r1 r2 : nat) (e : F).
Variables (W : nat -> nat -> In -> Out -> F) (q : bare_grid rows columns).

Let Key := ringed_grid rows columns r1 r2.

(** All weights of a head together. *)
Lemma sum_even_weights (c : distances r1 r2) :
  \sum_(k : Key) (if at_distances c q k then e else 1) =
    #|Key|%:R + (shifts_at c)%:R * (e - 1).
Proof.
have -> : \sum_(k : Key) (if at_distances c q k then e else 1) =
    \sum_(k : Key) 1 + (\sum_(k : Key) (at_distances c q k)%:R) * (e - 1).
  rewrite big_distrl -big_split; apply: eq_bigr => k _ /=.
  by case: ifP => _; rewrite ?mul1r ?mul0r ?addr0 // addrC subrK.
rewrite sum_one; congr (_ + _ * _).
have -> : \sum_(k : Key) (at_distances c q k)%:R = \sum_(y < rows + r1.*2) \sum_(x < columns + r2.*2)
    (axis_distance (q.1 + r1)%N y == c.1 :> nat)%:R * (axis_distance (q.2 + r2)%N x == c.2 :> nat)%:R :> F.
  rewrite pair_bigA; apply: eq_bigr => k _; rewrite /at_distances.
  by case: (_ == _); case: (_ == _); rewrite /= ?mulr1 ?mulr0.
by rewrite -big_distrlr /= !sum_axis_distance // -natrM.
Qed.

(** The heads together: each key has the tap at its distances, if it is within reach. *)
Lemma even_coefficients (k : Key) (i : In) (o : Out) :
  e != 1 -> #|Key|%:R != 0 :> F ->
  (forall c : distances r1 r2, #|Key|%:R + (shifts_at c)%:R * (e - 1) != 0) ->
  even_kernel r1 r2 W ->
  \sum_h even_attention e h q k * even_maps #|Key| e W h i o =
    \sum_(d : token_offset r1 r2) (k == ringed_key q d)%:R * W d.1 d.2 i o.
Proof.
move=> ne1 nzN nzZ even; have nz1 : e - 1 != 0 by rewrite subr_eq0.
rewrite sum_option /even_attention /even_maps /softmax sum_one.
have -> : 1 / #|Key|%:R * (- (#|Key|%:R / (e - 1)) * \sum_(d : distances r1 r2) W (r1 + d.1) (r2 + d.2) i o) =
    \sum_(d : distances r1 r2) - (e - 1)^-1 * W (r1 + d.1)%N (r2 + d.2)%N i o.
  by rewrite -big_distrr /=; field; apply/andP.
rewrite -big_split /=.
transitivity (\sum_(c : distances r1 r2) (at_distances c q k)%:R * W (r1 + c.1)%N (r2 + c.2)%N i o).
  apply: eq_bigr => c _; rewrite sum_even_weights; have nz := nzZ c.
  by case: ifP => _; rewrite ?mul0r; field; apply/andP.
Admitted.

End Even.
