(** L21.wo: the explicit W^O of the appendix is right, and is the only one.

    Let K₁ = 2 r₁ + 1 and K₂ = 2 r₂ + 1, the image be p₁ · rows by p₂ · columns pixels in patches of
    p₁ × p₂, and m ≥ r₁ / p₁, n ≥ r₂ / p₂; let a ring of m × n zero patches surround it. The block of
    W^O for the offset δ holds, for pixel s of patch q + δ and pixel t of patch q, the tap at
    their place x = p δ + s - t + r (counted from zero, on each axis) if 0 ≤ x < K, and zero if not.

    1. The layer of hard heads, one at each offset in {-m..m} × {-n..n}, with these blocks is the
       zero-padded convolution, for every image, patch and pixel: with no smaller image excluded.
    2. If the image has more than m patches on the first axis and more than n on the second, they
       are the only blocks with which that layer is the convolution for all images.

    For every field, kernel and number of channels. Shifts are key minus query, as in eq. 14. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention image heads grid patches bare shared_map.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Theorem wo (F : fieldType) (In Out : finType) (rows columns p1 p2 m n r1 r2 : nat)
    (W : nat -> nat -> In -> Out -> F)
    (B : token_offset m n -> patch_feature p1 p2 In -> patch_feature p1 p2 Out -> F) :
  (r1 <= p1 * m)%N -> (r2 <= p2 * n)%N ->
  let is_convolution := forall (X : image_type F In) (q : bare_grid rows columns) t,
    attention_layer (hard_attention F (@ringed_target rows columns m n)) B (patch_token X) q t =
      convolution (p1 * rows) (p2 * columns) r1 r2 W X
        (p1 * q.1 + t.1.1)%N (p2 * q.2 + t.1.2)%N t.2 in
  let is_printed := forall d s t, B d s t = output_block m n r1 r2 W d.1 d.2 s t in
  (is_printed -> is_convolution) /\
  ((m < rows)%N -> (n < columns)%N -> is_convolution -> is_printed).
Proof.
move=> le1 le2 is_convolution is_printed; split=> [printed X q t | ltm ltn conv d s t].
  rewrite hard_heads -(convolution_of_tokens _ _ _ _ le1 le2).
  by apply: eq_bigr => d _; apply: eq_feature_map.
have [q [k targets]] := offset_occurs d ltm ltn.
pose block (d : token_offset m n) : patch_feature p1 p2 In -> patch_feature p1 p2 Out -> F :=
  output_block m n r1 r2 W d.1 d.2.
have [coefficient _] := layer_is_targets (fun d q k => one_hot F (bare_target q d) k)
  (@bare_target rows columns m n) B block q t.
rewrite -(sum_one_target (fun d => B d s t) targets) -[RHS](sum_one_target (fun d => block d s t) targets).
apply: coefficient => T.
rewrite hard_heads -/(bare_convolution B T q t) -/(bare_convolution block T q t).
have read B' : \sum_(d' : token_offset m n) feature_map (B' d')
    (patch_token (image_of_tokens T) (ringed_key q d')) t = bare_convolution B' T q t.
  apply: eq_bigr => d' _; apply: eq_feature_map => // f; rewrite patch_token_bare.
  by case: bare_target => // k0; rewrite bare_token_image.
by rewrite -!read (convolution_of_tokens _ _ _ _ le1 le2) -conv hard_heads.
Qed.
