(** S.pad: on a filled ring the heads of S.finite are the convolution with that padding.

    The ring of m × n tokens around the image is filled before patches are cut: with copies of the
    edge, the opposite side, a reflection, a mean, zeros, anything. Z is the filled image, its
    coordinates counted from the ring's first row and column. The tokens of Z are all keys and no ring
    stands around them; the heads and maps are those of S.finite, and N counts all tokens of Z. Then
    at every token of the image the layer is the convolution of Z, read there: for every filling,
    kernel, image, size and field in which N, e - 1 and e + N - 1 are not zero. The maps depend on N. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import zify.
From Convattn.foundation Require Import attention image heads grid bare patches.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Theorem pad (F : fieldType) (In Out : finType)
    (rows columns p1 p2 m n r1 r2 : nat) (e : F)
    (W : nat -> nat -> In -> Out -> F) (Z : image_type F In)
    (q : bare_grid rows columns) (t : patch_feature p1 p2 Out) :
  let N := #|ringed_grid rows columns m n| in
  (r1 <= p1 * m)%N -> (r2 <= p2 * n)%N ->
  e != 1 -> N%:R != 0 :> F -> N%:R + e - 1 != 0 ->
  attention_layer
      (finite_attention (@ringed_target rows columns m n) e)
      (finite_maps (fun d : token_offset m n => output_block m n r1 r2 W d.1 d.2) N e)
      (@bare_token F In (rows + m.*2) (columns + n.*2) p1 p2 Z) q t =
    \sum_(i < r1.*2.+1) \sum_(j < r2.*2.+1) \sum_c
      Z (p1 * (q.1 + m) + t.1.1 + i - r1)%N (p2 * (q.2 + n) + t.1.2 + j - r2)%N c * W i j c t.2.
Proof.
move=> N le1 le2 ne1 nzN nzZ; rewrite finite_heads // /ringed_target.
pose inner : bare_grid (rows + m.*2) (columns + n.*2) := image_key m n q.
transitivity (\sum_(d : token_offset m n)
    feature_map (output_block m n r1 r2 W d.1 d.2) (patch_token Z (ringed_key inner d)) t).
  apply: eq_bigr => d _; apply: eq_feature_map => // f.
  rewrite -(patch_token_image_key m n); congr patch_token.
  by congr pair; apply: val_inj; rewrite /=; lia.
rewrite convolution_of_tokens // /convolution.
have inside (p side s r c : nat) (y : 'I_side) (u : 'I_p) (i : 'I_r.*2.+1) : (r <= p * s)%N ->
    (r <= p * (y + s) + u + i < r + p * (side + s.*2))%N.
  case: y u i => y lty [u ltu] [i lti] /= le.
  have : (p * y + p <= p * side)%N by rewrite -mulnSr leq_mul2l lty orbT.
  by rewrite !mulnDr -muln2; lia.
apply: eq_bigr => i _; apply: eq_bigr => j _; apply: eq_bigr => c _; congr (_ * _).
by rewrite /zero_framed !inside.
Qed.
