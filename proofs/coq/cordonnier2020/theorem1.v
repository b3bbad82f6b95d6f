(** C20.theorem1: heads with the quadratic encoding are any convolution, in the limit (amended).

    Let K₁ = 2 r₁ + 1 and K₂ = 2 r₂ + 1, f a bijection of the heads onto the shifts in
    {-r₁..r₁} × {-r₂..r₂}, so that there are K₁ K₂ heads, and the head dimension D_h at least
    min(D_in, D_out). Let E be an exponential over an ordered field: positive, non-decreasing, from
    sums to products, exceeding every bound (the real one is such).

    For every kernel there are value maps and output maps, whose product is the kernel's matrix at the
    tap f(h), the same for every α and for images of every size, with which the layer whose head h has
    the scores v·r_δ of eq. 9 (D_p = 3, centre f(h)), on the image in its ring of r₁ × r₂ zero pixels,
    tends to the zero-padded convolution as α → ∞: at every pixel and in every output channel.

    It is a limit: that no finite α gives it exactly for every kernel is S.finite's converse. That
    the ring is needed is S.padding. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import zify.
From Convattn.foundation Require Import attention image heads grid bare pixels.
From Convattn.foundation Require Import head_dimension exponential sharp_limits quadratic_heads.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

(** The shift that an offset, counted from 0, stands for. *)
Definition offset_shift (r1 r2 : nat) (d : token_offset r1 r2) : int * int :=
  (d.1%:Z - r1%:Z, d.2%:Z - r2%:Z).

(** With the ring every target is a key. *)
Lemma nearest_ringed_key (rows columns r1 r2 : nat) (q : bare_grid rows columns)
    (d : token_offset r1 r2) :
  nearest_pixel (image_key r1 r2 q) (offset_shift d) = ringed_key q d.
Proof.
by apply: nearest_pixel_target; rewrite /=; lia.
Qed.

Theorem theorem1 (R : realFieldType) (E : R -> R) (Head In Out Inner : finType)
    (r1 r2 : nat) (f : Head -> token_offset r1 r2) :
  is_exponential E -> unbounded E ->
  bijective f -> (minn #|In| #|Out| <= #|Inner|)%N ->
  forall W : nat -> nat -> In -> Out -> R,
  exists (V : Head -> In -> Inner -> R) (O : Head -> Inner -> Out -> R),
  (forall h c o, through (V h) (O h) c o = W (f h).1 (f h).2 c o) /\
  forall (rows columns : nat) (X : image_type R In) (q : bare_grid rows columns) (o : Out),
    tends_to
      (fun alpha =>
        attention_layer
          (fun h q => softmax (quadratic_weights E alpha (offset_shift (f h)) (image_key r1 r2 q)))
          (fun h => through (V h) (O h)) (pixel_token X) q o)
      (convolution rows columns r1 r2 W X q.1 q.2 o).
Proof.
move=> E_exp E_unbounded bij_f wide W.
have [V [O eM]] := heads_through (fun h => W (f h).1 (f h).2) wide.
exists V, O; split=> // rows columns X q o; rewrite -convolution_of_pixels.
rewrite -(hard_bijection (@ringed_key _ _ _ _) _ _ _ bij_f eM).
apply: layer_tends_to => h k; rewrite /hard_attention -nearest_ringed_key.
exact: quadratic_tends_to_one_hot.
Qed.
