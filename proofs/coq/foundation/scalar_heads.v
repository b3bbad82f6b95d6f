(** Heads that see a single number of each key: powers of it are their weights.

    A key at an offset δ from the query has the number t_δ, every other key one and the same number
    outside them; head h gives a key the weight number^h before normalisation. As the numbers are
    distinct, Lagrange's polynomials combine the heads into one that picks a single offset. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention image grid lagrange.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

(** On one axis: the offset from a place to a key, counted from 0, if it is one of the 2 m + 1. *)
Definition axis_offset (m y key : nat) : option 'I_m.*2.+1 :=
  if (y <= key)%N then insub (key - y)%N else None.

(** The offset at which a query sees a key, if it is one of the numbered ones. *)
Definition ringed_offset (rows columns m n : nat)
    (q : bare_grid rows columns) (k : ringed_grid rows columns m n) : option (token_offset m n) :=
  if axis_offset m q.1 k.1 is Some i then
    if axis_offset n q.2 k.2 is Some j then Some (i, j) else None
  else None.

Lemma axis_offsetE (m y key : nat) (i : 'I_m.*2.+1) :
  (axis_offset m y key == Some i) = (key == y + i)%N.
Proof.
rewrite /axis_offset; case: leqP => [le | lt]; last first.
  by apply/esym/negbTE; rewrite neq_ltn ltn_addr.
case: insubP => [j _ eqj | ge]; last first.
  by apply/esym/negbTE; apply: contraNneq ge => ->; rewrite addKn.
by rewrite (inj_eq Some_inj) -val_eqE /= eqj -(eqn_add2l y) subnKC.
Qed.

Lemma ringed_offsetE (rows columns m n : nat) (q : bare_grid rows columns)
    (k : ringed_grid rows columns m n) (d : token_offset m n) :
  (ringed_offset q k == Some d) = (k == ringed_key q d).
Proof.
case: k d => [k1 k2] [i j]; rewrite /ringed_offset -pair_eqE /= /pair_eq /= -!val_eqE /=.
rewrite -!axis_offsetE.
case: (axis_offset m q.1 k1) => [i'|] //=; case: (axis_offset n q.2 k2) => [j'|] /=; last first.
  by rewrite andbF.
by rewrite !(inj_eq Some_inj) -pair_eqE.
Qed.

Section ScalarHeads.

Variables (F : fieldType) (Offset Key In : finType) (Query Out : Type).
Variables (t : Offset -> F) (outside : F) (offset_of : Query -> Key -> option Offset).

(** The number of a key, and the weights of the head of power h. *)
Definition key_number (q : Query) (k : Key) : F :=
  if offset_of q k is Some d then t d else outside.

Definition scalar_attention (h : nat) (q : Query) : Key -> F :=
  softmax (fun k => key_number q k ^+ h).

(** Coefficient h of the polynomial that is one at t_δ and zero at all other numbers. *)
Definition offset_coefficient (d : Offset) (h : nat) : F :=
  lagrange_coefficient (outside :: codom t) (t d) h.

(** The map of the head of power h, for blocks M_δ and a normaliser Z_h. *)
Definition scalar_maps (Z : nat -> F) (M : Offset -> In -> Out -> F) (h : nat)
    (i : In) (o : Out) : F :=
  Z h * \sum_d offset_coefficient d h * M d i o.

Variable key : Query -> Offset -> Key.
Hypothesis offset_ofE : forall q k d, (offset_of q k == Some d) = (k == key q d).
Hypotheses (t_inj : injective t) (t_outside : forall d, t d != outside).

Lemma offset_of_key q d : offset_of q (key q d) = Some d.
Proof. by apply/eqP; rewrite offset_ofE. Qed.

Lemma key_inj q : injective (key q).
Proof. by move=> d d' eqd; apply: Some_inj; rewrite -!(offset_of_key q) eqd. Qed.

(** What all keys weigh together, whatever the query. *)
Lemma sum_key_numbers q (h : nat) :
  \sum_k key_number q k ^+ h =
    #|Key|%:R * outside ^+ h + \sum_d (t d ^+ h - outside ^+ h).
Proof.
have numberE k : key_number q k ^+ h =
    outside ^+ h + \sum_d (k == key q d)%:R * (t d ^+ h - outside ^+ h).
  rewrite /key_number; under eq_bigr do rewrite -offset_ofE.
  case: (offset_of q k) => [d|]; last by rewrite big1 ?addr0 // => d _; rewrite mul0r.
  rewrite (bigD1 d) //= eqxx mul1r big1 ?addr0 => [|d' /negbTE ne]; first by rewrite addrC subrK.
  by rewrite (inj_eq Some_inj) eq_sym ne mul0r.
rewrite (eq_bigr _ (fun k _ => numberE k)) big_split /= sumr_const.
congr (_ + _); first by rewrite mulr_natl.
rewrite exchange_big; apply: eq_bigr => d _ /=.
by rewrite (bigD1 (key q d)) //= eqxx mul1r big1 ?addr0 // => k /negbTE ->; rewrite mul0r.
Qed.

(** The powers of the numbers, with Lagrange's coefficients, sum to the choice of one offset. *)
Lemma combined_numbers q k d (n : nat) : (#|Offset| < n)%N ->
  \sum_(h < n) offset_coefficient d h * key_number q k ^+ h = (k == key q d)%:R.
Proof.
move=> ltn; rewrite -offset_ofE /key_number.
transitivity (lagrange_value (outside :: codom t) (t d) n
    (if offset_of q k is Some d' then t d' else outside)); first by [].
have few : (count (predC1 (t d)) (outside :: codom t) < n)%N.
  apply: leq_ltn_trans ltn; rewrite /= eq_sym t_outside add1n.
  rewrite -(size_codom t) -(count_predC (predC1 (t d))) -addn1 leq_add2l -has_count.
  by apply/hasP; exists (t d); [exact: codom_f | rewrite /= eqxx].
case: (offset_of q k) => [d'|]; rewrite lagrange_at //.
- by rewrite (inj_eq t_inj) (inj_eq Some_inj).
- by rewrite in_cons codom_f orbT.
- by rewrite eq_sym (negbTE (t_outside d)).
- by rewrite in_cons eqxx.
Qed.

(** Heads of n successive powers choose every offset at once, if the coefficients of the powers
    that are left out vanish. *)
Lemma scalar_heads (Z : nat -> F) (M : Offset -> In -> Out -> F) (X : Key -> In -> F) q o
    (first n : nat) :
  (#|Offset| < first + n)%N ->
  (forall d h, (h < first)%N -> offset_coefficient d h = 0) ->
  (forall h, (h < n)%N -> Z (first + h)%N = \sum_k key_number q k ^+ (first + h)) ->
  (forall h, (h < n)%N -> Z (first + h)%N != 0) ->
  attention_layer (fun h : 'I_n => scalar_attention (first + h))
      (fun h : 'I_n => scalar_maps Z M (first + h)) X q o =
    \sum_d feature_map (M d) (X (key q d)) o.
Proof.
move=> ltn vanish ZE nzZ.
have chosen k d : \sum_(h < n) offset_coefficient d (first + h) * key_number q k ^+ (first + h) =
    (k == key q d)%:R.
  rewrite -(combined_numbers q k d ltn) big_split_ord /= [X in _ = X + _]big1 ?add0r // => h _.
  by rewrite vanish ?mul0r.
rewrite layer_as_coefficients.
transitivity (\sum_k \sum_d (k == key q d)%:R * feature_map (M d) (X k) o).
  apply: eq_bigr => k _; rewrite /feature_map.
  under [RHS]eq_bigr do rewrite big_distrr.
  rewrite [RHS]exchange_big; apply: eq_bigr => i _ /=.
  under [RHS]eq_bigr do rewrite mulrCA.
  rewrite -big_distrr; congr (_ * _) => /=.
  under [RHS]eq_bigr do rewrite -chosen big_distrl /=.
  rewrite [RHS]exchange_big; apply: eq_bigr => h _ /=.
  rewrite /scalar_attention /softmax /scalar_maps -ZE // mulrA divfK ?nzZ // big_distrr /=.
  by apply: eq_bigr => d _; rewrite mulrA [key_number _ _ ^+ _ * _]mulrC.
rewrite exchange_big; apply: eq_bigr => d _ /=.
by rewrite (bigD1 (key q d)) //= eqxx mul1r big1 ?addr0 // => k /negbTE ->; rewrite mul0r.
Qed.

End ScalarHeads.
