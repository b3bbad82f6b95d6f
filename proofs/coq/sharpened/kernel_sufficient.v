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
From Convattn.foundation Require Import flattened_kernel lower_bound.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory Num.Theory Order.Theory.
Local Open Scope ring_scope.

(** The weights of a head that favours the offset δ by N w_δ. *)
Definition offset_weights (F : fieldType) (rows columns m n : nat) (w : token_offset m n -> F)
    (q : bare_grid rows columns) (k : ringed_grid rows columns m n) : F :=
  1 + #|ringed_grid rows columns m n|%:R * \sum_(d | k == ringed_key q d) w d.

Section Attend.

Variables (F : fieldType) (rows columns m n : nat) (w : token_offset m n -> F).
Variable q : bare_grid rows columns.

(** A sum over the offsets, by their keys. *)
Lemma sum_by_key (g : ringed_grid rows columns m n -> F) :
  \sum_k (\sum_(d | k == ringed_key q d) w d) * g k = \sum_d w d * g (ringed_key q d).
Proof.
under eq_bigr do rewrite big_distrl big_mkcond /=.
rewrite exchange_big; apply: eq_bigr => d _ /=.
by rewrite -big_mkcond (big_pred1 (ringed_key q d)).
Qed.

(** Such a head gives (Σ_δ w_δ X_(q+δ) + mean) / (1 + Σ_δ w_δ). *)
Lemma attend_offsets (In : Type) (X : ringed_grid rows columns m n -> In -> F) i :
  #|ringed_grid rows columns m n|%:R != 0 :> F -> 1 + \sum_d w d != 0 ->
  attend (softmax (offset_weights w q)) X i =
    (\sum_d w d * X (ringed_key q d) i + mean_token X i) / (1 + \sum_d w d).
Proof.
set N : F := #|_|%:R => nzN nzZ; have total : \sum_k offset_weights w q k = N * (1 + \sum_d w d).
  rewrite big_split sum_one -big_distrr mulrDr mulr1; congr (_ + _ * _).
  under [RHS]eq_bigr do rewrite -[w _]mulr1.
  by rewrite -(sum_by_key (fun=> 1)); apply: eq_bigr => k _; rewrite mulr1.
rewrite /attend /softmax total; under eq_bigr do rewrite mulrAC.
rewrite -big_distrl /= -(sum_by_key (fun k => X k i)).
have -> : mean_token X i = (\sum_k X k i) / N by [].
set plain := \sum_k X k i; set favoured := \sum_k _ * X k i.
have -> : \sum_k offset_weights w q k * X k i = plain + N * favoured.
  rewrite big_distrr -big_split; apply: eq_bigr => k _ /=.
  by rewrite mulrDl mul1r -mulrA.
by field; rewrite nzZ nzN.
Qed.

End Attend.

Section Heads.

Variables (F : realFieldType) (In Out : finType) (p1 p2 m n r1 r2 : nat).
Variable W : nat -> nat -> In -> Out -> F.

Local Notation kernel := (flattened_kernel p1 p2 m n r1 r2 W).

