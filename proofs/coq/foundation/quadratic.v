(** The quadratic encoding of C20: three features whose scores are -α |δ - Δ|² + α |Δ|². *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Section Quadratic.

Variable F : fieldType.

(** Eq. 9: r_δ = (|δ|², δ₁, δ₂). *)
Definition quadratic_features (shift : F * F) : seq F :=
  [:: shift.1 ^+ 2 + shift.2 ^+ 2; shift.1; shift.2].

(** Eq. 9: v = -α (1, -2Δ₁, -2Δ₂). *)
Definition quadratic_target (alpha : F) (centre : F * F) : seq F :=
  [:: - alpha; - alpha * (- 2%:R * centre.1); - alpha * (- 2%:R * centre.2)].

(** v·r_δ. *)
Definition quadratic_score (alpha : F) (centre shift : F * F) : F :=
  \sum_(s < 3) (quadratic_target alpha centre)`_s * (quadratic_features shift)`_s.

Definition square_distance (x y : F * F) : F := (x.1 - y.1) ^+ 2 + (x.2 - y.2) ^+ 2.

Lemma quadratic_score_square (alpha : F) (centre shift : F * F) :
  quadratic_score alpha centre shift =
    - alpha * square_distance shift centre + alpha * square_distance centre (0, 0).
Proof.
by rewrite /quadratic_score /square_distance !big_ord_recr big_ord0 /=; ring.
Qed.

End Quadratic.
