(** S.headdim (1), in the limit: Σ_δ ⌈rank(M_δ) / d⌉ one-hot heads of width d.

    Let m ≥ r₁ / p₁ and n ≥ r₂ / p₂, let M_δ be the maps of the kernel W over an ordered field, and d ≥ 1.
    There are Σ_δ ⌈rank(M_δ) / d⌉ heads, each with an offset and a map through d features, such that for every
    number of patches, with a ring of m × n zero patches: the layer whose heads attend to their offsets with
    weight one is the zero-padded convolution; and the layers whose heads have the bias a there and 0 elsewhere
    tend to it as a grows, at every output of every image, for every exponential that is not bounded. One set of
    offsets and maps serves all sizes, and the maps do not depend on a.

    That one-hot heads cannot do with fewer is headdim_one_hot, exact layers are headdim_exact. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention image heads grid patches rank head_dimension.
From Convattn.foundation Require Import exponential sharp_limits flattened_kernel lower_bound split_heads.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Theorem headdim_sufficient (F : realFieldType) (In Out : finType) (p1 p2 m n r1 r2 dim : nat)
    (W : nat -> nat -> In -> Out -> F) :
  let maps d s t := flattened_kernel p1 p2 m n r1 r2 W (s, t) d in
  (r1 <= p1 * m)%N -> (r2 <= p2 * n)%N -> (0 < dim)%N ->
  exists (Head : finType) (look : Head -> token_offset m n)
      (V : Head -> patch_feature p1 p2 In -> 'I_dim -> F)
      (U : Head -> 'I_dim -> patch_feature p1 p2 Out -> F),
    [/\ #|Head| = (\sum_d heads_for_rank dim (family_rank (maps d)))%N,
        forall rows columns : nat, expresses r1 r2
          (fun h q => hard_attention F (@ringed_target rows columns m n) (look h) q)
          (fun h => through (V h) (U h)) (fun=> 0) W
      & forall E : F -> F, is_exponential E -> unbounded E ->
          forall (rows columns : nat) (X : image_type F In) (q : bare_grid rows columns)
            (t : patch_feature p1 p2 Out),
          tends_to
            (fun a => attention_layer
              (fun h (q : bare_grid rows columns) => softmax (bias_weights (E a) (ringed_target q (look h))))
              (fun h => through (V h) (U h)) (patch_token X) q t)
            (convolution (p1 * rows) (p2 * columns) r1 r2 W X
              (p1 * q.1 + t.1.1)%N (p2 * q.2 + t.1.2)%N t.2)].
Proof.
move=> maps le1 le2 lt0; pose count d := heads_for_rank dim (family_rank (maps d)).
have [d|V [U split]] := @split_maps F _ _ _ dim count maps; first exact: heads_for_rank_enough.
have equal rows columns : expresses r1 r2
    (fun (h : split_head count) q => hard_attention F (@ringed_target rows columns m n) (tag h) q)
    (fun h => through (V h) (U h)) (fun=> 0) W.
  move=> X q t; rewrite addr0 (split_layer (hard_attention F (@ringed_target rows columns m n)) _ _ _ split).
  by rewrite hard_heads -(convolution_of_tokens W X q t le1 le2).
exists (split_head count), (fun h => tag h), V, U; split=> [||E E_exp E_unbounded rows columns X q t].
- exact: card_split_head.
- exact: equal.
rewrite -(equal rows columns X q t) addr0; apply: layer_tends_to => h k.
exact: bias_tends_to_one_hot.
Qed.