(** A basis of the row space, and the coordinates of the rows. *)
Definition basis (i : 'I_(family_rank kernel)) (d : token_offset m n) : F :=
  row_base (family_matrix kernel) i (enum_rank d).
Definition coordinate (i : 'I_(family_rank kernel)) s t : F :=
  col_base (family_matrix kernel) (enum_rank (s, t)) i.

Lemma kernel_in_basis s t d : kernel (s, t) d = \sum_i coordinate i s t * basis i d.
Proof.
have := mulmx_base (family_matrix kernel).
by move/matrixP/(_ (enum_rank (s, t)) (enum_rank d)); rewrite !mxE !enum_rankK => <-.
Qed.

(** What makes every entry of the basis nonnegative when it is added. *)
Definition lift : F := \sum_i \sum_d `|basis i d|.

Lemma lift_ge0 : 0 <= lift.
Proof. by rewrite sumr_ge0 // => i _; rewrite sumr_ge0. Qed.

Lemma lift_basis i d : 0 <= basis i d + lift.
Proof.
have : `|basis i d| <= lift.
  rewrite /lift (bigD1 i) //= (bigD1 d) //= -addrA ler_addl.
  by rewrite addr_ge0 ?sumr_ge0 // => j _; rewrite sumr_ge0.
move=> le; rewrite -ler_subl_addl sub0r; apply: le_trans le.
by rewrite -normrN ler_norm.
Qed.

Definition offset_numbers (h : option 'I_(family_rank kernel)) (d : token_offset m n) : F :=
  (if h is Some i then basis i d else 0) + lift.

(** The value maps, of a total that does not depend on the number of keys. *)
Definition total (h : option 'I_(family_rank kernel)) : F := 1 + \sum_d offset_numbers h d.
Definition offset_maps (h : option 'I_(family_rank kernel)) s t : F :=
  total h * if h is Some i then coordinate i s t else - \sum_i coordinate i s t.

Lemma offset_numbers_ge0 h d : 0 <= offset_numbers h d.
Proof. by case: h => [i|]; rewrite ?lift_basis //= /offset_numbers add0r lift_ge0. Qed.

Lemma total_neq0 h : total h != 0.
Proof.
apply: lt0r_neq0; rewrite /total ltr_paddr ?ltr01 // sumr_ge0 // => d _.
exact: offset_numbers_ge0.
Qed.

Lemma offset_heads (rows columns : nat) : (r1 <= p1 * m)%N -> (r2 <= p2 * n)%N ->
  expresses r1 r2 (fun h (q : bare_grid rows columns) => softmax (offset_weights (offset_numbers h) q))
    offset_maps (fun=> 0) W.
Proof.
move=> le1 le2 X q t; rewrite addr0 -(convolution_of_tokens W X q t le1 le2).
set keys := ringed_grid rows columns m n.
have nzN : #|keys|%:R != 0 :> F.
  by rewrite pnatr_eq0 -lt0n; apply/card_gt0P; exists (image_key m n q).
pose Y : keys -> patch_feature p1 p2 In -> F := patch_token X.
pose seen d s := Y (ringed_key q d) s; pose mean s := mean_token Y s.
pose value h s := \sum_d offset_numbers h d * seen d s + mean s.
have head h : feature_map (offset_maps h) (attend (softmax (offset_weights (offset_numbers h) q))
    Y) t = \sum_s value h s *
      (if h is Some i then coordinate i s t else - \sum_i coordinate i s t).
  apply: eq_bigr => s _; rewrite attend_offsets ?total_neq0 // /offset_maps mulrA divfK //.
  exact: total_neq0.
rewrite /attention_layer sum_option !head.
under [X in _ + X]eq_bigr do rewrite head.
rewrite exchange_big -big_split [RHS]exchange_big; apply: eq_bigr => s _ /=.
rewrite mulrN big_distrr /= -sumrN -big_split /=.
transitivity (\sum_i \sum_d basis i d * seen d s * coordinate i s t).
  apply: eq_bigr => i _; rewrite -mulNr -mulrDl -big_distrl /=; congr (_ * _).
  rewrite /value /offset_numbers; under eq_bigr do rewrite add0r.
  under [X in _ + (X + _)]eq_bigr do rewrite mulrDl.
  by rewrite big_split /=; ring.
rewrite exchange_big; apply: eq_bigr => d _ /=.
have := kernel_in_basis s t d; rewrite /flattened_kernel /= => ->.
by rewrite big_distrr; apply: eq_bigr => i _; rewrite -mulrA mulrCA [basis i d * _]mulrC.
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
exists (@offset_numbers F In Out p1 p2 m n r1 r2 W), (@offset_maps F In Out p1 p2 m n r1 r2 W).
split=> [|h d|rows columns h q k|rows columns].
- by rewrite card_option card_ord.
- exact: offset_numbers_ge0.
- rewrite /offset_weights ltr_paddr ?ltr01 // mulr_ge0 ?ler0n // sumr_ge0 // => d _.
  exact: offset_numbers_ge0.
exact: offset_heads.
Qed.
