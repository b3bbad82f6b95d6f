(** C20.lemma1: hard heads through a bijection onto the shifts are any convolution (amended).

    Let K₁ = 2 r₁ + 1 and K₂ = 2 r₂ + 1 be odd, f a bijection of the heads onto the shifts
    Δ = {-r₁..r₁} × {-r₂..r₂}, so that there are K₁ K₂ heads, and let the head dimension D_h be at
    least min(D_in, D_out).

    1. For every kernel W there are value maps W_val^(h), D_in × D_h, and output maps W_out^(h),
       D_h × D_out, whose product is the kernel's matrix at the tap f(h), and with which the layer
       whose head h attends with weight one to the key at q + f(h) is the zero-padded convolution:
       the same maps for images of every size, in their ring of r₁ × r₂ zero pixels, at every pixel
       and in every output channel. The shift is key minus query; with the paper's sign, query minus
       key, put -f for f.
    2. Without the ring the hypothesis (10) cannot be met if a K is 3 or more: no attention from the
       pixels of an image to its pixels whose rows sum to one has the weight one at q + f(h) and
       zero elsewhere, at every q. At the first pixel that row would be zero.

    For every field, kernel size and number of channels. Biases are left out: they are
    the same in both. That the output maps must be free, if D_h < D_in, is not stated here. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention image heads grid pixels head_dimension.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

(** At the first pixel nothing is before it. *)
Lemma no_target_before (rows columns r1 r2 : nat) (y : 'I_rows) (x : 'I_columns) :
  y = 0%N :> nat -> x = 0%N :> nat -> (0 < r1 + r2)%N ->
  bare_target (y, x) ((ord0, ord0) : token_offset r1 r2) = None.
Proof.
rewrite /bare_target /axis_target /= !addn0 => -> -> pos; rewrite !leqn0.
case: r1 pos => [|r1] //= pos; case: r2 pos => [|r2] //= _.
by case: insub.
Qed.

Theorem lemma1 (F : fieldType) (Head In Out Inner : finType) (r1 r2 : nat)
    (f : Head -> token_offset r1 r2) :
  bijective f -> (minn #|In| #|Out| <= #|Inner|)%N ->
  (forall W : nat -> nat -> In -> Out -> F,
    exists (V : Head -> In -> Inner -> F) (O : Head -> Inner -> Out -> F),
    (forall h c o, through (V h) (O h) c o = W (f h).1 (f h).2 c o) /\
    forall (rows columns : nat) (X : image_type F In) (q : bare_grid rows columns) (o : Out),
      attention_layer
          (fun h q k => (k == ringed_key q (f h))%:R) (fun h => through (V h) (O h))
          (pixel_token X) q o =
        convolution rows columns r1 r2 W X q.1 q.2 o)
  /\
  (forall (rows columns : nat) (A : Head -> bare_grid rows columns -> bare_grid rows columns -> F),
    (0 < rows)%N -> (0 < columns)%N -> (0 < r1 + r2)%N ->
    (forall h q, \sum_k A h q k = 1) ->
    ~ (forall h q k, A h q k = one_hot F (bare_target q (f h)) k)).
Proof.
move=> bij_f wide; split=> [W | rows columns A lt0y lt0x large rows_sum_to_one hard].
  have [V [O eM]] := heads_through (fun h => W (f h).1 (f h).2) wide.
  exists V, O; split=> // rows columns X q o; rewrite -convolution_of_pixels.
  rewrite -(hard_bijection (@ringed_key _ _ _ _) _ _ _ bij_f eM).
  by apply: eq_bigr => h _; apply: eq_feature_map => // c; apply: eq_bigr => k _; rewrite /one_hot.
have [g _ fK] := bij_f; pose q : bare_grid rows columns := (Ordinal lt0y, Ordinal lt0x).
have := rows_sum_to_one (g (ord0, ord0)) q.
rewrite big1 => [/eqP|k _]; first by rewrite eq_sym oner_eq0.
by rewrite hard fK no_target_before.
Qed.
