(** Bounds on linear maps and on rows of attention, and a head that is close to the mean of some tokens. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention total_variation dominated token_network.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** The sizes of a matrix's entries together. *)
Definition matrix_size (R : numDomainType) (In Out : finType) (M : In -> Out -> R) : R :=
  \sum_i \sum_o `|M i o|.

Section Bounds.

Variable R : realFieldType.

Lemma matrix_size_ge0 (In Out : finType) (M : In -> Out -> R) : 0 <= matrix_size M.
Proof. by rewrite sumr_ge0 // => i _; rewrite sumr_ge0. Qed.

Lemma feature_map_bound (In Out : finType) (M : In -> Out -> R) (x : In -> R) (bound : R) o :
  (forall i, `|x i| <= bound) -> `|feature_map M x o| <= matrix_size M * bound.
Proof.
move=> le; apply: le_trans (ler_norm_sum _ _ _) _; rewrite /matrix_size big_distrl.
apply: ler_sum => i _ /=; rewrite normrM mulrC.
apply: (@le_trans _ _ (`|M i o| * bound)); first by rewrite ler_wpmul2l.
rewrite ler_wpmul2r ?(le_trans _ (le i)) // (bigD1 o) //= ler_addl sumr_ge0 //.
Qed.

Lemma feature_map_difference (In : finType) (Out : Type) (M : In -> Out -> R) (x y : In -> R) o :
  feature_map M x o - feature_map M y o = feature_map M (fun i => x i - y i) o.
Proof. by rewrite -sumrB; apply: eq_bigr => i _; rewrite mulrBl. Qed.

Section Rows.

Variables (Key : finType) (Out : Type).
Implicit Types (a w : Key -> R) (y : Key -> Out -> R) (seen : {set Key}).

(** A mean of numbers is no greater than they are. *)
Lemma attend_bound a y o (bound : R) : (forall k, 0 <= a k) -> \sum_k a k = 1 ->
  (forall k, `|y k o| <= bound) -> `|attend a y o| <= bound.
Proof.
move=> ge0 one le; apply: le_trans (ler_norm_sum _ _ _) _.
rewrite -[leRHS]mul1r -one big_distrl; apply: ler_sum => k _ /=.
by rewrite normrM ger0_norm // ler_wpmul2l.
Qed.

Lemma attend_difference a (y z : Key -> Out -> R) o :
  attend a y o - attend a z o = attend a (fun k o => y k o - z k o) o.
Proof. by rewrite -sumrB; apply: eq_bigr => k _; rewrite mulrBr. Qed.

Lemma mean_row_ge0 seen k : 0 <= mean_row R seen k.
Proof. by rewrite divr_ge0 ?ler0n. Qed.

Lemma sum_mean_row seen t : t \in seen -> \sum_k mean_row R seen k = 1.
Proof.
move=> in_seen; rewrite -big_distrl /= -natr_sum.
have -> : (\sum_k (k \in seen) = #|seen|)%N.
  by rewrite -sum1_card [RHS]big_mkcond; apply: eq_bigr => k _; case: (k \in seen).
by rewrite mulfV // pnatr_eq0 -lt0n; apply/card_gt0P; exists t.
Qed.

(** Weights that are equal on a set, and elsewhere at most x times as large, are close to its mean. *)
Lemma attend_set_dominated w y o seen t (x bound : R) :
  (forall k, 0 < w k) -> t \in seen -> (forall k, k \in seen -> w k = w t) -> 0 <= x ->
  (forall k, k \notin seen -> w k <= x * w t) -> (forall k, `|y k o| <= bound) ->
  `|attend (softmax w) y o - attend (mean_row R seen) y o| <= x * (#|Key|%:R * (2%:R * bound)).
Proof.
move=> gt0 in_seen equal x_ge0 dominated le; set m := attend (mean_row R seen) y o.
have le_m : `|m| <= bound by apply: attend_bound (sum_mean_row in_seen) le; exact: mean_row_ge0.
have count : #|seen|%:R != 0 :> R by rewrite pnatr_eq0 -lt0n; apply/card_gt0P; exists t.
have centred : \sum_(k in seen) (y k o - m) = 0.
  rewrite sumrB sumr_const -[X in _ - X]mulr_natr /m /attend big_distrl /= [X in X - _]big_mkcond.
  rewrite -sumrB big1 // => k _; rewrite /mean_row mulrAC divfK //.
  by case: (k \in seen); rewrite ?mul1r ?mul0r subrr.
have -> : attend (softmax w) y o - m = \sum_k softmax w k * (y k o - m).
  under [RHS]eq_bigr do rewrite mulrBr.
  by rewrite sumrB -big_distrl /= (softmax_sums_to_one t gt0) mul1r.
rewrite (bigID (mem seen)) /= [X in X + _](eq_bigr (fun k => softmax w t * (y k o - m))); last first.
  by move=> k /equal e; rewrite /softmax e.
rewrite -big_distrr /= centred mulr0 add0r; apply: le_trans (ler_norm_sum _ _ _) _.
have -> : x * (#|Key|%:R * (2%:R * bound)) = \sum_(k : Key) x * (2%:R * bound).
  by rewrite sumr_const -[RHS]mulr_natl mulrCA.
rewrite big_mkcond; apply: ler_sum => k _ /=; rewrite normrM.
have far : `|y k o - m| <= 2%:R * bound.
  by rewrite mulr_natl mulr2n; apply: le_trans (ler_norm_sub _ _) (ler_add _ _).
have bound_ge0 : 0 <= 2%:R * bound by exact: le_trans far.
case: ifP => [out|_]; last by rewrite mulr_ge0.
apply: ler_pmul => //; rewrite ger0_norm; last by apply: softmax_nonnegative => k'; exact: ltW.
by apply: softmax_dominated (dominated _ out) => // k'; exact: ltW.
Qed.

End Rows.

End Bounds.
