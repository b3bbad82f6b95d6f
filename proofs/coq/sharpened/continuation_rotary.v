(** S.continuation: heads with rotary scores alone are the convolution on no long axis.

    Head h gives the key k at the query q the weight z_h E(s_h(k - q)) with the rotary score s_h(δ) = Σ_j a_hj
    cos(ω_hj δ) + b_hj sin(ω_hj δ), any angles ω_hj and numbers a_hj, b_hj, and z_h that does not depend on the
    key, as a normaliser does not. The exponential E is positive, takes sums to products and does not
    decrease. Then for every query q and every m there is an N₀, which depends on these and the heads alone,
    such that on N₀ keys or more no value maps and no z_h make the heads what a kernel on the keys 0, …, m
    makes of all tokens, unless the kernel is zero there. So no number of such heads, whatever their maps,
    is a convolution at all lengths, K = 1 included.

    Angles are given as pairs (cos ω, sin ω) of squares that add up to 1; the field is Archimedean, as that of
    the real numbers is. The proof is Dirichlet's: of enough multiples of an angle two are close. Biases are
    zero. Not covered: how large N₀ is, the bound on the error, several axes. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring zify.
From Convattn.foundation Require Import attention rank exponential.
From Convattn.sharpened Require Import continuation.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** The cosine and the sine of k times an angle. *)
Fixpoint turned (R : ringType) (u : R * R) (k : nat) : R * R :=
  if k is l.+1 then
    let v := turned u l in (v.1 * u.1 - v.2 * u.2, v.2 * u.1 + v.1 * u.2)
  else (1, 0).

(** Rotary scores between a query and a key, by the differences of angles. *)
Definition rotary_score (R : ringType) (Head Pair : finType) (u : Head -> Pair -> R * R) (a b : Head -> Pair -> R)
    (q : nat) (h : Head) (k : nat) : R :=
  \sum_j (a h j * ((turned (u h j) k).1 * (turned (u h j) q).1 + (turned (u h j) k).2 * (turned (u h j) q).2) +
          b h j * ((turned (u h j) k).2 * (turned (u h j) q).1 - (turned (u h j) k).1 * (turned (u h j) q).2)).

Section Turns.

Variables (R : realFieldType) (u : R * R).
Hypothesis unit_u : u.1 * u.1 + u.2 * u.2 = 1.

Lemma turned_unit k : (turned u k).1 * (turned u k).1 + (turned u k).2 * (turned u k).2 = 1.
Proof.
elim: k => [|k IH] /=; first by rewrite mulr0 mulr1 addr0.
rewrite -[RHS](mulr1 1) -{1}IH -unit_u; ring.
Qed.

Lemma turned_add i j :
  turned u (i + j) = ((turned u i).1 * (turned u j).1 - (turned u i).2 * (turned u j).2,
                      (turned u i).2 * (turned u j).1 + (turned u i).1 * (turned u j).2).
Proof.
elim: j => [|j IH]; first by rewrite addn0 /= !mulr1 !mulr0 subr0 addr0; case: turned.
by rewrite addnS /= IH /=; congr (_, _); ring.
Qed.

Lemma turned_back i j : (i <= j)%N ->
  (turned u (j - i)).1 = (turned u j).1 * (turned u i).1 + (turned u j).2 * (turned u i).2 /\
  (turned u (j - i)).2 = (turned u j).2 * (turned u i).1 - (turned u j).1 * (turned u i).2.
Proof.
move=> le; have := turned_add (j - i) i; rewrite subnK // => ->; have one := turned_unit i.
split; [rewrite -[LHS]mulr1 | rewrite -[LHS]mulr1]; rewrite -one /=; ring.
Qed.

Lemma turned_small k : `|(turned u k).1| <= 1 /\ `|(turned u k).2| <= 1.
Proof.
have one := turned_unit k; split; rewrite -(@expr_le1 _ 2) // real_normK ?num_real // -one expr2.
  by rewrite ler_addl -expr2 sqr_ge0.
by rewrite ler_addr -expr2 sqr_ge0.
Qed.

