(** S.finite: one set of value maps serves every image size.

    Fix a leak 0 < ε < 1 in an ordered field. Give the head of an offset the bias log e at its target, where
    e = 1 + N (1/ε - 1) > 1 and N is the number of keys, and one more head no bias. With the maps
    M_δ / (1 - ε) and -ε / (1 - ε) Σ_δ M_δ, in which N does not occur, the layer is the zero-padded convolution
    for every kernel, for every number of patches, with a ring of m × n zero patches, and every image. The bias
    alone knows the size of the image. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention image heads grid patches lower_bound offset_heads leaky.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Theorem finite_sizes (F : numFieldType) (In Out : finType) (p1 p2 m n r1 r2 : nat) (leak : F)
    (W : nat -> nat -> In -> Out -> F) :
  (r1 <= p1 * m)%N -> (r2 <= p2 * n)%N -> 0 < leak < 1 ->
  exists M : option (token_offset m n) -> patch_feature p1 p2 In -> patch_feature p1 p2 Out -> F,
  forall rows columns : nat,
    let e := leaky_weight leak #|ringed_grid rows columns m n| in
    ((0 < rows)%N -> (0 < columns)%N -> 1 < e) /\
    expresses r1 r2 (finite_attention (@ringed_target rows columns m n) e) M (fun=> 0) W.
Proof.
move=> le1 le2 range.
exists (leaky_maps leak (fun d : token_offset m n => output_block m n r1 r2 W d.1 d.2)) => rows columns e.
split=> [lt1 lt2|X q t].
  apply: leaky_weight_gt1 => //.
  exact: (keys_neq0 F m n ((Ordinal lt1, Ordinal lt2) : bare_grid rows columns)).
have keys : #|ringed_grid rows columns m n|%:R != 0 :> F := keys_neq0 F m n q.
have [ne1 nz] := leaky_nonzero range keys.
rewrite addr0 -(convolution_of_tokens W X q t le1 le2).
transitivity (attention_layer (finite_attention (@ringed_target rows columns m n) e)
    (finite_maps (fun d : token_offset m n => output_block m n r1 r2 W d.1 d.2) #|ringed_grid rows columns m n| e)
    (patch_token X) q t).
  by apply: eq_bigr => h _; apply: eq_feature_map => // i; rewrite leaky_mapsE.
by rewrite finite_heads.
Qed.
