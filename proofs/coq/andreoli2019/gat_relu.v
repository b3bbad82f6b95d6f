(** A19.gat: with the leaky ReLU, ν matters, but it never changes the order of the weights.

    Let the leaky ReLU have the slope c, 0 < c < 1. The weight of key m at query n is the column-wise
    softmax of leaky(μ·z_m + ν·z_n + ξ) over the keys that the graph lets through. Then

    - for two keys with μ·z = 1 and -1, the query's ν·z_n changes their weights: they are not the same
      for ν·z_n = 1 as for ν·z_n = 0. So ν is not redundant, as it is without the ReLU (gat.v);
    - of two keys that a query sees, one has at least the weight of the other iff its μ·z is at least
      the other's, whatever ν and ξ: they never change the order.

    Over every ordered field, for any exponential: positive, taking sums to products, not decreasing,
    and 1 at 0 only. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention exponential common_factor.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Definition leaky_relu (R : realFieldType) (c s : R) : R := if 0 <= s then s else c * s.

(** The weight of the key m for a query that adds [t] = ν·z_n + ξ to the keys' scores [s] = μ·z. *)
Definition graph_attention (R : realFieldType) (Key : finType) (E : R -> R) (c : R)
    (mask : Key -> bool) (s : Key -> R) (t : R) (m : Key) : R :=
  softmax (fun k => E (leaky_relu c (s k + t)) * (mask k)%:R) m.

Section Leaky.

Variables (R : realFieldType) (E : R -> R) (c : R).
Hypotheses (E_exp : is_exponential E) (E_one : forall x, E x = 1 -> x = 0).

(** An exponential that is 1 at 0 only increases strictly. *)
Lemma exponential_le x y : (E x <= E y) = (x <= y).
Proof.
apply/idP/idP => [le | ]; last exact: (exponential_monotone E_exp).
have [// | lt] := lerP x y; have ge := exponential_monotone E_exp (ltW lt).
have e : E x = E y by apply/eqP; rewrite eq_le le ge.
have /E_one/eqP : E (x - y) = 1; last by rewrite subr_eq0 => /eqP exy; rewrite exy ltxx in lt.
apply: (mulIf (exponential_nonzero E_exp y)).
by rewrite -(exponential_add E_exp) subrK mul1r.
Qed.

(** The leaky ReLU increases strictly too. *)
Lemma leaky_relu_le (x y : R) : 0 < c -> (leaky_relu c x <= leaky_relu c y) = (x <= y).
Proof.
move=> lt0c; rewrite /leaky_relu; have [le0x|ltx0] := lerP 0 x; have [le0y|lty0] := lerP 0 y => //.
- have lt1 : c * y < 0 by rewrite pmulr_rlt0.
  by rewrite !leNgt (lt_le_trans lt1 le0x) (lt_le_trans lty0 le0x).
- have lt1 : c * x < 0 by rewrite pmulr_rlt0.
  by rewrite (ltW (lt_le_trans lt1 le0y)) (ltW (lt_le_trans ltx0 le0y)).
by rewrite ler_pmul2l.
Qed.

Lemma weights_ordered (Key : finType) (mask : Key -> bool) (s : Key -> R) t m m' :
  0 < c -> mask m -> mask m' ->
  (graph_attention E c mask s t m <= graph_attention E c mask s t m') = (s m <= s m').
Proof.
move=> lt0c seen seen'; rewrite /graph_attention /softmax.
have pos k : 0 <= E (leaky_relu c (s k + t)) * (mask k)%:R.
  by rewrite mulr_ge0 ?ler0n // ltW // (exponential_positive E_exp).
rewrite ler_pmul2r ?seen ?seen' ?mulr1 ?exponential_le ?leaky_relu_le ?ler_add2r // invr_gt0.
rewrite (bigD1 m) //= ltr_paddr ?sumr_ge0 // seen mulr1; exact: (exponential_positive E_exp).
Qed.

(** The weight of the key of score 1, beside one of score -1. *)
Lemma weight_of_two (t : R) :
  graph_attention E c xpredT (fun k : bool => if k then 1 else - 1) t true =
    (1 + E (leaky_relu c (- 1 + t) - leaky_relu c (1 + t)))^-1.
Proof.
rewrite /graph_attention /softmax big_bool /= !mulr1.
set a := leaky_relu c (1 + t); set b := leaky_relu c (- 1 + t).
have nz := exponential_nonzero E_exp a.
rewrite -[b in LHS](subrK a) (exponential_add E_exp) -[X in X / _]mul1r -[X in _ / (X + _)]mul1r.
by rewrite -mulrDl -mulf_div divff // mulr1 mul1r.
Qed.

Lemma query_matters : 0 < c < 1 ->
  let weight t := graph_attention E c xpredT (fun k : bool => if k then 1 else - 1) t true in
  weight 1 != weight 0.
Proof.
case/andP=> lt0c ltc1 /=; rewrite !weight_of_two (inj_eq invr_inj) (inj_eq (addrI 1)).
have -> : leaky_relu c (- 1 + 1) = 0 by rewrite addNr /leaky_relu lexx.
have -> : leaky_relu c (1 + 1) = 2%:R by rewrite /leaky_relu addr_ge0 ?ler01.
have -> : leaky_relu c (- 1 + 0) = - c by rewrite addr0 /leaky_relu oppr_ge0 ler10 mulrN1.
have -> : leaky_relu c (1 + 0) = 1 by rewrite addr0 /leaky_relu ler01.
apply/eqP => e; have le : E (- c - 1) <= E (0 - 2%:R) by rewrite e.
have := le; rewrite exponential_le sub0r -opprD ler_opp2 (_ : 2%:R = 1 + 1) // ler_add2r.
by rewrite leNgt ltc1.
Qed.

End Leaky.

Theorem gat_relu (R : realFieldType) (E : R -> R) (c : R) :
  is_exponential E -> (forall x, E x = 1 -> x = 0) -> 0 < c < 1 ->
  (graph_attention E c xpredT (fun k : bool => if k then 1 else - 1) 1 true !=
     graph_attention E c xpredT (fun k : bool => if k then 1 else - 1) 0 true) /\
  forall (Key : finType) (mask : Key -> bool) (s : Key -> R) t m m', mask m -> mask m' ->
    (graph_attention E c mask s t m <= graph_attention E c mask s t m') = (s m <= s m').
Proof.
move=> E_exp E_one c01; split; first exact: query_matters.
by move=> Key mask s t m m'; case/andP: c01 => lt0c _; exact: weights_ordered.
Qed.
