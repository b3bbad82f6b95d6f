(** S.dp1, in the limit: one positional feature and as many heads as there are offsets.

    In the setting of S.dp1 let the feature be M + log t_δ at the offsets and zero elsewhere, the t_δ
    positive and distinct. As M → ∞ the weights of the heads v = h, h = 1, ..., T, become t_δ^h at the
    offsets and 0 at all other keys. The T heads with these weights, with the maps Z_h Σ_δ V_hδ M_δ,
    where Z_h = Σ_δ t_δ^h and V_hδ are the coefficients of Lagrange's polynomials for the numbers 0 and
    t_δ, are the zero-padded convolution: for every kernel, image and size. With P = 1 these are K²
    heads. The field is any that holds the absolute values of its numbers, such as the rationals, the
    reals and the complex numbers. The passage to the limit itself is dp1_tends. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention image grid patches lagrange scalar_heads.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** Z_h: only the offsets keep weight. *)
Definition limit_normaliser (F : fieldType) (Offset : finType) (t : Offset -> F) (h : nat) : F :=
  \sum_d t d ^+ h.

(** A polynomial that vanishes at zero has no constant coefficient. *)
Lemma no_constant (F : fieldType) (Offset : finType) (t : Offset -> F) (d : Offset) :
  t d != 0 -> offset_coefficient t 0 d 0 = 0.
Proof.
move=> nz; set nodes := 0 :: codom t.
have := @lagrange_at F nodes (t d) (size nodes).+1 0; rewrite ltnS count_size mem_head.
move=> /(_ isT isT); rewrite eq_sym (negbTE nz) /lagrange_value big_ord_recl expr0 mulr1.
by rewrite big1 ?addr0 // => h _; rewrite exprS mul0r mulr0.
Qed.

Theorem dp1_limit (F : numFieldType) (In Out : finType)
    (rows columns p1 p2 m n r1 r2 : nat) (t : token_offset m n -> F)
    (W : nat -> nat -> In -> Out -> F) (X : image_type F In)
    (q : bare_grid rows columns) (f : patch_feature p1 p2 Out) :
  let T := #|token_offset m n| in
  (r1 <= p1 * m)%N -> (r2 <= p2 * n)%N -> injective t -> (forall d, 0 < t d) ->
  attention_layer
      (fun h : 'I_T => scalar_attention t 0 (@ringed_offset rows columns m n) h.+1)
      (fun h : 'I_T => scalar_maps t 0 (limit_normaliser t)
        (fun d : token_offset m n => output_block m n r1 r2 W d.1 d.2) h.+1)
      (patch_token X) q f =
    convolution (p1 * rows) (p2 * columns) r1 r2 W X
      (p1 * q.1 + f.1.1)%N (p2 * q.2 + f.1.2)%N f.2.
Proof.
move=> T le1 le2 t_inj t_gt0.
have t_ne0 d : t d != 0 by rewrite gt_eqF.
have offsetE := @ringed_offsetE rows columns m n.
rewrite (scalar_heads offsetE t_inj t_ne0 _ _ _ _ (first := 1)) // => [|d [|//] _|h _|h _].
- exact: convolution_of_tokens.
- exact: no_constant.
- rewrite (sum_key_numbers _ _ offsetE) expr0n mulr0 add0r.
  by apply: eq_bigr => d _; rewrite subr0.
rewrite gt_eqF // /limit_normaliser (bigD1 (ord0, ord0)) //= ltr_paddr ?exprn_gt0 //.
by apply: sumr_ge0 => d _; rewrite exprn_ge0 // ltW.
Qed.
