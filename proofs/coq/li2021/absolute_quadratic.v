(** L21.absolute (1): an absolute encoding in channels of its own gives the quadratic attention.

    Let a token consist of its content, in any number of channels, and of the position (p₁, p₂, |p|², 1) in four
    others, and let the form of the scores be α B_Δ on these four and zero wherever content is involved. Then the
    softmax of the scores at a query is that of the quadratic encoding with the centre Δ and the sharpness α: on
    every image, whatever the content, at every query and key; the keys are all pixels, those of a ring of zeros
    among them. The layer, whose values come from the content's channels alone, and its limit, C20's Theorem 1,
    are not stated here. Over every ordered field with an exponential. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Convattn.foundation Require Import attention grid exponential common_factor scores quadratic quadratic_heads.
From Convattn.checker Require Import absolute.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** A token's content, and its position in four channels beside it. *)
Definition placed_token (R : comRingType) (Content : Type) (rows columns : nat)
    (X : bare_grid rows columns -> Content -> R) (k : bare_grid rows columns) (i : Content + 'I_4) : R :=
  match i with inl c => X k c | inr j => absolute_encoding k.1%:R k.2%:R j end.

(** A form on the positions alone. *)
Definition position_form (R : comRingType) (Content : Type) (B : 'I_4 -> 'I_4 -> R) (i j : Content + 'I_4) : R :=
  match i, j with inr i', inr j' => B i' j' | _, _ => 0 end.

Theorem absolute_quadratic (R : realFieldType) (E : R -> R) (Content : finType) (rows columns : nat)
    (alpha : R) (shift : int * int) (free : 'I_4 -> R) (X : bare_grid rows columns -> Content -> R)
    (q k : bare_grid rows columns) :
  is_exponential E ->
  softmax (fun j => E (bilinear
      (position_form (fun a b => alpha * absolute_form shift.1%:~R shift.2%:~R free a b))
      (placed_token X q) (placed_token X j))) k =
    softmax (quadratic_weights E alpha shift q) k.
Proof.
move=> E_exp; have [g form] := absolute (shift.1%:~R : R) shift.2%:~R free.
pose c := alpha * g q.1%:R q.2%:R - alpha * square_distance (shift.1%:~R, shift.2%:~R) (0, 0).
rewrite -[RHS](softmax_common_factor (c := E c)) ?exponential_nonzero //.
apply: eq_softmax => j; rewrite /quadratic_weights -exponential_add //; congr E.
have -> : bilinear (position_form (fun a b => alpha * absolute_form shift.1%:~R shift.2%:~R free a b))
    (placed_token X q) (placed_token X j) =
    alpha * \sum_a \sum_b absolute_encoding q.1%:R q.2%:R a
      * absolute_form shift.1%:~R shift.2%:~R free a b * absolute_encoding j.1%:R j.2%:R b.
  rewrite /bilinear big_sumType /= big1 ?add0r => [|i _]; last first.
    by rewrite big1 // => -[b|b] _; rewrite mulr0 mul0r.
  rewrite big_distrr; apply: eq_bigr => a _ /=.
  rewrite big_sumType /= big1 ?add0r => [|i _]; last by rewrite mulr0 mul0r.
  by rewrite big_distrr; apply: eq_bigr => b _ /=; ring.
rewrite form quadratic_score_square /c /square_distance /pixel_shift /=; ring.
Qed.
