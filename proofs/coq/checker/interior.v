(** Why one query settles all image sizes: an identity between the numbers of a certificate.

    Let K₁ × K₂ be a kernel's size, odd or even, p₁ × p₂ the patch, d₁ and d₂ the dilations; the
    token offsets δ are ⌊(p + t·d)/P⌋ on each axis, over the pixels p of a patch and the taps t. A
    certificate gives each head h numbers c_hδ, u0_h, u1_h and V_hδ for which

        Σ_h c_hδ V_hδ' = [δ = δ'],      Σ_h u0_h V_hδ' = 0,      Σ_h u1_h V_hδ' = 0,

    and no word of a query or an image. Let the image have any number n₁ × n₂ of patches, with a
    ring of zero tokens at least as wide as the offsets reach on each side: N keys. Head h attends
    from the query q to the key k with the weight (Σ_δ c_hδ [k = q + δ] + (u0_h + u1_h N)/N) / Z_h,
    where Z_h = Σ_δ c_hδ + u0_h + u1_h N, and has the value map Z_h Σ_δ V_hδ F_δ(W). Then the layer
    is the zero-padded convolution at every pixel of every query: for every kernel W, image, number
    of channels, and field in which no Z_h is zero ([equality.v]: under the checker's conditions on
    the rows they are positive). With a stride the outputs are some of these. Values have no bias,
    and neither has the convolution. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention image grid dilated certified_heads framed.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Section Layer.

Variables (F : fieldType) (low1 n1 high1 low2 n2 high2 p1 p2 K1 K2 d1 d2 : nat).
Let Offset := grid_offset p1 p2 K1 K2 d1 d2.
Let Key := framed_grid low1 n1 high1 low2 n2 high2.

(** The row of a head, from the shifts alone. *)
Definition certified_row (c : Offset -> F) (u0 u1 : F) (q : bare_grid n1 n2) (k : Key) : F :=
  (\sum_d c d * (at_shift q k (val d.1) (val d.2))%:R + (u0 + u1 * #|Key|%:R) / #|Key|%:R)
    / row_total c u0 u1 #|Key|.

(** Its value map. *)
Definition certified_values (In Out : finType) (c V : Offset -> F) (u0 u1 : F)
    (W : nat -> nat -> In -> Out -> F) (s : patch_feature p1 p2 In) (t : patch_feature p1 p2 Out) :=
  \sum_d row_total c u0 u1 #|Key| * V d * offset_map K1 K2 d1 d2 W (val d.1) (val d.2) s t.

Lemma certified_rowE (ring1 : ring_reaches low1 high1 (axis_offsets p1 K1 d1))
    (ring2 : ring_reaches low2 high2 (axis_offsets p2 K2 d2)) c u0 u1 q :
  certified_row c u0 u1 q =1 shared_row (framed_key ring1 ring2 q) c u0 u1.
Proof.
move=> k; congr ((_ + _) / _); apply: eq_bigr => d _.
by rewrite (at_shiftE ring1 ring2).
Qed.

End Layer.

Theorem interior (F : fieldType) (Head In Out : finType)
    (low1 n1 high1 low2 n2 high2 p1 p2 K1 K2 d1 d2 : nat)
    (c V : Head -> grid_offset p1 p2 K1 K2 d1 d2 -> F) (u0 u1 : Head -> F)
    (W : nat -> nat -> In -> Out -> F) (X : image_type F In)
    (q : bare_grid n1 n2) (t : patch_feature p1 p2 Out) :
  let N := #|framed_grid low1 n1 high1 low2 n2 high2| in
  (forall d d', \sum_h c h d * V h d' = (d == d')%:R) ->
  (forall d, \sum_h u0 h * V h d = 0) -> (forall d, \sum_h u1 h * V h d = 0) ->
  ring_reaches low1 high1 (axis_offsets p1 K1 d1) ->
  ring_reaches low2 high2 (axis_offsets p2 K2 d2) ->
  (forall h, row_total (c h) (u0 h) (u1 h) N != 0) ->
  attention_layer
      (fun h => @certified_row F low1 n1 high1 low2 n2 high2 _ _ _ _ _ _ (c h) (u0 h) (u1 h))
      (fun h => @certified_values F low1 n1 high1 low2 n2 high2 _ _ _ _ _ _ _ _
                  (c h) (V h) (u0 h) (u1 h) W)
      (framed_token X) q t =
    dilated_convolution (p1 * n1) (p2 * n2) K1 K2 d1 d2 W X
      (p1 * q.1 + t.1.1)%N (p2 * q.2 + t.1.2)%N t.2.
Proof.
move=> N eq_c eq_u0 eq_u1 ring1 ring2 nzZ.
rewrite -(convolution_of_framed ring1 ring2).
apply: layer_of_identity => k d.
rewrite -(identity_at_keys (framed_key ring1 ring2 q) nzZ eq_c eq_u0 eq_u1).
by apply: eq_bigr => h _; rewrite (certified_rowE ring1 ring2).
Qed.
