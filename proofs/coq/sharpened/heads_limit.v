(** S.heads in the limit: too few heads stay away from the convolution by a fixed distance.

    Let m ≥ r₁ / p₁ and n ≥ r₂ / p₂. For every kernel there is an ε > 0 such that every layer with fewer
    heads than rank F, F being the flattened kernel, is off its zero-padded convolution by more
    than ε: at some output of some image whose pixels are zeros and ones. So no sequence of such
    layers tends to the convolution, whether their values stay bounded or not. The ε serves all
    layers, all image sizes of more than m rows and n columns of patches, with a ring of any width
    or with none, whatever the attention, so long as it does not depend on the image. The field
    is any subfield of the complex numbers.

    With the kernels of heads, heads_pixels and heads_patches this makes their bounds hold in the
    limit. Not covered: attention that depends on the image. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention image grid patches rank.
From Convattn.foundation Require Import flattened_kernel independent lower_bound near_identity.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory Num.Theory Order.Theory.
Local Open Scope ring_scope.

Theorem heads_limit (F : numFieldType) (In Out : finType) (p1 p2 m n r1 r2 : nat)
    (W : nat -> nat -> In -> Out -> F) :
  (r1 <= p1 * m)%N -> (r2 <= p2 * n)%N ->
  exists2 eps, 0 < eps &
  forall (Head : finType) (rows columns a b : nat)
      (A : Head -> bare_grid rows columns -> ringed_grid rows columns a b -> F)
      (M : Head -> patch_feature p1 p2 In -> patch_feature p1 p2 Out -> F)
      (bias : patch_feature p1 p2 Out -> F),
    (m < rows)%N -> (n < columns)%N ->
    (#|Head| < family_rank (flattened_kernel p1 p2 m n r1 r2 W))%N ->
    exists (X : nat -> nat -> In -> bool) (q : bare_grid rows columns) (t : patch_feature p1 p2 Out),
      let Z : image F In := fun y x c => (X y x c)%:R in
      eps < `|attention_layer A M (patch_token Z) q t + bias t -
        convolution (p1 * rows) (p2 * columns) r1 r2 W Z
          (p1 * q.1 + t.1.1)%N (p2 * q.2 + t.1.2)%N t.2|.
Proof.
move=> reach1 reach2; pose kernel := flattened_kernel p1 p2 m n r1 r2 W.
have [ball pos nearby] := family_rank_nearby kernel.
have pos2 : 0 < ball / 2%:R by rewrite divr_gt0 ?ltr0n.
exists (ball / 2%:R) => // Head rows columns a b A M bias large1 large2 few.
pose pixels (o : option (bare_grid rows columns * patch_feature p1 p2 In)) y x c :=
  if o is Some (k, s) then
    (y == p1 * k.1 + s.1.1)%N && (x == p2 * k.2 + s.1.2)%N && (c == s.2) else false.
pose Z o : image F In := fun y x c => (pixels o y x c)%:R.
pose off o q t := `|attention_layer A M (patch_token (Z o)) q t + bias t -
  convolution (p1 * rows) (p2 * columns) r1 r2 W (Z o)
    (p1 * q.1 + t.1.1)%N (p2 * q.2 + t.1.2)%N t.2|.
have [/existsP [o /existsP [q /existsP [t far]]]|] :=
    boolP [exists o, [exists q, [exists t, ball / 2%:R < off o q t]]].
  by exists (pixels o), q, t.
rewrite negb_exists => /forallP all_near; suff : (family_rank kernel <= #|Head|)%N.
  by rewrite leqNgt few.
have near o q t : off o q t <= ball / 2%:R.
  rewrite real_leNgt ?normr_real ?gtr0_real //; move: (all_near o).
  by rewrite negb_exists => /forallP/(_ q); rewrite negb_exists => /forallP/(_ t).
pose joined d h := A h (joined_query large1 large2 d) (image_key a b (joined_key large1 large2 d)).
pose G st d := \sum_h M h st.1 st.2 * joined d h.
apply: leq_trans (nearby G _) (family_rank_product (fun st d => erefl (G st d))).
move=> [s t] d; have bias_near : `|bias t| <= ball / 2%:R.
  have := near None (joined_query large1 large2 d) t.
  by rewrite /off attention_blank convolution_blank add0r subr0.
have := near (Some (joined_key large1 large2 d, s)) (joined_query large1 large2 d) t.
rewrite /off attention_unit (convolution_unit _ _ _ _ _ reach1 reach2).
rewrite (big_pred1 d) => [le | d']; last by rewrite joined_only.
have -> : G (s, t) d - kernel (s, t) d =
    \sum_h A h (joined_query large1 large2 d) (image_key a b (joined_key large1 large2 d)) * M h s t
      + bias t - kernel (s, t) d - bias t.
  rewrite addrAC addrK; congr (_ - _); apply: eq_bigr => h _; exact: mulrC.
apply: le_trans (ler_norm_sub _ _) _; rewrite [X in _ <= X](splitr ball); exact: ler_add.
Qed.

