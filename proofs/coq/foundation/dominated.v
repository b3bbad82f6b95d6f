(** Softmax heads near the limit: where every other weight is at most x times
    the target's, a head is off from its target by at most x times a constant.

    With scores -α s, s a natural number with a unique least value, the weights
    are x^s with x = exp(-α), and the heads tend to hard ones as α → ∞. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention heads.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Dominated.

Variables (F : numFieldType) (Key In : finType).
Implicit Types (X : Key -> In -> F) (w : Key -> F).

(** Weights of powers: the least exponent dominates the others. *)
Lemma power_dominated (s : Key -> nat) (target k : Key) (x : F) :
  0 <= x -> x <= 1 -> (s target < s k)%N -> x ^+ s k <= x * x ^+ s target.
Proof. by move=> ge0 le1 lt; rewrite -exprS; apply: ler_wiexpn2l; rewrite // qualifE. Qed.

Lemma softmax_dominated w (target k : Key) (x : F) :
  (forall k, 0 <= w k) -> 0 < w target -> w k <= x * w target -> softmax w k <= x.
Proof.
move=> ge0 gt0 le; rewrite /softmax.
have leS : w target <= \sum_k w k by rewrite (bigD1 target) //= ler_addl sumr_ge0.
have gtS : 0 < \sum_k w k by apply: lt_le_trans leS.
have ge0x : 0 <= x by rewrite -(pmulr_lge0 _ gt0) (le_trans _ le).
by rewrite ler_pdivr_mulr // (le_trans le) // ler_wpmul2l.
Qed.

Lemma attend_dominated w (target : Key) (x : F) X i :
  (forall k, 0 <= w k) -> 0 < w target -> (forall k, k != target -> w k <= x * w target) ->
  `|attend (softmax w) X i - X target i| <= x * \sum_k `|X k i - X target i|.
Proof.
move=> ge0 gt0 dominated.
have gtS : 0 < \sum_k w k by rewrite (bigD1 target) //= ltr_paddr ?sumr_ge0.
have -> : attend (softmax w) X i - X target i = \sum_k softmax w k * (X k i - X target i).
  under [RHS]eq_bigr do rewrite mulrBr.
  by rewrite sumrB -big_distrl /= sum_softmax ?mul1r // gt_eqF.
rewrite (le_trans (ler_norm_sum _ _ _)) // big_distrr ler_sum // => k _ /=.
rewrite normrM; have [->|ne] := eqVneq k target; first by rewrite subrr normr0 !mulr0.
rewrite ler_wpmul2r // ger0_norm; last by rewrite divr_ge0 // ltW.
by apply: (softmax_dominated (target := target)) => //; apply: dominated.
Qed.

Lemma layer_dominated (Head : finType) (Query Out : Type) (w : Head -> Query -> Key -> F)
    (target : Query -> Head -> Key) (V : Head -> In -> Out -> F) (x : F) X q o :
  (forall h k, 0 <= w h q k) -> (forall h, 0 < w h q (target q h)) ->
  (forall h k, k != target q h -> w h q k <= x * w h q (target q h)) ->
  `|attention_layer (fun h q => softmax (w h q)) V X q o
    - attention_layer (hard_attention F (fun q h => Some (target q h))) V X q o|
  <= x * \sum_h \sum_i (\sum_k `|X k i - X (target q h) i|) * `|V h i o|.
Proof.
move=> ge0 gt0 dominated; rewrite -sumrB (le_trans (ler_norm_sum _ _ _)) // big_distrr /=.
apply: ler_sum => h _; rewrite -sumrB (le_trans (ler_norm_sum _ _ _)) // big_distrr /=.
apply: ler_sum => i _; rewrite /hard_attention attend_one_hot -mulrBl normrM mulrA.
by rewrite ler_wpmul2r // attend_dominated // => k; apply: dominated.
Qed.

End Dominated.