(** Close to a whole turn where two multiples are close to each other. *)
Lemma turned_whole i j eps : (i <= j)%N ->
  `|(turned u j).1 - (turned u i).1| <= eps -> `|(turned u j).2 - (turned u i).2| <= eps ->
  `|(turned u (j - i)).1 - 1| <= eps *+ 2 /\ `|(turned u (j - i)).2| <= eps *+ 2.
Proof.
move=> le near1 near2; have [-> ->] := turned_back le; have [small1 small2] := turned_small i.
set c := (turned u i).1 in near1 small1 *; set s := (turned u i).2 in near2 small2 *.
set c' := (turned u j).1 in near1 *; set s' := (turned u j).2 in near2 *.
have product (x y : R) : `|x| <= eps -> `|y| <= 1 -> `|x * y| <= eps.
  move=> lex ley; rewrite normrM -[eps]mulr1; apply: ler_pmul => //; exact: normr_ge0.
have -> : c' * c + s' * s - 1 = (c' - c) * c + (s' - s) * s by rewrite -(turned_unit i) -/c -/s; ring.
have -> : s' * c - c' * s = (s' - s) * c - (c' - c) * s by ring.
by rewrite mulr2n; split; [apply: le_trans (ler_norm_add _ _) _ | apply: le_trans (ler_norm_sub _ _) _];
  apply: ler_add; apply: product.
Qed.

(** A turn more by almost whole turns moves nothing far. *)
Lemma turned_near k p eps : `|(turned u p).1 - 1| <= eps -> `|(turned u p).2| <= eps ->
  `|(turned u (k + p)).1 - (turned u k).1| <= eps *+ 2 /\ `|(turned u (k + p)).2 - (turned u k).2| <= eps *+ 2.
Proof.
move=> near1 near2; rewrite turned_add /=; have [small1 small2] := turned_small k.
set c := (turned u k).1 in small1 *; set s := (turned u k).2 in small2 *.
set c' := (turned u p).1 in near1 *; set s' := (turned u p).2 in near2 *.
have product (x y : R) : `|x| <= 1 -> `|y| <= eps -> `|x * y| <= eps.
  move=> lex ley; rewrite normrM -[eps]mul1r; apply: ler_pmul => //; exact: normr_ge0.
