(** S.kernel, sufficiency: heads at finite scores, one more than the rank of the flattened kernel.

    Let m ≥ r₁ / p₁ and n ≥ r₂ / p₂. For every kernel W over an ordered field there are rank F + 1
    heads, F being W's flattened form, each with numbers w_hδ ≥ 0, one for each offset, and a value
    map M_h, such that for every number of patches the layer of these heads is the zero-padded
    convolution: for every image, with a ring of m × n zero patches. Head h attends by the softmax of
    the weights 1 + N Σ_δ w_hδ [key = query + δ], N being the number of keys: they are positive,
    so their logarithms are finite scores. One set of numbers and maps serves all sizes.

    That so many are needed is kernel. Not covered: what S.kernel says of limits. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Convattn.foundation Require Import attention image heads grid patches rank.
From Convattn.foundation Require Import flattened_kernel lower_bound offset_heads.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory Num.Theory Order.Theory.
Local Open Scope ring_scope.

Section Heads.

Variables (F : realFieldType) (Row Column : finType) (M : Row -> Column -> F).

(** The basis lifted, and the lift alone for the head more. *)
Definition lifted_numbers (h : option 'I_(family_rank M)) (d : Column) : F :=
  if h is Some i then basis M i d + lift_amount M else lift_amount M.

(** The coordinates, and what takes the lift back. *)
Definition lifted_maps (h : option 'I_(family_rank M)) (st : Row) : F :=
  if h is Some i then coordinate M i st else - \sum_i coordinate M i st.

Lemma lifted_numbers_ge0 h d : 0 <= lifted_numbers h d.
Proof. by case: h => [i|]; rewrite ?lift_basis ?lift_ge0. Qed.

Lemma lifted_maps_sum st : \sum_h lifted_maps h st = 0.
Proof. by rewrite sum_option addNr. Qed.

Lemma lifted_family st d : \sum_h lifted_numbers h d * lifted_maps h st = M st d.
Proof.
rewrite sum_option /= family_in_basis mulrN big_distrr /= addrC -sumrB.
by apply: eq_bigr => i _; ring.
Qed.

End Heads.

Theorem kernel_sufficient (F : realFieldType) (In Out : finType) (p1 p2 m n r1 r2 : nat)
    (W : nat -> nat -> In -> Out -> F) :
  (r1 <= p1 * m)%N -> (r2 <= p2 * n)%N ->
  exists (Head : finType) (w : Head -> token_offset m n -> F)
      (M : Head -> patch_feature p1 p2 In -> patch_feature p1 p2 Out -> F),
    [/\ #|Head| = (family_rank (flattened_kernel p1 p2 m n r1 r2 W)).+1,
        forall h d, 0 <= w h d,
        forall (rows columns : nat) h (q : bare_grid rows columns) k, 0 < offset_weights (w h) q k
      & forall rows columns : nat, expresses r1 r2
          (fun h (q : bare_grid rows columns) => softmax (offset_weights (w h) q))
          M (fun=> 0) W].
Proof.
move=> le1 le2; pose kernel := flattened_kernel p1 p2 m n r1 r2 W.
exists [finType of option 'I_(family_rank kernel)], (lifted_numbers (M := kernel)).
have ge0 h d : 0 <= lifted_numbers (M := kernel) h d := lifted_numbers_ge0 h d.
exists (fun h s t => (1 + \sum_d lifted_numbers h d) * lifted_maps h (s, t)).
split=> [|//|rows columns h q k|rows columns X q t].
- by rewrite card_option card_ord.
- exact: offset_weights_gt0.
rewrite addr0 -(convolution_of_tokens W X q t le1 le2).
rewrite offset_layer; [|exact: keys_neq0 q|by move=> h; exact: offset_total_neq0].
rewrite [X in _ + X]big1 ?addr0 => [|s _]; last by rewrite lifted_maps_sum mulr0.
by apply: eq_bigr => d _; apply: eq_feature_map => // s; exact: lifted_family.
Qed.
