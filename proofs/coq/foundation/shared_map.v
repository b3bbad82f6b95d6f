(** One matrix Φ for all queries: when heads without content can be every convolution.

    Here a convolution is Σ_δ X_(q+δ) M_δ over the offsets δ whose target q + δ is a token. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import zify.
From Convattn.foundation Require Import attention image heads grid bare pixels.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Section SharedMap.

Variables (F : fieldType) (Head Query Key Offset : finType).
Variables (A : Head -> Query -> Key -> F) (target : Query -> Offset -> option Key).

(** E_q = Φ A_q for all q, where E_q has the rows e_(q+δ), zero if that is no token, and A_q the
    rows of the heads. *)
Definition one_map_serves (Phi : Offset -> Head -> F) : Prop :=
  forall q d k, one_hot F (target q d) k = \sum_h Phi d h * A h q k.

(** C20's condition: at each query apart, e_(q+δ) is in the span of the rows of the heads. *)
Definition spans_hold : Prop :=
  forall q d, exists phi : Head -> F, forall k, one_hot F (target q d) k = \sum_h phi h * A h q k.

Lemma one_map_spans Phi : one_map_serves Phi -> spans_hold.
Proof. by move=> eE q d; exists (Phi d). Qed.

Variables (In : finType) (Out : Type).
Implicit Types (M : Head -> In -> Out -> F) (B : Offset -> In -> Out -> F).

(** The coefficients of Σ_δ X_(q+δ) B_δ. *)
Lemma targets_as_coefficients B (X : Key -> In -> F) q o :
  \sum_d feature_map (B d) (fun i => if target q d is Some k then X k i else 0) o =
    \sum_k feature_map (fun i o => \sum_d one_hot F (target q d) k * B d i o) (X k) o.
Proof.
rewrite -(layer_as_coefficients (fun d q => one_hot F (target q d)) B).
exact/esym/hard_heads.
Qed.

(** A layer equals it for all tokens iff its coefficients do. *)
Lemma layer_is_targets M B q o :
  (forall X : Key -> In -> F, attention_layer A M X q o =
    \sum_d feature_map (B d) (fun i => if target q d is Some k then X k i else 0) o) <->
  (forall k i, \sum_h A h q k * M h i o = \sum_d one_hot F (target q d) k * B d i o).
Proof.
have [only_if suffices_] := layer_coefficients A M
  (fun k i o => \sum_d one_hot F (target q d) k * B d i o) q o.
split=> [eq_layer | /suffices_ eq_layer X]; last by rewrite eq_layer targets_as_coefficients.
by apply: only_if => X; rewrite eq_layer targets_as_coefficients.
Qed.

(** If: with Φ, the maps Σ_δ Φ_δh B_δ. *)
Lemma one_map_suffices Phi B X q o : one_map_serves Phi ->
  attention_layer A (fun h i o => \sum_d Phi d h * B d i o) X q o =
    \sum_d feature_map (B d) (fun i => if target q d is Some k then X k i else 0) o.
Proof.
move=> eE; move: X; apply/layer_is_targets => k i.
under eq_bigr do rewrite big_distrr; rewrite exchange_big; apply: eq_bigr => d _ /=.
by rewrite eE big_distrl; apply: eq_bigr => h _; rewrite mulrCA mulrA.
Qed.

(** Only if: an entry that is one in the block of one offset and zero in the others is a row of Φ. *)
Lemma one_map_row M B d i o :
  (forall d', B d' i o = (d' == d)%:R) ->
  (forall X q, attention_layer A M X q o =
    \sum_d feature_map (B d) (fun i => if target q d is Some k then X k i else 0) o) ->
  forall q k, one_hot F (target q d) k = \sum_h M h i o * A h q k.
Proof.
move=> one eq_layer q k; have /layer_is_targets/(_ k i) := fun X => eq_layer X q.
rewrite [RHS](bigD1 d) //= one eqxx mulr1 [X in _ + X]big1 ?addr0 => [<-|d' /negbTE nd]; last first.
  by rewrite one nd mulr0.
by apply: eq_bigr => h _; rewrite mulrC.
Qed.

End SharedMap.

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
by congr pair; apply: val_inj; rewrite /= inordK; lia.
Qed.

Lemma image_keyK : pcancel (image_key a b) image_place.
Proof.
case=> y x; rewrite /image_place.
have /eqP -> : axis_target rows a (image_key a b (y, x)).1 0 == Some y.
  by rewrite axis_target_some /= inordK; lia.
have /eqP -> // : axis_target columns b (image_key a b (y, x)).2 0 == Some x.
by rewrite axis_target_some /= inordK; lia.
Qed.

Lemma image_place_exists k :
  isSome (image_place k) = (a <= k.1 < a + rows)%N && (b <= k.2 < b + columns)%N.
Proof.
rewrite -[k.1 : nat]addn0 -[k.2 : nat]addn0 -!axis_target_exists /image_place.
by case: (axis_target rows a _ _) (axis_target columns b _ _) => [y|] [x|].
Qed.

(** The ring's zero tokens add nothing: the layer is the one on the image's tokens. *)
Lemma layer_without_ring (Query : Type) (A : Head -> Query -> ringed_grid rows columns a b -> F)
    (M : Head -> In -> Out -> F) (T : ringed_grid rows columns a b -> In -> F) q o :
  (forall k, image_place k = None -> forall i, T k i = 0) ->
  attention_layer A M T q o =
    attention_layer (fun h q k => A h q (image_key a b k)) M (fun k => T (image_key a b k)) q o.
Proof.
move=> zero; apply: eq_bigr => h _; apply: eq_feature_map => // i; rewrite /attend.
rewrite (bigID (fun k => image_place k)) /= [X in _ + X]big1 ?addr0 => [|k]; last first.
  by case e: (image_place k) => // _; rewrite zero ?mulr0.
rewrite (reindex_omap (image_key a b) image_place) /= => [|k]; last first.
  by case: (image_placeK k) => // ->.
by apply: eq_bigl => k; rewrite image_keyK eqxx.
Qed.

End Ring.

(** Tokens of the ring are zero. *)
Lemma patch_token_ring (F : fieldType) (Channel : finType) (rows columns a b p1 p2 : nat)
    (X : image F Channel) (k : ringed_grid rows columns a b) (f : patch_feature p1 p2 Channel) :
  image_place k = None -> patch_token X k f = 0.
Proof.
move=> /(congr1 isSome); rewrite image_place_exists /= => outside.
by rewrite /patch_token /zero_framed !patch_in_frame // outside.
Qed.

Lemma pixel_token_ring (F : fieldType) (Channel : Type) (rows columns a b : nat)
    (X : image F Channel) (k : ringed_grid rows columns a b) (c : Channel) :
  image_place k = None -> pixel_token X k c = 0.
Proof.
move=> /(congr1 isSome); rewrite image_place_exists /= => outside.
by rewrite /pixel_token /zero_framed outside.
Qed.
