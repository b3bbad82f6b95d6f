(** A certificate of a lower bound: fewer heads than the order of the minor never do.

    Let W be a K₁ × K₂ kernel of integers, and F_δ its map between two patches of p₁ × p₂ pixels at
    the shift δ. Choose n pairs (s, t) of an input and an output feature, and n shifts δ, and let
    the n × n minor of the entries F_δ(s, t), an integer, be different from zero. Take any grid with
    more than |δ| patches on each axis for all these δ. If a layer with heads H is the zero-padded
    convolution with W, for every image of that grid, then it has at least n heads: whatever its
    rows of attention are by position (they need not be softmaxes), whatever its value maps and its
    bias, and whatever further tokens there are that do not depend on the image, such as a ring of
    zeros. It holds over every field of characteristic zero. Attention that depends on the image is
    not covered; limits are, in [lower_bound_limit.v]. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention image grid rank dilated bare_dilated integer_minor.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

(** The maps of an integer kernel, in a field. *)
Lemma offset_map_intr (F : fieldType) (In Out : finType) (p1 p2 K1 K2 d1 d2 : nat)
    (W : nat -> nat -> In -> Out -> int) z1 z2 (s : patch_feature p1 p2 In)
    (t : patch_feature p1 p2 Out) :
  offset_map K1 K2 d1 d2 (fun i j c o => (W i j c o)%:~R : F) z1 z2 s t =
    (offset_map K1 K2 d1 d2 W z1 z2 s t)%:~R.
Proof.
rewrite /offset_map rmorph_sum; apply: eq_bigr => i _ /=.
by rewrite rmorph_sum; apply: eq_bigr => j _ /=; case: ifP.
Qed.

Theorem lower_bound (F : fieldType) (Head Extra In Out : finType) (n1 n2 p1 p2 K1 K2 : nat)
    (W : nat -> nat -> In -> Out -> int)
    (n : nat) (row : 'I_n -> patch_feature p1 p2 In * patch_feature p1 p2 Out)
    (column : 'I_n -> int * int)
    (A : Head -> bare_grid n1 n2 -> bare_grid n1 n2 + Extra -> F)
    (M : Head -> patch_feature p1 p2 In -> patch_feature p1 p2 Out -> F)
    (b : patch_feature p1 p2 Out -> F) (R : Extra -> patch_feature p1 p2 In -> F) :
  [char F] =i pred0 ->
  \det (\matrix_(i, j) offset_map K1 K2 1 1 W (column j).1 (column j).2 (row i).1 (row i).2) != 0 ->
  (forall j, (`|(column j).1| < n1) && (`|(column j).2| < n2))%N ->
  (forall (X : image_type F In) q t,
     attention_layer A M (with_extra R X) q t + b t =
       dilated_convolution (p1 * n1) (p2 * n2) K1 K2 1 1 (fun i j c o => (W i j c o)%:~R) X
         (p1 * q.1 + t.1.1)%N (p2 * q.2 + t.1.2)%N t.2) ->
  (n <= #|Head|)%N.
Proof.
move=> char0 nz small eqL.
pose entry i j := offset_map K1 K2 1 1 W (column j).1 (column j).2 (row i).1 (row i).2.
apply: leq_trans (_ : family_rank (fun i j => (entry i j)%:~R : F) <= _)%N.
  by apply: (rank_of_minor (row := id) (column := id)); rewrite intr_eq0_char0.
have /fin_all_exists [at_ atE] := shifts_occur small.
apply: (family_rank_product (L := fun i h => M h (row i).1 (row i).2)
          (R := fun h j => A h (at_ j).1 (inl (at_ j).2))) => i j.
have /andP [/eqP e1 /eqP e2] := atE j.
rewrite /entry -offset_map_intr -e1 -e2 -(convolution_coefficients eqL).
by apply: eq_bigr => h _; rewrite mulrC.
Qed.
