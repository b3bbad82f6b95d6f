(** Layers that are close to a convolution have maps that are close to its own. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention image grid patches bare rank.
From Convattn.foundation Require Import flattened_kernel lower_bound.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory Num.Theory Order.Theory.
Local Open Scope ring_scope.

Section NearLayers.

Variables (F : numFieldType) (In Out Head : finType).
Variables (rows columns p1 p2 a b m n r1 r2 : nat).
Variable A : Head -> bare_grid rows columns -> ringed_grid rows columns a b -> F.
Variable M : Head -> patch_feature p1 p2 In -> patch_feature p1 p2 Out -> F.
Variable bias : patch_feature p1 p2 Out -> F.
Variable W : nat -> nat -> In -> Out -> F.

Hypothesis reach1 : (r1 <= p1 * m)%N.
Hypothesis reach2 : (r2 <= p2 * n)%N.
Hypothesis large1 : (m < rows)%N.
Hypothesis large2 : (n < columns)%N.

(** An image of zeros and ones. *)
Definition binary_image (X : nat -> nat -> In -> bool) : image_type F In := fun y x c => (X y x c)%:R.

(** How far an output is off. *)
Definition output_error (X : image_type F In) (q : bare_grid rows columns) (t : patch_feature p1 p2 Out) : F :=
  `|attention_layer A M (patch_token X) q t + bias t -
    convolution (p1 * rows) (p2 * columns) r1 r2 W X
      (p1 * q.1 + t.1.1)%N (p2 * q.2 + t.1.2)%N t.2|.

(** The layer's map at an offset. *)
Definition layer_map (st : patch_feature p1 p2 In * patch_feature p1 p2 Out) (d : token_offset m n) : F :=
  \sum_h M h st.1 st.2 *
    A h (joined_query large1 large2 d) (image_key a b (joined_key large1 large2 d)).

(** Unless its maps are that close, a layer is off at some output of some image. *)
Lemma off_somewhere (eps : F) : 0 < eps ->
  ~ (forall st d, `|layer_map st d - flattened_kernel p1 p2 m n r1 r2 W st d| <= eps + eps) ->
  exists (X : nat -> nat -> In -> bool) (q : bare_grid rows columns) (t : patch_feature p1 p2 Out),
    eps < output_error (binary_image X) q t.
Proof.
move=> pos far.
pose pixels (o : option (bare_grid rows columns * patch_feature p1 p2 In)) y x c :=
  if o is Some (k, s) then
    (y == p1 * k.1 + s.1.1)%N && (x == p2 * k.2 + s.1.2)%N && (c == s.2) else false.
pose off o q t := output_error (binary_image (pixels o)) q t.
have [/existsP [o /existsP [q /existsP [t big]]]|] :=
    boolP [exists o, [exists q, [exists t, eps < off o q t]]].
  by exists (pixels o), q, t.
rewrite negb_exists => /forallP all_near; case: far => -[s t] d.
have near o q' t' : off o q' t' <= eps.
  rewrite real_leNgt ?normr_real ?gtr0_real //; move: (all_near o).
  by rewrite negb_exists => /forallP/(_ q'); rewrite negb_exists => /forallP/(_ t').
have bias_near : `|bias t| <= eps.
  have := near None (joined_query large1 large2 d) t.
  by rewrite /off /output_error attention_blank convolution_blank add0r subr0.
have := near (Some (joined_key large1 large2 d, s)) (joined_query large1 large2 d) t.
rewrite /off /output_error attention_unit (convolution_unit _ _ _ _ _ reach1 reach2).
rewrite (big_pred1 d) => [le | d']; last by rewrite joined_only.
have -> : layer_map (s, t) d - flattened_kernel p1 p2 m n r1 r2 W (s, t) d =
    \sum_h A h (joined_query large1 large2 d) (image_key a b (joined_key large1 large2 d)) * M h s t
      + bias t - flattened_kernel p1 p2 m n r1 r2 W (s, t) d - bias t.
  rewrite addrAC addrK; congr (_ - _); apply: eq_bigr => h _; exact: mulrC.
by apply: le_trans (ler_norm_sub _ _) _; apply: ler_add.
Qed.

End NearLayers.
