(** Limits as a parameter grows, in any ordered field, and the layers that tend to hard attention. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Convattn.foundation Require Import attention heads exponential total_variation.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** f(a) tends to l as a grows. *)
Definition tends_to (R : realFieldType) (f : R -> R) (l : R) : Prop :=
  forall eps, 0 < eps -> exists a0, forall a, a0 <= a -> `|f a - l| <= eps.

(** It exceeds every bound; the real exponential does. *)
Definition unbounded (R : realFieldType) (E : R -> R) : Prop := forall b, exists x, b <= E x.

Section Limits.

Variable R : realFieldType.
Implicit Types (f g : R -> R) (c l : R).

Lemma eq_tends_to f g l : f =1 g -> tends_to f l -> tends_to g l.
Proof. by move=> efg lim eps /lim[a0 near]; exists a0 => a /near; rewrite efg. Qed.

Lemma tends_to_constant c : tends_to (fun=> c) c.
Proof. by move=> eps gt0; exists 0 => a _; rewrite subrr normr0 ltW. Qed.

Lemma tends_to_add f g l l' : tends_to f l -> tends_to g l' -> tends_to (fun a => f a + g a) (l + l').
Proof.
move=> limf limg eps gt0; have half_gt0 : 0 < eps / 2%:R by rewrite divr_gt0 // ltr0n.
have [a nearf] := limf _ half_gt0; have [b nearg] := limg _ half_gt0.
exists (Num.max a b) => x; rewrite le_maxl => /andP[/nearf lef /nearg leg].
have -> : f x + g x - (l + l') = (f x - l) + (g x - l') by ring.
have -> : eps = eps / 2%:R + eps / 2%:R by field.
exact: le_trans (ler_norm_add _ _) (ler_add lef leg).
Qed.

Lemma tends_to_scale f l c : tends_to f l -> tends_to (fun a => f a * c) (l * c).
Proof.
move=> lim eps gt0; have c_gt0 : 0 < `|c| + 1 by rewrite ltr_paddl ?ltr01.
have [a near] := lim (eps / (`|c| + 1)) (divr_gt0 gt0 c_gt0).
exists a => x /near le_x; rewrite -mulrBl normrM.
apply: (@le_trans _ _ (eps / (`|c| + 1) * (`|c| + 1))); last by rewrite divfK // gt_eqF.
by apply: ler_pmul => //; rewrite ler_addl.
Qed.

Lemma tends_to_sum (T : finType) (f : T -> R -> R) (l : T -> R) :
  (forall t, tends_to (f t) (l t)) -> tends_to (fun a => \sum_t f t a) (\sum_t l t).
Proof.
move=> lim; elim: index_enum => [|t s IH].
  by rewrite big_nil; apply: (eq_tends_to (f := fun=> 0)) (tends_to_constant 0) => a; rewrite big_nil.
rewrite big_cons; apply: eq_tends_to (tends_to_add (lim t) IH) => a.
by rewrite [RHS]big_cons.
Qed.

(** A layer whose attention tends to A₀ tends to the layer with A₀, on every image. *)
Lemma layer_tends_to (Head Key In : finType) (Query Out : Type)
    (A : R -> Head -> Query -> Key -> R) (A0 : Head -> Query -> Key -> R)
    (M : Head -> In -> Out -> R) (X : Key -> In -> R) (q : Query) (o : Out) :
  (forall h k, tends_to (fun a => A a h q k) (A0 h q k)) ->
  tends_to (fun a => attention_layer (A a) M X q o) (attention_layer A0 M X q o).
Proof.
move=> lim; rewrite layer_as_coefficients.
pose f a := \sum_k feature_map (fun i o => \sum_h A a h q k * M h i o) (X k) o.
apply: (eq_tends_to (f := f)) => [a|]; first by rewrite layer_as_coefficients.
apply: tends_to_sum => k; apply: tends_to_sum => i.
apply: (eq_tends_to (f := fun a => (\sum_h A a h q k * M h i o) * X k i)) => [a|].
  by rewrite mulrC.
rewrite mulrC; apply: tends_to_scale; apply: tends_to_sum => h; exact: tends_to_scale.
Qed.

End Limits.

Section HardLimit.

Variables (R : realFieldType) (E : R -> R) (Key : finType).
Hypotheses (E_exp : is_exponential E) (E_unbounded : unbounded E).

Lemma exponential_opp x : E (- x) = (E x)^-1.
Proof.
apply: (mulfI (exponential_nonzero E_exp x)).
by rewrite -exponential_add // subrr exponential_zero // mulfV // exponential_nonzero.
Qed.

(** exp(-a) tends to zero. *)
Lemma exponential_vanishes c : tends_to (fun a => E (- a) * c) 0.
Proof.
rewrite -(mul0r c); apply: tends_to_scale => eps gt0.
have [a0 large] := E_unbounded eps^-1; exists a0 => a lea.
rewrite subr0 ger0_norm; last exact/ltW/exponential_positive.
rewrite exponential_opp.
rewrite -[leRHS]invrK lef_pinv ?posrE ?invr_gt0 //; last exact: exponential_positive.
exact: le_trans large (exponential_monotone E_exp lea).
Qed.

(** If every other weight is at most exp(-a) times the target's, softmax is at most
    N exp(-a) from one-hot, at every key. *)
Lemma softmax_gap (w : Key -> R) (t : Key) (a : R) k :
  (forall k, 0 < w k) -> (forall k, k != t -> w k <= E (- a) * w t) ->
  `|softmax w k - one_hot R (Some t) k| <= E (- a) * #|Key|%:R.
Proof.
move=> gt0 gap; have S_gt0 := sum_positive t gt0.
have le_sum : w t <= \sum_k w k by rewrite (bigD1 t) //= ler_addl sumr_ge0 // => k' _; exact: ltW.
have other k' : k' != t -> softmax w k' <= E (- a).
  move=> neq; rewrite /softmax ler_pdivr_mulr //; apply: le_trans (gap _ neq) _.
  by rewrite ler_pmul2l // exponential_positive.
have N_ge1 : 1 <= #|Key|%:R :> R by rewrite ler1n; apply/card_gt0P; exists t.
rewrite /one_hot (inj_eq Some_inj); case: (eqVneq k t) => [->|neq].
  rewrite distrC ger0_norm; last first.
    by rewrite subr_ge0 /softmax ler_pdivr_mulr // mul1r.
  have -> : true%:R - softmax w t = \sum_(k' | k' != t) softmax w k'.
    by rewrite -(softmax_sums_to_one t gt0) (bigD1 t) //= addrC addKr.
  apply: le_trans (ler_sum _ (fun k' neq => other k' neq)) _.
  rewrite sumr_const -[leLHS]mulr_natr ler_pmul2l ?exponential_positive // ler_nat.
  exact: max_card.
rewrite subr0 ger0_norm; last by apply: softmax_nonnegative => k'; exact: ltW.
apply: le_trans (other _ neq) _.
by rewrite ler_pmulr // exponential_positive.
Qed.

(** Weights with that gap for every a tend to one-hot. *)
Lemma softmax_tends_to_one_hot (w : R -> Key -> R) (t k : Key) :
  (forall a k, 0 < w a k) -> (forall a k, 0 <= a -> k != t -> w a k <= E (- a) * w a t) ->
  tends_to (fun a => softmax (w a) k) (one_hot R (Some t) k).
Proof.
move=> gt0 gap eps eps_gt0; have [a0 near] := exponential_vanishes #|Key|%:R eps_gt0.
exists (Num.max a0 0) => a; rewrite le_maxl => /andP[/near small ge0].
have bound := softmax_gap k (gt0 a) (fun k' => gap a k' ge0).
by apply: le_trans bound (le_trans _ small); rewrite subr0 ler_norm.
Qed.

(** A relative bias does, as it grows. *)
Lemma bias_tends_to_one_hot (t k : Key) :
  tends_to (fun a => softmax (bias_weights (E a) (Some t)) k) (one_hot R (Some t) k).
Proof.
apply: softmax_tends_to_one_hot => [a k'|a k' _ /negbTE neq].
  by rewrite /bias_weights; case: ifP => _; rewrite ?ltr01 ?exponential_positive.
rewrite /bias_weights (inj_eq Some_inj) neq eqxx -exponential_add // addNr.
by rewrite exponential_zero.
Qed.

End HardLimit.
