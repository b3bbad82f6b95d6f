(** C20.dilation: heads at the multiples of D are the convolution of dilation D.

    Let K₁ = 2 r₁ + 1, K₂ = 2 r₂ + 1, and let the image stand in a ring of D₁ r₁ × D₂ r₂ zero pixels.
    The layer with one hard head for each δ in {-r₁..r₁} × {-r₂..r₂}, which attends to the key at
    q + (D₁ δ₁, D₂ δ₂) with the value map W_δ, is the zero-padded convolution of dilation (D₁, D₂),
    out_q = Σ_δ X_(q + Dδ) W_δ, at every pixel: for every dilation, kernel, image, size, number of
    channels and field.

    The ring must be that wide for hard heads: if the image has a pixel and stands in a ring of a × b
    zeros, then these hold the key at q + Dδ for every pixel q and every δ only if a ≥ D₁ r₁ and
    b ≥ D₂ r₂. That quadratic heads get by with a ring of one zero is not
    stated here. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import zify.
From Convattn.foundation Require Import attention image heads grid bare pixels.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.


(** On one axis: the key [k] of an image in [ring] zeros is the one at [y] + D ([i] - r). *)
Definition reads (ring D r y i k : nat) : bool := (k + D * r == y + ring + D * i)%N.

Theorem dilation (F : fieldType) (In : finType) (Out : Type) (rows columns D1 D2 r1 r2 : nat) :
  (forall (W : nat -> nat -> In -> Out -> F) (X : image_type F In) (q : bare_grid rows columns) (o : Out),
    attention_layer
        (hard_attention F (fun q (d : token_offset r1 r2) => Some (dilated_key D1 D2 q d)))
        (fun d => W d.1 d.2) (pixel_token X) q o =
      convolution_of_dilation rows columns D1 D2 r1 r2 W X q.1 q.2 o)
  /\
  (forall a b : nat, (0 < rows)%N -> (0 < columns)%N ->
    (forall (q : bare_grid rows columns) (d : token_offset r1 r2),
      exists k : ringed_grid rows columns a b, reads a D1 r1 q.1 d.1 k.1 && reads b D2 r2 q.2 d.2 k.2) ->
    (D1 * r1 <= a)%N && (D2 * r2 <= b)%N).
Proof.
split=> [W X q o | a b lt0y lt0x within]; first by rewrite hard_heads dilated_of_pixels.
have [[k1 k2] /andP[/eqP /= e1 /eqP /= e2]] := within (Ordinal lt0y, Ordinal lt0x) (ord0, ord0).
by move: e1 e2; rewrite !muln0; lia.
Qed.
