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

Variables (F : realFieldType) (In Out : finType) (p1 p2 m n r1 r2 : nat).
Variable W : nat -> nat -> In -> Out -> F.

Local Notation rho := (family_rank (flattened_kernel p1 p2 m n r1 r2 W)).
Local Notation lift := (lift p1 p2 m n r1 r2 W).

(** The basis lifted, and the lift alone for the head more. *)
Definition offset_numbers (h : option 'I_rho) (d : token_offset m n) : F :=
  if h is Some i then basis i d + lift else lift.

(** The coordinates, and what takes the lift back. *)
Definition offset_maps (h : option 'I_rho) s t : F :=
  if h is Some i then coordinate i s t else - \sum_i coordinate i s t.

Lemma offset_numbers_ge0 h d : 0 <= offset_numbers h d.
Proof. by case: h => [i|]; rewrite ?lift_basis ?lift_ge0. Qed.

Lemma offset_maps_sum s t : \sum_h offset_maps h s t = 0.
Proof. by rewrite sum_option addNr. Qed.

Lemma offset_kernel s t d :
  \sum_h offset_numbers h d * offset_maps h s t = flattened_kernel p1 p2 m n r1 r2 W (s, t) d.
Proof.
rewrite sum_option /= kernel_in_basis mulrN big_distrr /= addrC -sumrB.
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
move=> le1 le2; exists [finType of option 'I_(family_rank (flattened_kernel p1 p2 m n r1 r2 W))].
exists (@offset_numbers F In Out p1 p2 m n r1 r2 W).
exists (fun h s t => (1 + \sum_d offset_numbers h d) * offset_maps h s t).
split=> [|h d|rows columns h q k|rows columns X q t].
- by rewrite card_option card_ord.
- exact: offset_numbers_ge0.
- by apply: offset_weights_gt0 => d; exact: offset_numbers_ge0.
have nz h : 1 + \sum_d @offset_numbers F In Out p1 p2 m n r1 r2 W h d != 0.
  by apply: offset_total_neq0 => d; exact: offset_numbers_ge0.
rewrite addr0 -(convolution_of_tokens W X q t le1 le2) (offset_layer _ _ _ (keys_neq0 _ q) nz).
rewrite [X in _ + X]big1 ?addr0 => [|s _]; last by rewrite offset_maps_sum mulr0.
by apply: eq_bigr => d _; apply: eq_feature_map => // s; exact: offset_kernel.
Qed.
