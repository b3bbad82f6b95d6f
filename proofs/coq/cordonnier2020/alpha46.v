(** C20.alpha46 (refuted): α = 46 does not give hard attention in float32.

    The score of the target exceeds its neighbours' by α, so that their weights are e^-α of the
    target's. At α = 46 that is between 1.05·10^-20 and 1.06·10^-20: more than 2^82 times the smallest
    positive float32, 2^-149, and more than 2^59 times the smallest normal one, 2^-126. Below half of
    the smallest positive number, so that it rounds to zero, it is at α = 104, and at α = 46 ln 10;
    below the smallest normal one, so that it is flushed to zero on some devices, at α = 88.

    On the reals of Coq's library, whose axioms this file uses, with enclosures by CoqInterval. The
    rounding of softmax itself is not covered. *)

From Coq Require Import Reals.
From Convattn.foundation Require Import enclosure.

Local Open Scope R_scope.

Theorem alpha46 :
  (1.05e-20 < exp (- 46) < 1.06e-20) /\
  2 ^ 82 * / 2 ^ 149 < exp (- 46) /\ 2 ^ 59 * / 2 ^ 126 < exp (- 46) /\
  exp (- 104) < / 2 ^ 150 /\ exp (- (46 * ln 10)) < / 2 ^ 150 /\
  exp (- 88) < / 2 ^ 126.
Proof. repeat split; interval with (i_prec 40). Qed.
