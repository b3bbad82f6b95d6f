(** S.causal (c): T + 1 causal heads whose scores know the number of visible keys are exact.

    Fix a leak 0 < ε < 1 in an ordered field. At the query q, which sees n = q + 1 keys, give head d
    the bias log(1 + n (1/ε - 1)) > 0 at the distance d and none elsewhere, and one more head no
    bias. With the maps W_d / (1 - ε) and -ε / (1 - ε) Σ_d W_d, in which neither n nor the length
    occurs, the layer is the causal convolution at every query that has all T taps, for every kernel,
    every length and every sequence. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring zify.
From Convattn.foundation Require Import attention heads leaky causal.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** The weights by distance of the heads at a query that sees [n] keys. *)
Definition counted_weights (F : fieldType) (T : nat) (leak : F) (n : nat) (h : option 'I_T) (d : nat) : F :=
  if h is Some target then (if d == target then leaky_weight leak n else 1) else 1.

(** Under the mask the head of a distance that occurs has the total n + e - 1 = n/ε. *)
Lemma sum_counted (F : numFieldType) (N T : nat) (leak : F) (q : 'I_N) (h : option 'I_T) :
  0 < leak < 1 -> (T <= q.+1)%N ->
  \sum_k causal_weights (counted_weights leak q.+1 h) q k =
    if h is Some _ then q.+1%:R / leak else q.+1%:R.
Proof.
move=> range full; rewrite sum_causal_weights; case: h => [d|] /=; last first.
  by rewrite sumr_const card_ord.
have ltd : (d < q.+1)%N by apply: leq_trans full.
rewrite -(leaky_weight_total q.+1 range).
have := sum_bias_weights (leaky_weight leak q.+1) (Ordinal ltd); rewrite card_ord => <-.
by apply: eq_bigr => e _; rewrite /bias_weights (inj_eq Some_inj) -(inj_eq val_inj).
Qed.

Theorem causal_finite (F : numFieldType) (In : finType) (Out : Type) (T : nat) (leak : F)
    (W : nat -> In -> Out -> F) :
  0 < leak < 1 ->
  exists V : option 'I_T -> In -> Out -> F, forall N : nat,
    (forall q : 'I_N, 1 < leaky_weight leak q.+1) /\
    causal_expresses T
      (fun h => fun q : 'I_N => softmax (causal_weights (counted_weights leak q.+1 h) q)) V W.
Proof.
move=> range; exists (leaky_maps leak (fun d : 'I_T => W d)) => N.
split=> [q|X q o full]; first by apply: leaky_weight_gt1; rewrite ?pnatr_eq0.
pose C (k : 'I_N) i o : F := if (k <= q)%N && (q - k < T)%N then W (q - k)%N i o else 0.
transitivity (\sum_k feature_map (C k) (X k) o); last first.
  rewrite /causal_convolution [RHS]big_mkcond; apply: eq_bigr => k _ /=.
  by rewrite /C; case: ifP => // _; rewrite /feature_map big1 // => i _; rewrite mulr0.
move: X; apply/layer_coefficients => k i; rewrite /C sum_option /softmax /=.
rewrite (sum_counted None range full) [X in _ + X](eq_bigr (fun d : 'I_T =>
  causal_weights (counted_weights leak q.+1 (Some d)) q k / (q.+1%:R / leak) *
    (W d i o / (1 - leak)))) => [|d _]; last by rewrite (sum_counted (Some d) range full).
rewrite /causal_weights; case: (leqP k q) => le /=; last first.
  by rewrite !mul0r add0r big1 // => d _; rewrite !mul0r.
have [gt0 lt1] := andP range.
have nz : leak != 0 by rewrite gt_eqF.
have nz1 : 1 - leak != 0 by rewrite subr_eq0 gt_eqF.
have keys : q.+1%:R != 0 :> F by rewrite pnatr_eq0.
have each (d : 'I_T) :
    counted_weights leak q.+1 (Some d) (q - k) / (q.+1%:R / leak) * (W d i o / (1 - leak)) =
    (if (q - k)%N == d then W d i o else 0) + leak / (1 - leak) / q.+1%:R * W d i o.
  rewrite /= /leaky_weight; move: (q.+1%:R) keys => n keys.
  by case: ifP => _; field; rewrite keys nz nz1.
rewrite (eq_bigr _ (fun d _ => each d)) big_split /= -big_distrr /=.
have -> : 1 / q.+1%:R * (- (leak / (1 - leak)) * \sum_(d < T) W d i o) =
    - (leak / (1 - leak) / q.+1%:R * \sum_(d < T) W d i o) by
  move: (q.+1%:R) keys => n keys; field; rewrite keys nz1.
rewrite addrCA addNr addr0 -big_mkcond /=.
case: (ltnP (q - k) T) => [lt | ge].
  by rewrite (big_pred1 (Ordinal lt)) // => d; rewrite eq_sym -[RHS](inj_eq val_inj).
by rewrite big_pred0 // => d; apply/negbTE; rewrite neq_ltn (leq_trans (ltn_ord d)) ?orbT.
Qed.
