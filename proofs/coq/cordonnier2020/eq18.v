(** C20.eq18: softmax of the quadratic scores is an isotropic Gaussian over the pixels.

    Let E be an exponential: any function without zeros with E(x + y) = E(x) E(y). For the scores
    v·r_δ of eq. 9, with v = -α (1, -2Δ₁, -2Δ₂) and r_δ = (|δ|², δ₁, δ₂) at the shift δ = k - q,

      softmax_k E(v·r_(k-q)) = E(-α |(k - q) - Δ|²) / Σ_k' E(-α |(k' - q) - Δ|²),

    for every α, every Δ, also off the pixels, every finite set of keys wherever they stand (a
    rectangle of pixels is one), and every field. For c ≠ 0, in particular c = α/π over the reals,
    this is also the quotient of the densities c E(-α |k - (q + Δ)|²): a Gaussian of mean q + Δ,
    restricted to the keys and normalised there. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Convattn.foundation Require Import attention common_factor quadratic.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Theorem eq18 (F : fieldType) (E : F -> F) (Key : finType) (place : Key -> F * F)
    (alpha : F) (query centre : F * F) (k : Key) :
  exponential_law E ->
  let shift k := ((place k).1 - query.1, (place k).2 - query.2) in
  let gaussian k := E (- alpha * square_distance (shift k) centre) in
  let density c k :=
    c * E (- alpha * square_distance (place k) (query.1 + centre.1, query.2 + centre.2)) in
  (softmax (fun k => E (quadratic_score alpha centre (shift k))) k =
    gaussian k / \sum_k' gaussian k') /\
  (forall c, c != 0 ->
    gaussian k / (\sum_k' gaussian k') = density c k / (\sum_k' density c k')).
Proof.
move=> [E_add nzE] shift gaussian density.
split=> [|c nzc].
  rewrite -[RHS](softmax_common_factor gaussian (nzE (alpha * square_distance centre (0, 0)))).
  by apply: eq_softmax => k'; rewrite quadratic_score_square addrC E_add.
rewrite -[LHS](softmax_common_factor gaussian nzc).
apply: (eq_softmax (w' := density c)) => k'; congr (_ * E (_ * _)).
by rewrite /square_distance /=; ring.
Qed.
