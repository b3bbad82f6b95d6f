(** S.dp1: one positional feature expresses every convolution, exactly, with one head more than
    there are offsets.

    In the setting of L21's Theorem 1 (any kernel of size 2 r₁ + 1 by 2 r₂ + 1, patches of p₁ × p₂,
    a ring of m × n zero patches, T = (2m+1)(2n+1) offsets), let each offset δ have a positive
    number t_δ ≠ 1, no two the same: r_δ = log t_δ is the only positional feature, zero at every
    other shift. Head h = 0, ..., T has v = h: before normalisation its weights are t_δ^h at the
    offsets and 1 at all other keys. With the maps Z_h Σ_δ V_hδ M_δ, where Z_h = N + Σ_δ (t_δ^h - 1)
    is the sum of the weights, N the number of keys, and V_hδ the coefficients of Lagrange's
    polynomials for the numbers 1 and t_δ, the layer is the zero-padded convolution: for every
    kernel, image and size. With P = 1 these are K² + 1 heads.

    The maps know N through Z_h. The field is any that holds the absolute values of its numbers, such
    as the rationals, the reals and the complex numbers. How badly V is conditioned is not covered. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention image grid patches scalar_heads.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** Z_h, from the number of keys. *)
Definition scalar_normaliser (F : fieldType) (Offset : finType) (t : Offset -> F) (keys h : nat) : F :=
  keys%:R + \sum_d (t d ^+ h - 1).

Theorem dp1 (F : numFieldType) (In Out : finType)
    (rows columns p1 p2 m n r1 r2 : nat) (t : token_offset m n -> F)
    (W : nat -> nat -> In -> Out -> F) (X : image_type F In)
    (q : bare_grid rows columns) (f : patch_feature p1 p2 Out) :
  let N := #|ringed_grid rows columns m n| in
  let T := #|token_offset m n| in
  (r1 <= p1 * m)%N -> (r2 <= p2 * n)%N ->
  injective t -> (forall d, 0 < t d) -> (forall d, t d != 1) ->
  attention_layer
      (fun h : 'I_T.+1 => scalar_attention t 1 (@ringed_offset rows columns m n) h)
      (fun h : 'I_T.+1 => scalar_maps t 1 (scalar_normaliser t N)
        (fun d : token_offset m n => output_block m n r1 r2 W d.1 d.2) h)
      (patch_token X) q f =
    convolution (p1 * rows) (p2 * columns) r1 r2 W X
      (p1 * q.1 + f.1.1)%N (p2 * q.2 + f.1.2)%N f.2.
Proof.
move=> N T le1 le2 t_inj t_gt0 t_ne1.
have offsetE := @ringed_offsetE rows columns m n.
have ZE h : scalar_normaliser t N h =
    \sum_k key_number t 1 (@ringed_offset rows columns m n) q k ^+ h.
  by rewrite (sum_key_numbers _ _ offsetE) expr1n mulr1.
rewrite (scalar_heads offsetE t_inj t_ne1 _ _ _ _ (first := 0)) // => [|h _].
  exact: convolution_of_tokens.
rewrite ZE gt_eqF // (bigD1 (ringed_key q (ord0, ord0))) //= ltr_paddr ?exprn_gt0 //.
  apply: sumr_ge0 => k _; apply: exprn_ge0; rewrite /key_number.
  by case: ringed_offset => [d|]; rewrite ?ler01 ?ltW.
by rewrite /key_number; case: ringed_offset => [d|]; rewrite ?ltr01.
Qed.
