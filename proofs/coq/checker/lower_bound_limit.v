(** A certificate of a lower bound holds in the limit: fewer heads stay away by a fixed distance.

    In the setting of [lower_bound.v], over any subfield of the complex numbers: there is an ε > 0,
    which depends on the kernel and the minor alone, such that a layer that is within ε of the
    convolution, at every output and for every image of zeros and ones, has at least n heads. So no
    sequence of layers with fewer heads tends to the convolution, whether their values stay bounded
    or not, and whatever the grid of more than |δ| patches on each axis. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention image grid rank dilated bare bare_dilated.
From Convattn.foundation Require Import integer_minor near_identity.
From Convattn.checker Require Import lower_bound.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory Num.Theory Order.Theory.
Local Open Scope ring_scope.

Theorem lower_bound_limit (F : numFieldType) (In Out : finType) (p1 p2 K1 K2 : nat)
    (W : nat -> nat -> In -> Out -> int)
    (n : nat) (row : 'I_n -> patch_feature p1 p2 In * patch_feature p1 p2 Out)
    (column : 'I_n -> int * int) :
  \det (\matrix_(i, j) offset_map K1 K2 1 1 W (column j).1 (column j).2 (row i).1 (row i).2) != 0 ->
  exists2 eps : F, 0 < eps &
  forall (Head Extra : finType) (n1 n2 : nat)
    (A : Head -> bare_grid n1 n2 -> bare_grid n1 n2 + Extra -> F)
    (M : Head -> patch_feature p1 p2 In -> patch_feature p1 p2 Out -> F)
    (b : patch_feature p1 p2 Out -> F) (R : Extra -> patch_feature p1 p2 In -> F),
  (forall j, (`|(column j).1| < n1) && (`|(column j).2| < n2))%N ->
  (forall (X : nat -> nat -> In -> bool) q t,
     let Z : image F In := fun y x c => (X y x c)%:R in
     `|attention_layer A M (with_extra R Z) q t + b t -
       dilated_convolution (p1 * n1) (p2 * n2) K1 K2 1 1 (fun i j c o => (W i j c o)%:~R) Z
         (p1 * q.1 + t.1.1)%N (p2 * q.2 + t.1.2)%N t.2| <= eps) ->
  (n <= #|Head|)%N.
Proof.
move=> nz.
pose entry i j := offset_map K1 K2 1 1 W (column j).1 (column j).2 (row i).1 (row i).2.
pose G i j : F := (entry i j)%:~R.
have [ball pos nearby] := family_rank_nearby G.
have pos2 : 0 < ball / 2%:R by rewrite divr_gt0 ?ltr0n.
exists (ball / 2%:R) => // Head Extra n1 n2 A M b R small near.
apply: leq_trans (_ : family_rank G <= _)%N.
  by apply: (rank_of_minor (row := id) (column := id)); rewrite intr_eq0.
have /fin_all_exists [at_ atE] := shifts_occur small.
pose L i h := M h (row i).1 (row i).2.
pose C h j := A h (at_ j).1 (inl (at_ j).2).
apply: leq_trans (nearby (fun i j => \sum_h L i h * C h j) _) (family_rank_product (fun i j => erefl)).
move=> i j; have /andP [/eqP e1 /eqP e2] := atE j.
rewrite /G /entry -offset_map_intr -e1 -e2 (eq_bigr (fun h => C h j * L i h)) => [|h _]; last first.
  by rewrite mulrC.
by rewrite [ball]splitr; apply: (coefficients_near near).
Qed.
