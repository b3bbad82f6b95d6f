(** S.boundary, the quadratic encoding: without a ring, in the limit, the edge is repeated.

    Cut an image of p₁ · rows by p₂ · columns pixels into patches of p₁ × p₂, with r₁ ≤ p₁ m and
    r₂ ≤ p₂ n, and frame it by m × n patches, each equal to the nearest patch of the image (for P = 1,
    to the nearest pixel). Let the keys be the image's own patches. (1) Among all keys the squared
    distance to q + δ has its only minimum at the clamped key, the projection of q + δ onto the
    rectangle. (2) With one head for each offset in {-m..m} × {-n..n}, which attends with weight one to
    the clamped key, and with the maps of L21's Theorem 1, the layer is the convolution of the image so
    framed. (3) The quadratic heads, whose weights are softmaxes of x^|k - (q + δ)|² with x = exp(-α),
    are off from it by at most x times a number that does not depend on x, so that they tend to it as
    α → ∞. The field is any that holds the absolute values of its numbers, such as the rationals, the
    reals and the complex numbers. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import zify.
From Convattn.foundation Require Import attention image heads grid bare dominated.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** The place nearest to [z - m] among [side] ones. *)
Definition clamped (side m z : nat) : nat := minn (z - m) side.-1.

Lemma clamped_bound (side m z : nat) (y : 'I_side) : (clamped side m z < side)%N.
Proof. by case: y => y /=; rewrite /clamped; lia. Qed.

(** The projection of q + δ onto the grid. *)
Definition clamped_key (rows columns m n : nat)
    (q : bare_grid rows columns) (d : token_offset m n) : bare_grid rows columns :=
  (Ordinal (clamped_bound m (q.1 + d.1) q.1), Ordinal (clamped_bound n (q.2 + d.2) q.2)).

(** |k - (q + δ)|², in natural numbers; δ = (i - m, j - n). *)
Definition distance (a b : nat) : nat := ((a - b) + (b - a))%N.

Definition squared_distance (rows columns m n : nat)
    (q : bare_grid rows columns) (d : token_offset m n) (k : bare_grid rows columns) : nat :=
  (distance (k.1 + m) (q.1 + d.1) ^ 2 + distance (k.2 + n) (q.2 + d.2) ^ 2)%N.

(** The image framed by m × n patches, each the nearest one of its own. *)
Definition edge_framed (F : fieldType) (Channel : Type) (rows columns p1 p2 m n : nat)
    (X : image_type F Channel) : image_type F Channel :=
  fun y x => X (p1 * clamped rows m (y %/ p1) + y %% p1)%N (p2 * clamped columns n (x %/ p2) + x %% p2)%N.

(** On one axis the clamped place is the nearest, by as much as k is off. *)
Lemma clamped_nearest (side m z k : nat) : (k < side)%N ->
  (distance (clamped side m z + m) z ^ 2 + distance k (clamped side m z) ^ 2 <= distance (k + m) z ^ 2)%N.
Proof.
move=> ltk; set a := clamped side m z.
suff -> : distance (k + m) z = (distance (a + m) z + distance k a)%N.
  by rewrite sqrnD leq_addr.
by rewrite /distance /a /clamped; lia.
Qed.

Lemma clamped_key_nearest (rows columns m n : nat)
    (q k : bare_grid rows columns) (d : token_offset m n) :
  k != clamped_key q d -> (squared_distance q d (clamped_key q d) < squared_distance q d k)%N.
Proof.
case: k => k1 k2; rewrite -pair_eqE /= -!val_eqE /= => ne.
have near1 := clamped_nearest m (q.1 + d.1) (ltn_ord k1).
have near2 := clamped_nearest n (q.2 + d.2) (ltn_ord k2).
rewrite /squared_distance /=.
have apart a b : a != b -> (0 < distance a b ^ 2)%N by rewrite expn_gt0 /distance; lia.
have le1 := leq_trans (leq_addr _ _) near1; have le2 := leq_trans (leq_addr _ _) near2.
case/nandP: ne => /apart lt0.
  by rewrite -addSn leq_add // (leq_trans _ near1) // -addn1 leq_add2l.
by rewrite -addnS leq_add // (leq_trans _ near2) // -addn1 leq_add2l.
Qed.

(** The quadratic heads are near the hard ones at the clamped keys, for any tokens and maps. *)
Lemma quadratic_near_clamped (F : numFieldType) (In : finType) (Out : Type) (rows columns m n : nat)
    (M : token_offset m n -> In -> Out -> F) (X : bare_grid rows columns -> In -> F) q o :
  exists bound, forall x, 0 < x -> x <= 1 ->
    `|attention_layer (fun d q => softmax (fun k => x ^+ squared_distance q d k)) M X q o
      - attention_layer (hard_attention F (fun q d => Some (clamped_key q d))) M X q o| <= x * bound.
Proof.
exists (\sum_d \sum_i (\sum_k `|X k i - X (clamped_key q d) i|) * `|M d i o|) => x gt0 le1.
apply: layer_dominated => [d k|d|d k ne]; first by rewrite exprn_ge0 // ltW.
  by rewrite exprn_gt0.
exact: power_dominated (ltW gt0) le1 (clamped_key_nearest ne).
Qed.

Theorem boundary_clamped (F : numFieldType) (In Out : finType)
    (rows columns p1 p2 m n r1 r2 : nat)
    (W : nat -> nat -> In -> Out -> F) (X : image_type F In)
    (q : bare_grid rows columns) (t : patch_feature p1 p2 Out) :
  let blocks (d : token_offset m n) := output_block m n r1 r2 W d.1 d.2 in
  let edge_padded := framed_convolution r1 r2 W
    (cropped_frame p1 p2 m n r1 r2 (edge_framed rows columns p1 p2 m n X))
    (p1 * q.1 + t.1.1)%N (p2 * q.2 + t.1.2)%N t.2 in
  (r1 <= p1 * m)%N -> (r2 <= p2 * n)%N ->
  [/\ forall (d : token_offset m n) k, k != clamped_key q d ->
        (squared_distance q d (clamped_key q d) < squared_distance q d k)%N,
      attention_layer (hard_attention F (fun q d => Some (clamped_key q d))) blocks (bare_token X) q t =
        edge_padded
    & exists bound, forall x, 0 < x -> x <= 1 ->
      `|attention_layer (fun d q => softmax (fun k => x ^+ squared_distance q d k)) blocks (bare_token X) q t
        - edge_padded| <= x * bound].
Proof.
move=> blocks edge_padded le1 le2.
have hard : attention_layer (hard_attention F (fun q d => Some (clamped_key q d))) blocks (bare_token X) q t =
    edge_padded.
  rewrite hard_heads /edge_padded -framed_convolution_of_tokens //.
  apply: eq_bigr => d _; apply: eq_feature_map => // -[[s1 s2] c].
  by rewrite /edge_framed /bare_token /= !divn_patch // !modn_patch.
split=> //; first by move=> d k; exact: clamped_key_nearest.
have [bound near] := quadratic_near_clamped blocks (@bare_token F In rows columns p1 p2 X) q t.
by exists bound => x gt0 le1x; rewrite -hard; exact: near.
Qed.
