(** The ring of zero tokens around an image: what a layer gives to it adds nothing. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import zify.
From Convattn.foundation Require Import attention image grid bare pixels.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Section Ring.

Variables (F : fieldType) (Head In : finType) (Out : Type) (rows columns a b : nat).

(** The token of the image that stands at a key of the ringed grid, if one does. *)
Definition image_place (k : ringed_grid rows columns a b) : option (bare_grid rows columns) :=
  if axis_target rows a k.1 0 is Some y then
    if axis_target columns b k.2 0 is Some x then Some (y, x) else None
  else None.

Lemma image_placeK k : omap (image_key a b) (image_place k) = Some k \/ image_place k = None.
Proof.
rewrite /image_place; case e1: (axis_target rows a k.1 0) => [y|]; last by right.
case e2: (axis_target columns b k.2 0) => [x|]; [left | by right].
move/eqP: e1; move/eqP: e2; rewrite !axis_target_some => /eqP e2 /eqP e1 /=.
congr Some; case: k e1 e2 => k1 k2 /= e1 e2.
by congr pair; apply: val_inj; rewrite /=; lia.
Qed.

Lemma image_keyK : pcancel (image_key a b) image_place.
Proof.
case=> y x; rewrite /image_place.
have /eqP -> : axis_target rows a (image_key a b (y, x)).1 0 == Some y.
  by rewrite axis_target_some /= addn0.
have /eqP -> // : axis_target columns b (image_key a b (y, x)).2 0 == Some x.
by rewrite axis_target_some /= addn0.
Qed.

Lemma image_place_exists k :
  isSome (image_place k) = (a <= k.1 < a + rows)%N && (b <= k.2 < b + columns)%N.
Proof.
rewrite -[k.1 : nat]addn0 -[k.2 : nat]addn0 -!axis_target_exists /image_place.
by case: (axis_target rows a _ _) (axis_target columns b _ _) => [y|] [x|].
Qed.

(** The ring's zero tokens add nothing: a head sees those of the image only, *)
Lemma attend_without_ring (w : ringed_grid rows columns a b -> F)
    (T : ringed_grid rows columns a b -> In -> F) i :
  (forall k, image_place k = None -> T k i = 0) ->
  attend w T i = attend (fun k => w (image_key a b k)) (fun k => T (image_key a b k)) i.
Proof.
move=> zero; rewrite /attend.
rewrite (bigID (fun k => image_place k)) /= [X in _ + X]big1 ?addr0 => [|k]; last first.
  by case e: (image_place k) => // _; rewrite zero ?mulr0.
rewrite (reindex_omap (image_key a b) image_place) /= => [|k]; last first.
  by case: (image_placeK k) => // ->.
by apply: eq_bigl => k; rewrite image_keyK eqxx.
Qed.

(** and the layer is the one on the image's tokens. *)
Lemma layer_without_ring (Query : Type) (A : Head -> Query -> ringed_grid rows columns a b -> F)
    (M : Head -> In -> Out -> F) (T : ringed_grid rows columns a b -> In -> F) q o :
  (forall k, image_place k = None -> forall i, T k i = 0) ->
  attention_layer A M T q o =
    attention_layer (fun h q k => A h q (image_key a b k)) M (fun k => T (image_key a b k)) q o.
Proof.
move=> zero; apply: eq_bigr => h _; apply: eq_feature_map => // i.
by apply: attend_without_ring => k /zero.
Qed.

End Ring.

(** Tokens of the ring are zero. *)
Lemma patch_token_ring (F : fieldType) (Channel : finType) (rows columns a b p1 p2 : nat)
    (X : image_type F Channel) (k : ringed_grid rows columns a b) (f : patch_feature p1 p2 Channel) :
  image_place k = None -> patch_token X k f = 0.
Proof.
move=> /(congr1 isSome); rewrite image_place_exists /= => outside.
by rewrite /patch_token /zero_framed !patch_in_frame // outside.
Qed.

Lemma attend_ringed (F : fieldType) (Channel : finType) (rows columns m n p1 p2 : nat)
    (w : ringed_grid rows columns m n -> F) (X : image_type F Channel) (f : patch_feature p1 p2 Channel) :
  attend w (patch_token X) f = attend (fun k => w (image_key m n k)) (bare_token X) f.
Proof.
rewrite attend_without_ring => [|k]; last exact: patch_token_ring.
by apply: eq_bigr => k _; rewrite patch_token_image_key.
Qed.

Lemma pixel_token_ring (F : fieldType) (Channel : Type) (rows columns a b : nat)
    (X : image_type F Channel) (k : ringed_grid rows columns a b) (c : Channel) :
  image_place k = None -> pixel_token X k c = 0.
Proof.
move=> /(congr1 isSome); rewrite image_place_exists /= => outside.
by rewrite /pixel_token /zero_framed outside.
Qed.
