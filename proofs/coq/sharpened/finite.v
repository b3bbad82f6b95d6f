(** S.finite: one head more makes the constructions exact at finite parameters.

    In the setting of L21's Theorem 1, give the head of an offset the weight e at its target and 1
    elsewhere before normalisation (e = exp M; M ≠ 0 is e ≠ 1), and add one head whose attention is
    uniform. With the maps M_δ / (1 - ε) and -ε / (1 - ε) Σ_δ M_δ, where ε = N / (e + N - 1) and N
    is the number of keys, the layer is the zero-padded convolution, exactly: for every kernel,
    image, size and field in which N and e + N - 1 are not zero (as they never are for real e > 0).

    These maps know N; with a bias that knows N instead, one set of maps serves every size: finite_sizes. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention image heads grid patches.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Theorem finite (F : fieldType) (In Out : finType)
    (rows columns p1 p2 m n r1 r2 : nat) (e : F)
    (W : nat -> nat -> In -> Out -> F) (X : image_type F In)
    (q : bare_grid rows columns) (t : patch_feature p1 p2 Out) :
  let N := #|ringed_grid rows columns m n| in
  (r1 <= p1 * m)%N -> (r2 <= p2 * n)%N ->
  e != 1 -> N%:R != 0 :> F -> N%:R + e - 1 != 0 ->
  attention_layer
      (finite_attention (@ringed_target rows columns m n) e)
      (finite_maps (fun d : token_offset m n => output_block m n r1 r2 W d.1 d.2) N e)
      (patch_token X) q t =
    convolution (p1 * rows) (p2 * columns) r1 r2 W X
      (p1 * q.1 + t.1.1)%N (p2 * q.2 + t.1.2)%N t.2.
Proof.
move=> N le1 le2 ne1 nzN nzZ; rewrite finite_heads // /ringed_target.
exact: convolution_of_tokens.
Qed.