have -> : c * c' - s * s' - c = c * (c' - 1) - s * s' by ring.
have -> : s * c' + c * s' - s = s * (c' - 1) + c * s' by ring.
by rewrite mulr2n; split; [apply: le_trans (ler_norm_sub _ _) _ | apply: le_trans (ler_norm_add _ _) _];
  apply: ler_add; apply: product.
Qed.

End Turns.

Section Cells.

Variables (R : realFieldType) (K : nat).
Hypothesis positive : (0 < K)%N.

Definition threshold (i : nat) : R := i%:R * (2%:R / K%:R) - 1.

(** Which thresholds a number has passed. *)
Definition cell (x : R) : {ffun 'I_K.+1 -> bool} := [ffun i => threshold (val i) <= x].

Lemma cell_near x y : -1 <= x <= y -> y <= 1 -> cell x = cell y -> y - x <= 2%:R / K%:R.
Proof.
case/andP => low le high same; rewrite leNgt; apply/negP => apart.
have K_gt0 : 0 < K%:R :> R by rewrite ltr0n.
have last : threshold K = 1.
  by rewrite /threshold mulrCA divff ?gt_eqF // mulr1 -addn1 natrD addrK.
have step_gt0 : 0 < 2%:R / K%:R :> R by rewrite divr_gt0 ?ltr0n.
have ex : exists i, x < threshold i.
  exists K; rewrite last; apply: lt_le_trans high; move: apart; rewrite ltr_subr_addl; apply: lt_trans.
  by rewrite ltr_addl.
case: (ex_minnP ex) => i above least.
have leK : (i <= K)%N.
  apply: least; rewrite last; apply: lt_le_trans high; move: apart; rewrite ltr_subr_addl; apply: lt_trans.
  by rewrite ltr_addl.
have := congr1 (fun f : {ffun 'I_K.+1 -> bool} => f (Ordinal (leK : i < K.+1)%N)) same; rewrite !ffunE /=.
rewrite leNgt above /= => /esym /negbT; rewrite -ltNge => below.
move: leK => _; case: i above least below => [|i] above least below.
  by move: above; rewrite /threshold mul0r sub0r ltNge low.
have passed : threshold i <= x.
  by rewrite leNgt; apply/negP => /least; rewrite ltnn.
suff /(lt_trans apart) : y - x < 2%:R / K%:R by rewrite ltxx.
rewrite ltr_subl_addr (lt_le_trans below) //.
have -> : threshold i.+1 = 2%:R / K%:R + threshold i by rewrite /threshold -addn1 natrD; ring.
by rewrite ler_add2l.
Qed.

Lemma same_cell x y : `|x| <= 1 -> `|y| <= 1 -> cell x = cell y -> `|x - y| <= 2%:R / K%:R.
Proof.
rewrite !(ler_norml _ 1) => /andP [lowx highx] /andP [lowy highy] same.
by case: (lerP x y) => [le | /ltW le]; apply: cell_near => //; apply/andP.
Qed.

End Cells.

(** Dirichlet: of finitely many turns there are joint multiples, as late as one likes, close to whole turns. *)
Lemma whole_turns (R : archiFieldType) (J : finType) (u : J -> R * R) (eps : R) (n : nat) :
  (forall j, (u j).1 * (u j).1 + (u j).2 * (u j).2 = 1) -> 0 < eps ->
  exists2 p, (n <= p)%N & forall j, `|(turned (u j) p).1 - 1| <= eps /\ `|(turned (u j) p).2| <= eps.
Proof.
move=> unit_u eps_gt0; pose K := Num.bound (4%:R / eps).
have four_gt0 : 0 < 4%:R / eps by rewrite divr_gt0 ?ltr0n.
have ltK : 4%:R / eps < K%:R by rewrite archi_boundP // ltW.
have positive : (0 < K)%N by rewrite -(ltr0n R) (lt_trans four_gt0).
have fine : 2%:R / K%:R *+ 2 <= eps.
  rewrite -mulrnAl -mulrnA ler_pdivr_mulr ?ltr0n //.
  by rewrite mulrC -ler_pdivr_mulr // ltW.
pose Cells := [finType of {ffun J -> {ffun 'I_K.+1 -> bool} * {ffun 'I_K.+1 -> bool}}].
pose place (i : 'I_#|Cells|.+1) : Cells :=
  [ffun j => (cell K (turned (u j) (n.+1 * i)).1, cell K (turned (u j) (n.+1 * i)).2)].
have [i [i' [lt same]]] : exists i i' : 'I_#|Cells|.+1, (i < i')%N /\ place i = place i'.
  have /injectivePn [i [i' ne same]] : ~~ injectiveb place.
    by apply/injectiveP => /leq_card; rewrite card_ord ltnn.
  by case: (ltngtP i i') => [lt | lt | /val_inj e]; [exists i, i' | exists i', i | rewrite e eqxx in ne].
exists (n.+1 * i' - n.+1 * i)%N.
  by rewrite -mulnBr; apply: leq_trans (leqnSn n) _; rewrite leq_pmulr // subn_gt0.
move=> j; have le : (n.+1 * i <= n.+1 * i')%N by rewrite leq_mul2l ltnW ?orbT.
have [small1 small2] := turned_small (unit_u j) (n.+1 * i).
have [small1' small2'] := turned_small (unit_u j) (n.+1 * i').
have := congr1 (fun f : Cells => f j) same; rewrite !ffunE => -[same1 same2].
have near1 := same_cell positive small1' small1 (esym same1).
have near2 := same_cell positive small2' small2 (esym same2).
have [close1 close2] := turned_whole (unit_u j) le near1 near2.
by split; [apply: le_trans close1 fine | apply: le_trans close2 fine].
Qed.

Section Scores.

Variables (R : archiFieldType) (E : R -> R).
Hypothesis E_exp : is_exponential E.

(** The exponential is continuous at zero, *)
Lemma exponential_near_zero eps : 0 < eps -> exists2 eta, 0 < eta & forall x, `|x| <= eta -> `|E x - 1| <= eps.
Proof.
move=> eps_gt0; have E0 := exponential_zero E_exp.
have E1 : 0 <= E 1 - 1 by rewrite subr_ge0 -{1}E0 (exponential_monotone E_exp) ?ler01.
pose K := (Num.bound ((E 1 - 1) / eps)).+1.
have ltK : (E 1 - 1) / eps < K%:R.
  apply: lt_trans (archi_boundP _) _; first by rewrite divr_ge0 // ltW.
  by rewrite ltr_nat.
have K_gt0 : 0 < K%:R :> R by rewrite ltr0n.
pose d := E K%:R^-1 - 1.
have d_ge0 : 0 <= d by rewrite subr_ge0 -{1}E0 (exponential_monotone E_exp) ?invr_ge0 ?ltW.
have powers i : E (i%:R * K%:R^-1) = (1 + d) ^+ i.
  elim: i => [|i IH]; first by rewrite mul0r E0.
  by rewrite -addn1 natrD mulrDl mul1r (exponential_add E_exp) IH addn1 exprSr /d addrC subrK.
have bernoulli i : 1 + i%:R * d <= (1 + d) ^+ i.
  elim: i => [|i IH]; first by rewrite mul0r addr0.
  rewrite exprSr -addn1 natrD mulrDl mul1r addrA mulrDr mulr1.
  apply: ler_add => //; rewrite -{1}[d]mul1r; apply: ler_wpmul2r => //.
  by apply: le_trans IH; rewrite ler_addl mulr_ge0 ?ler0n.
have small : d <= eps.
  have := bernoulli K; rewrite -powers divff ?gt_eqF // addrC -ler_subr_addr => le.
  rewrite -(ler_pmul2l K_gt0); apply: le_trans le _; rewrite -ler_pdivr_mulr //; exact: ltW.
exists K%:R^-1; first by rewrite invr_gt0.
have upper x : 0 <= x <= K%:R^-1 -> 0 <= E x - 1 <= eps.
  case/andP => ge le; rewrite subr_ge0 -{1}E0 (exponential_monotone E_exp) //=.
  apply: le_trans small; rewrite ler_sub //; exact: (exponential_monotone E_exp).
move=> x; case: (leP 0 x) => [ge | /ltW le].
  by rewrite ger0_norm // => lex; have /andP [ge1 le1] := upper _ (introT andP (conj ge lex)); rewrite ger0_norm.
rewrite ler0_norm // => lex; have := upper (- x); rewrite oppr_ge0 le lex => /(_ isT) /andP [ge1 le1].
have inverse : E x * E (- x) = 1 by rewrite -(exponential_add E_exp) addrN E0.
have Ex_le1 : E x <= 1 by rewrite -E0 (exponential_monotone E_exp).
rewrite distrC ger0_norm ?subr_ge0 //; apply: le_trans le1.
have -> : 1 - E x = E x * (E (- x) - 1) by rewrite mulrBr inverse mulr1.
by rewrite -[X in _ <= X]mul1r; apply: ler_wpmul2r.
Qed.

Variables (Head Pair : finType) (u : Head -> Pair -> R * R) (a b : Head -> Pair -> R) (q : nat).
Hypothesis unit_u : forall h j, (u h j).1 * (u h j).1 + (u h j).2 * (u h j).2 = 1.

Local Notation this_score := (rotary_score u a b q).

(** In terms of the key's turns alone. *)
Definition real_part h j := a h j * (turned (u h j) q).1 - b h j * (turned (u h j) q).2.
Definition imaginary_part h j := a h j * (turned (u h j) q).2 + b h j * (turned (u h j) q).1.

Lemma score_by_key h k : this_score h k =
  \sum_j (real_part h j * (turned (u h j) k).1 + imaginary_part h j * (turned (u h j) k).2).
Proof. by apply: eq_bigr => j _; rewrite /real_part /imaginary_part; ring. Qed.

Definition height := \sum_h \sum_j (`|real_part h j| + `|imaginary_part h j|).

Lemma height_ge0 : 0 <= height.
Proof. by apply: sumr_ge0 => h _; apply: sumr_ge0 => j _; rewrite addr_ge0. Qed.

Lemma part_of_height h : \sum_j (`|real_part h j| + `|imaginary_part h j|) <= height.
Proof.
rewrite /height [X in _ <= X](bigD1 h) //= ler_addl; apply: sumr_ge0 => h' _.
by apply: sumr_ge0 => j _; rewrite addr_ge0.
Qed.

Lemma combined_bound h (x y : Pair -> R) (eps : R) : 0 <= eps -> (forall j, `|x j| <= eps /\ `|y j| <= eps) ->
  `|\sum_j (real_part h j * x j + imaginary_part h j * y j)| <= height * eps.
Proof.
move=> eps_ge0 near; apply: le_trans (ler_norm_sum _ _ _) _.
apply: le_trans (_ : \sum_j (`|real_part h j| + `|imaginary_part h j|) * eps <= _); last first.
  by rewrite -mulr_suml ler_wpmul2r // part_of_height.
apply: ler_sum => j _; have [nearx neary] := near j.
apply: le_trans (ler_norm_add _ _) _; rewrite !normrM mulrDl.
by apply: ler_add; apply: ler_wpmul2l.
Qed.

Lemma score_small h k : `|this_score h k| <= height.
Proof.
rewrite score_by_key -[height]mulr1; apply: combined_bound; first exact: ler01.
by move=> j; exact: turned_small (unit_u h j) k.
Qed.

Lemma rotary_recurs : recurs (fun h k => E (this_score h k)).
Proof.
move=> eps n eps_gt0; have top_gt0 := exponential_positive E_exp height.
have [eta eta_gt0 close] := exponential_near_zero (divr_gt0 eps_gt0 top_gt0).
have twice_gt0 : 0 < height *+ 2 + 1 by rewrite ltr_paddl // mulrn_wge0 // height_ge0.
have [p lep whole] := @whole_turns _ _ (fun hj : Head * Pair => u hj.1 hj.2) _ n (fun hj => unit_u hj.1 hj.2)
  (divr_gt0 eta_gt0 twice_gt0).
exists p => // h k; pose s := this_score h k; pose s' := this_score h (k + p)%N.
have near : `|s' - s| <= eta.
  rewrite /s' /s !score_by_key -sumrB; set delta := eta / (height *+ 2 + 1) in whole.
  have delta_ge0 : 0 <= delta by rewrite divr_ge0 // ltW.
  apply: le_trans (_ : height * (delta *+ 2) <= _); last first.
    rewrite mulrnAr -mulrnAl /delta mulrCA ger_pmulr // ler_pdivr_mulr // mul1r ler_addl; exact: ler01.
  under eq_bigr do rewrite opprD addrACA -!mulrBr.
  apply: combined_bound => [|j]; first exact: mulrn_wge0.
  by have [near1 near2] := whole (h, j); exact: turned_near (unit_u h j) k p _ near1 near2.
have -> : E s' = E s * E (s' - s) by rewrite -(exponential_add E_exp) addrC subrK.
rewrite -[X in _ - X]mulr1 -mulrBr normrM gtr0_norm ?(exponential_positive E_exp) //.
rewrite -[eps](divfK (lt0r_neq0 top_gt0)) mulrC; apply: ler_pmul => //.
- by rewrite ltW // (exponential_positive E_exp).
- exact: close.
apply: (exponential_monotone E_exp); apply: le_trans (ler_norm _) (score_small h k).
Qed.

End Scores.

Theorem continuation_rotary (R : archiFieldType) (E : R -> R) (Head Pair : finType)
    (u : Head -> Pair -> R * R) (a b : Head -> Pair -> R) (q m : nat) :
  is_exponential E -> (forall h j, (u h j).1 * (u h j).1 + (u h j).2 * (u h j).2 = 1) ->
  exists N0, forall N, (N0 <= N)%N ->
    forall (In Out : finType) (z : Head -> R) (V : Head -> In -> Out -> R) (K : 'I_N -> In -> Out -> R),
    makes_kernel m (fun h k => E (rotary_score u a b q h k)) z V K -> forall k i o, K k i o = 0.
Proof.
move=> E_exp unit_u; have [later back] := continuation m (fun h k => E (rotary_score u a b q h k)).
by apply/later/back/(rotary_recurs E_exp).
Qed.
