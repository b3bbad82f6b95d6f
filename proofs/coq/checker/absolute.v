(** Absolute positions give the quadratic score: the form that the checker demands of each head.

    On two axes let the encoding of a position be f(p) = (p₁, p₂, |p|², 1), and B the 4 × 4 form with
    2 at (q_a, k_a), 2·t_a at (1, k_a) and -1 at (1, |k|²), anything in the last column, and 0
    elsewhere. Then the score f(q) B f(k)ᵀ of a query q and a key k is -|k - q - t|² and a number
    that does not depend on k, which a softmax over the keys ignores. Any commutative ring. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

(** The encoding of a position on two axes. *)
Definition absolute_encoding (R : comRingType) (p1 p2 : R) (i : 'I_4) : R :=
  nth 0 [:: p1; p2; p1 ^+ 2 + p2 ^+ 2; 1] i.

(** The form for the target (t₁, t₂), with a free last column. *)
Definition absolute_form (R : comRingType) (t1 t2 : R) (free : 'I_4 -> R) (i j : 'I_4) : R :=
  if j == 3%N :> nat then free i else
  nth 0 (nth [::] [:: [:: 2%:R; 0; 0]; [:: 0; 2%:R; 0]; [:: 0; 0; 0];
                      [:: 2%:R * t1; 2%:R * t2; -1]] i) j.

Theorem absolute (R : comRingType) (t1 t2 : R) (free : 'I_4 -> R) :
  exists g : R -> R -> R, forall q1 q2 k1 k2,
    \sum_i \sum_j absolute_encoding q1 q2 i * absolute_form t1 t2 free i j
        * absolute_encoding k1 k2 j =
      - ((k1 - q1 - t1) ^+ 2 + (k2 - q2 - t2) ^+ 2) + g q1 q2.
Proof.
exists (fun q1 q2 => (q1 + t1) ^+ 2 + (q2 + t2) ^+ 2 + \sum_i absolute_encoding q1 q2 i * free i).
move=> q1 q2 k1 k2; rewrite !big_ord_recl !big_ord0 /absolute_encoding /absolute_form /=.
by move: (free _) (free _) (free _) (free _) => f0 f1 f2 f3; ring.
Qed.
