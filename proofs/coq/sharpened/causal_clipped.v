(** S.causal (a): causal heads whose biases are constant from the distance D on (T5, clipped).

    Under a causal mask let head h give the key at the distance d = q - k the weight u_h(d) > 0, the
    same for all d ≥ D, and let the layer be, at all queries that have all T ≤ D taps of N tokens, the
    causal convolution with a kernel that is not zero. Then H ≥ N - D + 1. So no fixed number of such
    heads is exact at every length. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring zify.
From Convattn.foundation Require Import attention causal.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** Σ_h a_h/(c_h + b_h j) is the same number at more places than there are terms only if it is zero. *)
Section Fractions.

Variables (F : numFieldType) (Head : finType) (a b c : Head -> F) (w : F).
Hypothesis positive : forall h, 0 < b h.

Definition line h : {poly F} := (b h)%:P * 'X + (c h)%:P.

Lemma size_line h : size (line h) = 2%N.
Proof. by rewrite /line size_MXaddC polyC_eq0 gt_eqF //= size_polyC gt_eqF. Qed.

Lemma line_neq0 h : line h != 0. Proof. by rewrite -size_poly_gt0 size_line. Qed.

Lemma size_lines (P : pred Head) : size (\prod_(h | P h) line h) = #|P|.+1.
Proof.
rewrite size_prod => [|h _]; last exact: line_neq0.
rewrite (eq_bigr (fun=> 2%N)) => [|h _]; last exact: size_line.
by rewrite sum_nat_const; lia.
Qed.

Definition numerator : {poly F} :=
  w%:P * \prod_h line h - \sum_h (a h)%:P * \prod_(h' | h' != h) line h'.

Lemma numerator_root (j : F) : (forall h, c h + b h * j != 0) ->
  \sum_h a h / (c h + b h * j) = w -> root numerator j.
Proof.
move=> nz e; rewrite /root /numerator !hornerE horner_prod horner_sum -e subr_eq0.
have at_j h : (line h).[j] = c h + b h * j by rewrite /line !hornerE addrC.
rewrite mulr_suml; apply/eqP/eq_bigr => h _.
rewrite hornerM hornerC horner_prod (bigD1 h) //= at_j mulrA mulfVK //.
Qed.

Lemma numerator_size : (size numerator <= #|Head|.+1)%N.
Proof.
rewrite /numerator (leq_trans (size_add _ _)) // geq_max size_opp; apply/andP; split.
  by rewrite mul_polyC (leq_trans (size_scale_leq _ _)) // size_lines.
apply: (leq_trans (size_sum _ _ _)); apply/bigmax_leqP => h _.
rewrite mul_polyC (leq_trans (size_scale_leq _ _)) // size_lines ltnS.
exact: max_card.
Qed.

Lemma numerator_neq0 : w != 0 -> numerator != 0.
Proof.
move=> nz; rewrite /numerator; apply/eqP => /eqP; rewrite subr_eq0 => /eqP e.
have : size (w%:P * \prod_h line h) = #|Head|.+1 by rewrite mul_polyC size_scale // size_lines.
rewrite e => big.
have : leq (size (\sum_h (a h)%:P * \prod_(h' | h' != h) line h')) #|Head|.
  apply: (leq_trans (size_sum _ _ _)); apply/bigmax_leqP => h _.
  rewrite mul_polyC (leq_trans (size_scale_leq _ _)) // size_lines.
  have := cardC1 h; rewrite /predC1 => ->.
  by rewrite prednK //; apply/card_gt0P; exists h.
by rewrite big ltnn.
Qed.

Lemma fractions (places : seq F) : uniq places -> (#|Head| < size places)%N ->
  (forall j h, j \in places -> c h + b h * j != 0) ->
  (forall j, j \in places -> \sum_h a h / (c h + b h * j) = w) -> w = 0.
Proof.
move=> different many nz same; apply/eqP/contraT => /numerator_neq0 nz_numerator.
have zeros : all (root numerator) places.
  by apply/allP => j jin; apply: numerator_root => [h|]; [exact: nz | exact: same].
by have := max_poly_roots nz_numerator zeros different; rewrite ltnNge (leq_trans numerator_size).
Qed.

End Fractions.

Theorem causal_clipped (F : numFieldType) (In Head : finType) (Out : Type) (N T D : nat)
    (u : Head -> nat -> F) (V : Head -> In -> Out -> F) (W : nat -> In -> Out -> F) :
  (forall h d, 0 < u h d) -> (forall h d, (D <= d)%N -> u h d = u h D) -> (T <= D)%N ->
  (exists d i o, (d < T)%N && (W d i o != 0)) ->
  causal_expresses T (fun h => fun q : 'I_N => softmax (causal_weights (u h) q)) V W ->
  (N < #|Head| + D)%N.
Proof.
move=> pos const leD [d [i [o /andP [ltd nzW]]]] computes.
rewrite ltnNge; apply/negP => many; have /negP [] := nzW; apply/eqP.
have few : (#|Head| + D <= N)%N := many.
pose c h : F := \sum_(e < D) u h e.
have sum_to h j : \sum_(e < D + j) u h e = c h + u h D * j%:R.
  elim: j => [|j IH]; first by rewrite addn0 mulr0 addr0.
  by rewrite addnS big_ord_recr IH /= const ?leq_addr // -addn1 natrD; ring.
apply: (@fractions F Head (fun h => u h d * V h i o) (fun h => u h D) c _ _
    [seq j%:R | j <- iota 0 #|Head|.+1]).
- by move=> h; exact: pos.
- by rewrite map_inj_uniq ?iota_uniq // => m n /eqP; rewrite eqr_nat => /eqP.
- by rewrite size_map size_iota.
- move=> p h /mapP [j _ ->]; rewrite -sum_to gt_eqF //.
  have -> : (D + j = (D + j).-1.+1)%N by lia.
  rewrite big_ord_recl ltr_paddr // sumr_ge0 // => e _; exact: ltW.
- move=> p /mapP [j]; rewrite mem_iota /= add0n => lt_heads ->.
  have ltj : (D + j <= N)%N by apply: leq_trans few; rewrite addnC leq_add2r -ltnS.
  have ltN : ((D + j).-1 < N)%N by lia.
  pose q : 'I_N := Ordinal ltN; have ltk : (q - d < N)%N by rewrite /q /=; lia.
  pose k : 'I_N := Ordinal ltk.
  have le : (k <= q)%N by rewrite /k /=; lia.
  have ek : (q - k)%N = d by rewrite /k /= subKn //; lia.
  have := causal_coefficients computes i o (q := q) (k := k).
  rewrite ek ltd => <- //; last by rewrite /q /=; lia.
  apply: eq_bigr => h _; rewrite /softmax sum_causal_weights /causal_weights le ek.
  have -> : (q.+1 = D + j)%N by rewrite /q /=; lia.
  by rewrite sum_to mulrAC.
Qed.
