(** S.headdim, with numbers: K = 3, P = 16, three channels in and out, heads of width 64.

    Over every field that holds the absolute values of its numbers: for every 3 × 3 kernel Σ_δ ⌈rank(M_δ) / 64⌉ is at
    most 20, and ⌈rank(Σ_δ M_δ) / 64⌉ at most 12, so that 20 one-hot heads of width 64 do in the limit
    (headdim_sufficient) and 32 heads exactly at finite scores (headdim_exact). And there is a kernel such that every
    layer of heads of width 64 that is its zero-padded convolution for all images has at least 20 heads, whatever
    they attend to, so long as it does not depend on the image: of two patches a side or more, with a ring of any
    width or with none, and with any bias.

    Limits of layers whose value maps grow without bound are not layers: sixteen heads come near (width_sixteen). *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import zify.
From Convattn.foundation Require Import attention image grid rank head_dimension.
From Convattn.foundation Require Import flattened_kernel lower_bound split_heads joined_features.
From Convattn.sharpened Require Import headdim_triangular.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Theorem headdim_twenty (F : numFieldType) (C : finType) : #|C| = 3%N ->
  (forall W : nat -> nat -> C -> C -> F,
    let maps (d : token_offset 1 1) s t := flattened_kernel 16 16 1 1 1 1 W (s, t) d in
    (\sum_d heads_for_rank 64 (family_rank (maps d)) <= 20)%N /\
    (heads_for_rank 64 (family_rank (fun s t => (\sum_d maps d s t)%R)) <= 12)%N) /\
  (exists W : nat -> nat -> C -> C -> F,
    forall (Head : finType) (rows columns a b : nat)
        (A : Head -> bare_grid rows columns -> ringed_grid rows columns a b -> F)
        (V : Head -> patch_feature 16 16 C -> 'I_64 -> F)
        (U : Head -> 'I_64 -> patch_feature 16 16 C -> F)
        (bias : patch_feature 16 16 C -> F),
      (2 <= rows)%N -> (2 <= columns)%N ->
      expresses 1 1 A (fun h => through (V h) (U h)) bias W ->
      (20 <= #|Head|)%N).
Proof.
move=> three; split=> [W maps|].
  have features : #|patch_feature 16 16 C| = 768%N by rewrite !card_prod !card_ord three.
  split; last first.
    apply: (@leq_trans (heads_for_rank 64 768)) => //.
    by apply: heads_for_rank_monotone; rewrite -features rank_leq_row.
  pose least (d : token_offset 1 1) := heads_for_rank 64
    ((if d.1 == 1%N :> nat then 16 else 1) * (if d.2 == 1%N :> nat then 16 else 1) * 3)%N.
  apply: (@leq_trans (\sum_d least d)).
    apply: leq_sum => d _; apply: heads_for_rank_monotone.
    have size := card_joined_features C d; rewrite three in size; rewrite -size.
    by apply: rank_rows => s t; exact: joined_featuresP.
  have -> : (\sum_d least d)%N = (\sum_(i < 3) \sum_(j < 3) least (i, j))%N.
    by rewrite pair_bigA; apply: eq_bigr => -[].
  by rewrite !big_ord_recl !big_ord0.
have [i0 [i1 differ]] : exists i0 i1 : C, i0 != i1.
  have : (1 < #|C|)%N by rewrite three.
  by case/card_gt1P => i0 [i1 [_ _ ne]]; exists i0, i1.
have [W bound] := @headdim_triangular F C i0 i1 16 16 1 1 differ isT isT.
exists W => Head rows columns a b A V U bias large1 large2 equal.
have [le _] := bound Head rows columns a b 64%N A V U bias large1 large2 isT equal.
by apply: leq_trans le; rewrite three.
Qed.
