(** A certificate of a lower bound holds in the limit: fewer heads stay away by a fixed distance.

    In the setting of [lower_bound.v], over every field that holds the absolute values of its numbers,
    such as the rationals, the reals and the complex numbers: there is an ε > 0, which depends on the
    kernel and the minor alone, such that a layer that is within ε of the convolution, at every output
    and for every image of zeros and ones, has at least n heads. So no sequence of layers with fewer
    heads tends to the convolution, whether their values stay bounded or not, and whatever the grid of
    more than |δ| patches on each axis. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention image grid rank dilated bare bare_dilated.
From Convattn.foundation Require Import integer_minor near_identity.
From Convattn.checker Require Import lower_bound.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory Num.Theory Order.Theory.
Local Open Scope ring_scope.

(** A layer that is close to the convolution has coefficients close to its. *)
Lemma coefficients_near (F : numFieldType) (In Out Head Extra : finType) (n1 n2 p1 p2 K1 K2 d1 d2 : nat)
    (A : Head -> bare_grid n1 n2 -> bare_grid n1 n2 + Extra -> F)
    (M : Head -> patch_feature p1 p2 In -> patch_feature p1 p2 Out -> F)
    (b : patch_feature p1 p2 Out -> F) (R : Extra -> patch_feature p1 p2 In -> F)
    (W : nat -> nat -> In -> Out -> F) (eps : F) :
  (forall (X : nat -> nat -> In -> bool) q t,
     let Z : image_type F In := fun y x c => (X y x c)%:R in
     `|attention_layer A M (with_extra R Z) q t + b t -
       dilated_convolution (p1 * n1) (p2 * n2) K1 K2 d1 d2 W Z
         (p1 * q.1 + t.1.1)%N (p2 * q.2 + t.1.2)%N t.2| <= eps) ->
  forall q k s t, `|\sum_h A h q (inl k) * M h s t -
    offset_map K1 K2 d1 d2 W (axis_shift q.1 k.1) (axis_shift q.2 k.2) s t| <= eps + eps.
Proof.
move=> near q k s t.
pose C k' s t := \sum_h A h q (inl k') * M h s t.
pose D k' := offset_map K1 K2 d1 d2 W (axis_shift q.1 k'.1) (axis_shift q.2 k'.2) :
  patch_feature p1 p2 In -> patch_feature p1 p2 Out -> F.
pose rest := \sum_(e : Extra) feature_map (fun i o => \sum_h A h q (inr e) * M h i o) (R e) t + b t.
have close (U : bare_grid n1 n2 -> patch_feature p1 p2 In -> bool) :
    `|\sum_k' feature_map (C k') (fun s' => (U k' s')%:R) t + rest -
      \sum_k' feature_map (D k') (fun s' => (U k' s')%:R) t| <= eps.
  pose X y x c := image_of_tokens (fun k' s' => (U k' s')%:R : F) y x c == 1.
  have tokens k' s' : bare_token (fun y x c => (X y x c)%:R) k' s' = (U k' s')%:R :> F.
    rewrite /bare_token /X; have := bare_token_image (fun k' s' => (U k' s')%:R : F) k' s'.
    by rewrite /bare_token => ->; case: (U k' s'); rewrite ?eqxx // eq_sym oner_eq0.
  have same (B : bare_grid n1 n2 -> patch_feature p1 p2 In -> patch_feature p1 p2 Out -> F) :
      \sum_k' feature_map (B k') (bare_token (fun y x c => (X y x c)%:R) k') t =
      \sum_k' feature_map (B k') (fun s' => (U k' s')%:R) t.
    by apply: eq_bigr => k' _; apply: eq_feature_map.
  by have := near X q t; rewrite /= layer_with_extra convolution_of_bare -/rest !same.
have pick (B : bare_grid n1 n2 -> patch_feature p1 p2 In -> patch_feature p1 p2 Out -> F) :
    \sum_k' feature_map (B k') (fun s' => ((k' == k) && (s' == s))%:R) t = B k s t.
  rewrite (bigD1 k) //= [X in _ + X]big1 ?addr0 => [|k' /negbTE ne].
    rewrite /feature_map (bigD1 s) //= !eqxx mul1r big1 ?addr0 // => s' /negbTE ->.
    by rewrite andbF mul0r.
  by rewrite /feature_map big1 // => s' _; rewrite ne mul0r.
have small : `|rest| <= eps.
  have zero (B : bare_grid n1 n2 -> patch_feature p1 p2 In -> patch_feature p1 p2 Out -> F) :
      \sum_k' feature_map (B k') (fun=> false%:R) t = 0.
    by rewrite big1 // => k' _; rewrite /feature_map big1 // => s' _; rewrite mul0r.
  by have := close (fun _ _ => false); rewrite !zero add0r subr0.
have := close (fun k' s' => (k' == k) && (s' == s)); rewrite !pick => one.
have -> : \sum_h A h q (inl k) * M h s t - D k s t = C k s t + rest - D k s t - rest.
  by rewrite addrAC addrK.
by apply: le_trans (ler_norm_sub _ _) _; exact: ler_add.
Qed.

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
     let Z : image_type F In := fun y x c => (X y x c)%:R in
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
