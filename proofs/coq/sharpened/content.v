(** S.content: attention to content obeys the bounds for positional attention.

    Let the weights A_h(X) of a layer depend on the image X in any way, as long as on every ray they
    tend to one limit as the image tends to zero: A_h(tX) → A_h(0) for t → 0, t > 0. Weights that are
    continuous at zero do. If such a layer, with value maps W_h and a bias, equals a zero-padded
    convolution with another bias for all images, at one pixel q of the result, then the biases are
    equal, and the layer with the fixed, positional attention A_h(0) and the same maps is the
    convolution at q for all images. So whatever bound holds for the heads of positional layers holds
    for this one. Tokens are patches within a ring of zero ones, m × n, and carry no positions; kernel,
    sizes, heads and the ordered field are any.

    Limits of such layers are not covered, nor attention that is not continuous at zero. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention image grid limits.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Definition scaled_image (F : fieldType) (Channel : Type) (t : F) (X : image_type F Channel) : image_type F Channel :=
  fun y x c => t * X y x c.

Section Homogeneous.

Variables (F : fieldType) (In : finType) (Out : Type).

Lemma zero_framed_scaled (height width top left : nat) (t : F) (X : image_type F In) y x c :
  zero_framed height width top left (scaled_image t X) y x c =
    t * zero_framed height width top left X y x c.
Proof. by rewrite /zero_framed; case: ifP; rewrite ?mulr0. Qed.

Lemma convolution_scaled (height width r1 r2 : nat) (W : nat -> nat -> In -> Out -> F) (t : F) X y x o :
  convolution height width r1 r2 W (scaled_image t X) y x o =
    t * convolution height width r1 r2 W X y x o.
Proof.
rewrite /convolution big_distrr; apply: eq_bigr => i _ /=.
rewrite big_distrr; apply: eq_bigr => j _ /=.
by rewrite big_distrr; apply: eq_bigr => c _ /=; rewrite zero_framed_scaled mulrA.
Qed.

(** With the attention held fixed a layer is linear in the tokens. *)
Lemma layer_scaled (Head Key : finType) (Query : Type) (A : Head -> Query -> Key -> F)
    (M : Head -> In -> Out -> F) (t : F) (X X' : Key -> In -> F) q o :
  (forall k i, X' k i = t * X k i) -> attention_layer A M X' q o = t * attention_layer A M X q o.
Proof.
move=> eqX; rewrite /attention_layer big_distrr; apply: eq_bigr => h _ /=.
rewrite -feature_map_scale; apply: eq_feature_map => // i.
by rewrite /attend big_distrr; apply: eq_bigr => k _; rewrite eqX mulrCA.
Qed.

End Homogeneous.

(** If the weights have limits, so has the layer at fixed tokens. *)
Lemma layer_tends (R : realFieldType) (Head Key In : finType) (Query Out : Type)
    (A : R -> Head -> Query -> Key -> R) (A0 : Head -> Query -> Key -> R)
    (M : Head -> In -> Out -> R) (X : Key -> In -> R) q o :
  (forall h k, tends_at_zero (fun t => A t h q k) (A0 h q k)) ->
  tends_at_zero (fun t => attention_layer (A t) M X q o) (attention_layer A0 M X q o).
Proof.
by move=> lim; do 2![apply: tends_sum => ?]; apply/tends_scale/tends_sum => k; exact: tends_scale.
Qed.

Theorem content (R : realFieldType) (In Out Head : finType) (rows columns p1 p2 m n r1 r2 : nat)
    (A : image_type R In -> Head -> bare_grid rows columns -> ringed_grid rows columns m n -> R)
    (A0 : Head -> bare_grid rows columns -> ringed_grid rows columns m n -> R)
    (M : Head -> patch_feature p1 p2 In -> patch_feature p1 p2 Out -> R)
    (W : nat -> nat -> In -> Out -> R) (b : patch_feature p1 p2 Out -> R) (b' : Out -> R)
    (q : bare_grid rows columns) (f : patch_feature p1 p2 Out) :
  let convolved X := convolution (p1 * rows) (p2 * columns) r1 r2 W X
    (p1 * q.1 + f.1.1)%N (p2 * q.2 + f.1.2)%N f.2 in
  (forall X h k, tends_at_zero (fun t => A (scaled_image t X) h q k) (A0 h q k)) ->
  (forall X, attention_layer (A X) M (patch_token X) q f + b f = convolved X + b' f.2) ->
  b f = b' f.2 /\ forall X, attention_layer A0 M (patch_token X) q f = convolved X.
Proof.
move=> convolved lim eqX.
have both X : b' f.2 - b f = 0 /\ attention_layer A0 M (patch_token X) q f - convolved X = 0.
  pose g t := attention_layer (A (scaled_image t X)) M (patch_token X) q f + - convolved X.
  apply: (@tends_vanishing _ g) => [|t t_gt0].
    by apply: tends_add (tends_const _); apply: layer_tends => h k; exact: lim.
  have := eqX (scaled_image t X); rewrite /convolved convolution_scaled -/(convolved X).
  rewrite (@layer_scaled _ _ _ _ _ _ _ _ t (patch_token X)) => [eq_t|k i]; last first.
    exact: zero_framed_scaled.
  by rewrite /g mulrDr mulrN; apply/eqP; rewrite subr_eq [X in _ == X]addrC addrA -eq_t addrK.
split=> [|X]; first by have [/eqP] := both (fun _ _ _ => 0); rewrite subr_eq0 => /eqP.
by have [_ /eqP] := both X; rewrite subr_eq0 => /eqP.
Qed.
