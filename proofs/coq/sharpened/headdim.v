(** S.headdim, the rank bound: N_H · d_H is at least the rank of either other matricisation.

    Let the value map of every head go through d_H features, M_h = V_h U_h, and let the layer be the
    zero-padded convolution for all images. Then N_H · d_H ≥ rk_in and N_H · d_H ≥ rk_out: rk_in is
    the rank of the maps of all offsets side by side (rows: features of the key's token), rk_out
    that of the maps one below the other (columns: features of the query's token). This holds
    over every field, for more than m rows and n columns of patches, with a ring of any width or
    with none, whatever the attention, so long as it does not depend on the image, and with any
    bias.

    The bound for finite scores is headdim_finite, that for limits headdim_limit; how many heads suffice is
    headdim_sufficient. Not covered: layers that are the convolution at a single interior query only. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention image grid bare rank lower_bound.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Theorem headdim (F : fieldType) (In Out Head Feature : finType)
    (rows columns p1 p2 a b m n r1 r2 : nat)
    (A : Head -> bare_grid rows columns -> ringed_grid rows columns a b -> F)
    (V : Head -> patch_feature p1 p2 In -> Feature -> F)
    (U : Head -> Feature -> patch_feature p1 p2 Out -> F)
    (bias : patch_feature p1 p2 Out -> F) (W : nat -> nat -> In -> Out -> F) :
  (r1 <= p1 * m)%N -> (r2 <= p2 * n)%N -> (m < rows)%N -> (n < columns)%N ->
  expresses r1 r2 A (fun h s t => \sum_e V h s e * U h e t) bias W ->
  (maxn (family_rank (in_matricisation p1 p2 m n r1 r2 W))
        (family_rank (out_matricisation p1 p2 m n r1 r2 W)) <= #|Head| * #|Feature|)%N.
Proof.
move=> reach1 reach2 large1 large2 equal.
pose weight h d := A h (joined_query large1 large2 d) (image_key a b (joined_key large1 large2 d)).
have through s t d := value_factors reach1 reach2 equal large1 large2 s t d (fun _ _ _ => erefl).
rewrite -card_prod geq_max; apply/andP; split.
  apply: (family_rank_product (L := fun s he => V he.1 s he.2)
    (R := fun he dt => weight he.1 dt.1 * U he.1 he.2 dt.2)) => s [d t].
  by rewrite /in_matricisation through; apply: eq_bigr => he _; rewrite mulrCA.
apply: (family_rank_product (L := fun ds he => weight he.1 ds.1 * V he.1 ds.2 he.2)
  (R := fun he t => U he.1 he.2 t)) => -[d s] t.
by rewrite /out_matricisation through; apply: eq_bigr => he _; rewrite mulrA.
Qed.
