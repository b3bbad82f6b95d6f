(** C20.eq19: five features give a Gaussian of any centre and covariance.

    Let S = Σ⁻¹ be a symmetric 2 × 2 matrix, r_δ = (δ₁, δ₂, δ₁², δ₂², δ₁δ₂), and
    v = ½ (2 (SΔ)₁, 2 (SΔ)₂, -S₁₁, -S₂₂, -2 S₁₂). Then v·r_δ = -½ (δ - Δ)ᵀ S (δ - Δ) + ½ Δᵀ S Δ for all δ and Δ, and the
    last term drops out of the softmax: over any keys, with any shifts, it is the softmax of the first. If
    S = RᵀR the first term is -½ |R (δ - Δ)|². Over every field in which 2 is not zero, with any function that takes
    sums to products and is never zero for an exponential. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Convattn.foundation Require Import attention common_factor.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

(** A symmetric matrix by its entries S₁₁, S₁₂ and S₂₂, and the form (δ - Δ)ᵀ S (δ - Δ). *)
Definition symmetric_form (F : fieldType) (s11 s12 s22 : F) (x : F * F) : F :=
  s11 * x.1 ^+ 2 + s12 * x.1 * x.2 + s12 * x.2 * x.1 + s22 * x.2 ^+ 2.

Definition gaussian_features (F : fieldType) (shift : F * F) : seq F :=
  [:: shift.1; shift.2; shift.1 ^+ 2; shift.2 ^+ 2; shift.1 * shift.2].

Definition gaussian_target (F : fieldType) (s11 s12 s22 : F) (centre : F * F) : seq F :=
  [:: 2%:R^-1 * (2%:R * (s11 * centre.1 + s12 * centre.2)); 2%:R^-1 * (2%:R * (s12 * centre.1 + s22 * centre.2));
      2%:R^-1 * - s11; 2%:R^-1 * - s22; 2%:R^-1 * - (2%:R * s12)].

Definition gaussian_score (F : fieldType) (s11 s12 s22 : F) (centre shift : F * F) : F :=
  \sum_(i < 5) (gaussian_target s11 s12 s22 centre)`_i * (gaussian_features shift)`_i.

Theorem eq19 (F : fieldType) (s11 s12 s22 : F) (centre : F * F) :
  2%:R != 0 :> F ->
  let away (shift : F * F) := (shift.1 - centre.1, shift.2 - centre.2) in
  let centred shift := - (2%:R^-1 * symmetric_form s11 s12 s22 (away shift)) in
  [/\ forall shift, gaussian_score s11 s12 s22 centre shift =
        centred shift + 2%:R^-1 * symmetric_form s11 s12 s22 centre,
      forall (E : F -> F) (Key : finType) (shift : Key -> F * F), exponential_law E ->
        softmax (fun k => E (gaussian_score s11 s12 s22 centre (shift k))) =1
          softmax (fun k => E (centred (shift k)))
    & forall a b c d : F, s11 = a ^+ 2 + c ^+ 2 -> s12 = a * b + c * d -> s22 = b ^+ 2 + d ^+ 2 ->
        forall shift, centred shift = - (2%:R^-1 *
          ((a * (away shift).1 + b * (away shift).2) ^+ 2 + (c * (away shift).1 + d * (away shift).2) ^+ 2))].
Proof.
move=> nz2 away centred.
have score shift : gaussian_score s11 s12 s22 centre shift =
    centred shift + 2%:R^-1 * symmetric_form s11 s12 s22 centre.
  by rewrite /gaussian_score !big_ord_recl big_ord0 /centred /symmetric_form /=; field.
split=> // [E Key shift [add nz] k|a b c d e11 e12 e22 shift]; last first.
  by rewrite /centred /symmetric_form /= e11 e12 e22; ring.
rewrite -[RHS](softmax_common_factor (c := E (2%:R^-1 * symmetric_form s11 s12 s22 centre))) //.
by apply: eq_softmax => j; rewrite score add mulrC.
Qed.
