(** A certificate of the number of heads for one kernel: at finite scores the minor's order is too few.

    Let W be a K₁ × K₂ kernel of integers, n > 0, and the n × n minor of the entries F_δ(s, t) of n
    pairs (s, t) and n shifts δ be different from zero. Let σ be a shift at which the convolution
    puts nothing: F_σ(s, t) = 0 for all s and t. Take any grid with more than |δ| and |σ| patches on
    each axis. If a layer whose weights at the image's tokens all differ from zero, as those of a
    softmax of finite scores do, is the zero-padded convolution with W for every image of that grid,
    then it has more than n heads: whatever its value maps and bias, and whatever further tokens
    there are that do not depend on the image. It holds over every field of characteristic zero.
    That n + 1 heads suffice is [given_kernel.v]. Attention that depends on the image is not covered. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention image grid dilated bare_dilated integer_minor independent.
From Convattn.checker Require Import lower_bound.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Theorem kernel_heads (F : fieldType) (Head Extra In Out : finType) (n1 n2 p1 p2 K1 K2 : nat)
    (W : nat -> nat -> In -> Out -> int)
    (n : nat) (row : 'I_n -> patch_feature p1 p2 In * patch_feature p1 p2 Out)
    (column : 'I_n -> int * int) (unread : int * int)
    (A : Head -> bare_grid n1 n2 -> bare_grid n1 n2 + Extra -> F)
    (M : Head -> patch_feature p1 p2 In -> patch_feature p1 p2 Out -> F)
    (b : patch_feature p1 p2 Out -> F) (R : Extra -> patch_feature p1 p2 In -> F) :
  [char F] =i pred0 -> (0 < n)%N ->
  \det (\matrix_(i, j) offset_map K1 K2 1 1 W (column j).1 (column j).2 (row i).1 (row i).2) != 0 ->
  (forall (s : patch_feature p1 p2 In) (t : patch_feature p1 p2 Out),
     offset_map K1 K2 1 1 W unread.1 unread.2 s t = 0) ->
  (forall j, (`|(column j).1| < n1) && (`|(column j).2| < n2))%N ->
  (`|unread.1| < n1)%N && (`|unread.2| < n2)%N ->
  (forall h q k, A h q (inl k) != 0) ->
  (forall (X : image_type F In) q t,
     attention_layer A M (with_extra R X) q t + b t =
       dilated_convolution (p1 * n1) (p2 * n2) K1 K2 1 1 (fun i j c o => (W i j c o)%:~R) X
         (p1 * q.1 + t.1.1)%N (p2 * q.2 + t.1.2)%N t.2) ->
  (n < #|Head|)%N.
Proof.
move=> char0 n_gt0 nz blank small small_unread nzA eqL.
have le_n := lower_bound char0 nz small eqL.
rewrite ltn_neqAle le_n andbT; apply/eqP => eq_n.
pose entry i j := offset_map K1 K2 1 1 W (column j).1 (column j).2 (row i).1 (row i).2.
have /card_gt0P [h0 _] : (0 < #|Head|)%N by rewrite -eq_n.
have /fin_all_exists [at_ atE] := shifts_occur small.
have [[q k] /andP [/eqP e1 /eqP e2]] := shifts_occur (fun _ : unit => small_unread) tt.
have [] := negP (nzA h0 q k); apply/eqP.
apply: (@independent_columns F _ _ _ (fun i j => (entry i j)%:~R)
  (fun i h => M h (row i).1 (row i).2) (fun h j => A h (at_ j).1 (inl (at_ j).2))
  (fun h => A h q (inl k))) => [i j | | i].
- have /andP [/eqP f1 /eqP f2] := atE j.
  rewrite /entry -offset_map_intr -f1 -f2 -(convolution_coefficients eqL).
  by apply: eq_bigr => h _; rewrite mulrC.
- rewrite -eq_n; apply: (rank_of_minor (row := id) (column := id)).
  by rewrite intr_eq0_char0.
- under eq_bigr do rewrite mulrC.
  by rewrite (convolution_coefficients eqL) offset_map_intr e1 e2 blank.
Qed.
