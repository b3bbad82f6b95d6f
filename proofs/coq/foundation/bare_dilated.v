(** Layers on the image's tokens, and on further tokens that are no part of the image.

    A ring of zeros or a class token are such further tokens: what they hold does not depend on the
    image. If a layer with any bias is the convolution of every image, then its coefficient between
    two tokens of the image is the map F_δ of their shift δ. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import zify.
From Convattn.foundation Require Import attention image grid dilated bare.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

(** The shift from a query to a key, on one axis and on two. *)
Definition axis_shift (n : nat) (q k : 'I_n) : int := (k : nat)%:Z - (q : nat)%:Z.

(** The tokens of an image, and further ones. *)
Definition with_extra (F : fieldType) (Channel Extra : finType) (n1 n2 p1 p2 : nat)
    (R : Extra -> patch_feature p1 p2 Channel -> F) (X : image_type F Channel)
    (k : bare_grid n1 n2 + Extra) (s : patch_feature p1 p2 Channel) : F :=
  match k with inl k => bare_token X k s | inr e => R e s end.

(** Every shift below the grid's sides is that of some query and key. *)
Lemma shift_occurs (n : nat) (z : int) : (`|z| < n)%N -> exists q k : 'I_n, axis_shift q k = z.
Proof.
move=> ltz; have lt0 : (0 < n)%N by lia.
case: z ltz => a lta.
  by exists (Ordinal lt0), (Ordinal lta); rewrite /axis_shift /=; lia.
by exists (Ordinal lta), (Ordinal lt0); rewrite /axis_shift /=; lia.
Qed.

(** So do all of finitely many shifts on two axes, each for itself. *)
Lemma shifts_occur (Index : Type) (column : Index -> int * int) (n1 n2 : nat) :
  (forall j, (`|(column j).1| < n1) && (`|(column j).2| < n2))%N ->
  forall j, exists qk : bare_grid n1 n2 * bare_grid n1 n2,
    (axis_shift qk.1.1 qk.2.1 == (column j).1) && (axis_shift qk.1.2 qk.2.2 == (column j).2).
Proof.
move=> small j; have /andP [lt1 lt2] := small j.
have [q1 [k1 e1]] := shift_occurs lt1; have [q2 [k2 e2]] := shift_occurs lt2.
by exists ((q1, q2), (k1, k2)); rewrite e1 e2 !eqxx.
Qed.

Section Bare.

Variables (F : fieldType) (In Out : finType) (n1 n2 p1 p2 K1 K2 d1 d2 : nat).

(** The convolution, from the image's tokens. *)
Lemma convolution_of_bare (W : nat -> nat -> In -> Out -> F) (X : image_type F In)
    (q : bare_grid n1 n2) (t : patch_feature p1 p2 Out) :
  dilated_convolution (p1 * n1) (p2 * n2) K1 K2 d1 d2 W X
      (p1 * q.1 + t.1.1)%N (p2 * q.2 + t.1.2)%N t.2 =
    \sum_(k : bare_grid n1 n2)
      feature_map (offset_map K1 K2 d1 d2 W (axis_shift q.1 k.1) (axis_shift q.2 k.2))
        (bare_token X k) t.
Proof.
rewrite -(convolution_by_tokens _ _ _ (@grid_holds_reads F n1 p1 K1 d1 q.1)
            (@grid_holds_reads F n2 p2 K2 d2 q.2)) //.
apply: eq_bigr => k _; apply: eq_feature_map => // -[[s1 s2] c].
rewrite /token_at /bare_token /zero_outside /= !ltz_nat.
have inside (n p : nat) (z : 'I_n) (s : 'I_p) : (p * z + s < p * n)%N.
  case: z s => z ltz [s lts] /=; apply: (leq_trans (n := p * z + p)); first by rewrite ltn_add2l.
  by rewrite -mulnSr leq_mul2l ltz orbT.
by rewrite !inside.
Qed.

Variables (Head Extra : finType).
Variables (A : Head -> bare_grid n1 n2 -> bare_grid n1 n2 + Extra -> F).
Variables (M : Head -> patch_feature p1 p2 In -> patch_feature p1 p2 Out -> F).
Variables (b : patch_feature p1 p2 Out -> F) (R : Extra -> patch_feature p1 p2 In -> F).

Let blocks q k s t := \sum_h A h q (inl k) * M h s t.
Let rest q t :=
  \sum_(e : Extra) feature_map (fun i o => \sum_h A h q (inr e) * M h i o) (R e) t + b t.

(** A layer has coefficients at the image's tokens, and a part that no image changes. *)
Lemma layer_with_extra (X : image_type F In) q t :
  attention_layer A M (with_extra R X) q t + b t =
    \sum_k feature_map (blocks q k) (bare_token X k) t + rest q t.
Proof. by rewrite layer_as_coefficients big_sumType /= /rest addrA. Qed.

(** Given tokens, as those of an image. *)
Lemma sum_image_of_tokens (B : bare_grid n1 n2 -> patch_feature p1 p2 In -> patch_feature p1 p2 Out -> F)
    X t :
  \sum_k feature_map (B k) (bare_token (image_of_tokens X) k) t = \sum_k feature_map (B k) (X k) t.
Proof. by apply: eq_bigr => k _; apply: eq_feature_map => // s; rewrite bare_token_image. Qed.

(** A layer that is the convolution has its coefficients. *)
Lemma convolution_coefficients (W : nat -> nat -> In -> Out -> F) :
  (forall (X : image_type F In) q t,
     attention_layer A M (with_extra R X) q t + b t =
       dilated_convolution (p1 * n1) (p2 * n2) K1 K2 d1 d2 W X
         (p1 * q.1 + t.1.1)%N (p2 * q.2 + t.1.2)%N t.2) ->
  forall q k s t, \sum_h A h q (inl k) * M h s t =
    offset_map K1 K2 d1 d2 W (axis_shift q.1 k.1) (axis_shift q.2 k.2) s t.
Proof.
move=> eqL q k s t.
pose D k' := offset_map K1 K2 d1 d2 W (axis_shift q.1 k'.1) (axis_shift q.2 k'.2) :
  patch_feature p1 p2 In -> patch_feature p1 p2 Out -> F.
have split_layer X : \sum_k' feature_map (blocks q k') (X k') t + rest q t =
    \sum_k' feature_map (D k') (X k') t.
  by rewrite -!(sum_image_of_tokens _ X) -convolution_of_bare -eqL layer_with_extra.
have no_rest : rest q t = 0.
  have := split_layer (fun _ _ => 0).
  have zero B : \sum_(k' : bare_grid n1 n2) feature_map (B k') (fun=> 0) t = 0.
    by rewrite big1 // => k' _; rewrite /feature_map big1 // => i _; rewrite mul0r.
  by rewrite !zero add0r.
apply: (coefficients_unique (C := blocks q) (D := D) (o := t)) => X.
by rewrite -split_layer no_rest addr0.
Qed.

End Bare.
