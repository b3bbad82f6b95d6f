(** A product with a nonnegative factor keeps away from what has a positive vector in its kernel,
    unless it has more inner dimensions than the rank. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import rank near_identity.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory Num.Theory Order.Theory.
Local Open Scope ring_scope.

Section Sizes.

Variable F : numFieldType.

(** If B is off the identity by at most μ in each entry, 2 n μ ≤ 1, then B x = v gives Σ |x| ≤ 2 Σ |v|. *)
Lemma solution_bound (n : nat) (B : 'M[F]_n) (x : 'cV[F]_n) (mu : F) :
  (forall i j, `|B i j - (i == j)%:R| <= mu) -> n%:R * mu *+ 2 <= 1 ->
  entry_sum x <= entry_sum (B *m x) *+ 2.
Proof.
move=> near small; have split : x = B *m x - (B - 1%:M) *m x.
  by rewrite mulmxBl mul1mx opprB addrC subrK.
have rest : entry_sum ((B - 1%:M) *m x) <= n%:R * mu * entry_sum x.
  have -> : n%:R * mu * entry_sum x = \sum_(i < n) \sum_(j < 1) mu * entry_sum x.
    by rewrite sumr_const sumr_const !card_ord mulr1n -mulrA mulr_natl.
  apply: ler_sum => i _; apply: ler_sum => j _; rewrite mxE.
  apply: le_trans (ler_norm_sum _ _ _) _; rewrite /entry_sum big_distrr.
  apply: ler_sum => k _ /=; rewrite normrM (bigD1 j) //= big1 ?addr0 => [|j' /eqP nj]; last first.
    by case: nj; rewrite !ord1.
  by rewrite ler_wpmul2r // !mxE.
have whole : entry_sum x <= entry_sum (B *m x) + n%:R * mu * entry_sum x.
  apply: le_trans (_ : _ <= entry_sum (B *m x) + entry_sum ((B - 1%:M) *m x)) _; last first.
    by rewrite ler_add2l.
  rewrite {1}split /entry_sum -big_split; apply: ler_sum => i _ /=.
  rewrite -big_split; apply: ler_sum => j _ /=.
  by rewrite [X in `|X|]mxE [X in _ + X]mxE; exact: ler_norm_sub.
have half : n%:R * mu * entry_sum x *+ 2 <= entry_sum x.
  rewrite -mulrnAl -[X in _ <= X]mul1r ler_wpmul2r // entry_sum_ge0 //.
have := ler_wmuln2r 2 whole; rewrite mulrnDl => doubled.
have := le_trans doubled (ler_add (lexx _) half).
by rewrite [X in X <= _]mulr2n ler_add2r.
Qed.

End Sizes.

(** If M z = 0 with z > 0, then no product L R with R ≥ 0 and at most rank M inner dimensions is close
    to M ≠ 0: with P M Q = 1, the columns of P L are independent, and R (z - Q x) = 0 for a small x. *)
Lemma nonnegative_far (F : realFieldType) (k l : nat) (M : 'M[F]_(k, l)) (z : 'cV[F]_l) :
  (forall d, 0 < z d ord0) -> M *m z = 0 -> (0 < \rank M)%N ->
  exists2 eps, 0 < eps & forall (h : nat) (L : 'M[F]_(k, h)) (R : 'M[F]_(h, l)),
    (forall i d, 0 <= R i d) -> (h <= \rank M)%N ->
    ~ (forall i d, `|(L *m R) i d - M i d| <= eps).
Proof.
move=> posz zero pos_rank; set rho := \rank M.
pose P := pinvmx (col_base M); pose Q := pinvmx (row_base M).
have one : P *m M *m Q = 1%:M.
  transitivity (P *m (col_base M *m row_base M) *m Q); first by rewrite mulmx_base.
  by rewrite mulmxA mulVpmx ?col_base_full // mul1mx mulmxVp ?row_base_free.
pose C := entry_sum P * entry_sum Q; pose V := rho%:R * (entry_sum P * entry_sum z).
pose least := (1 + \sum_d (z d ord0)^-1)^-1.
have pos_least : 0 < least.
  by rewrite invr_gt0 ltr_paddr ?ltr01 // sumr_ge0 // => d _; rewrite invr_ge0 ltW.
have least_z d : least <= z d ord0.
  rewrite -[z d ord0]invrK lef_pinv ?posrE ?invr_gt0 //; last by rewrite -invr_gt0.
  rewrite (bigD1 d) //= addrCA ler_addl addr_ge0 ?ler01 // sumr_ge0 // => d' _.
  by rewrite invr_ge0 ltW.
have C0 : 0 <= C by rewrite mulr_ge0 ?entry_sum_ge0.
have V0 : 0 <= V by rewrite !mulr_ge0 ?ler0n ?entry_sum_ge0.
pose T := 1 + rho%:R * C *+ 2 + entry_sum Q * V *+ 2 / least.
have T1 : 0 <= rho%:R * C *+ 2 by rewrite mulrn_wge0 // mulr_ge0 ?ler0n.
have T2 : 0 <= entry_sum Q * V *+ 2 / least.
  by rewrite divr_ge0 ?(ltW pos_least) // mulrn_wge0 // mulr_ge0 ?entry_sum_ge0.
have posT : 0 < T by rewrite /T ltr_paddr // ltr_paddr ?ltr01.
exists T^-1 => [|h L R nonneg few near]; first by rewrite invr_gt0.
have eta0 : 0 <= T^-1 by rewrite invr_ge0 ltW.
pose E := L *m R - M; pose B := P *m (L *m R) *m Q.
have smallE i d : `|E i d| <= T^-1 by rewrite /E mxE [X in _ + X]mxE; exact: near.
have eLR : L *m R = M + E by rewrite addrC subrK.
have nearB i j : `|B i j - (i == j)%:R| <= C * T^-1.
  have -> : B i j - (i == j)%:R = (P *m E *m Q) i j.
    by rewrite /B eLR mulmxDr mulmxDl one !mxE addrC addKr.
  exact: product_bound.
have smallB : rho%:R * (C * T^-1) *+ 2 <= 1.
  rewrite mulrA -mulrnAl ler_pdivr_mulr // mul1r /T addrAC ler_addr.
  by rewrite addr_ge0 // ler01.
have free : row_free B.
  apply: near_identity_free nearB _; apply: le_lt_trans (_ : _ <= 2%:R^-1) _; last first.
    by rewrite invf_lt1 ?ltr0n // ltr1n.
  by rewrite -[X in _ <= X]mul1r ler_pdivl_mulr ?ltr0n // mulr_natr.
have full : B \in unitmx by rewrite -row_free_unit.
pose x := invmx B *m (P *m (L *m R) *m z).
have eBx : B *m x = P *m E *m z.
  by rewrite mulKVmx // eLR mulmxDr mulmxDl -mulmxA zero mulmx0 add0r.
have small_x : entry_sum x <= V * T^-1 *+ 2.
  apply: le_trans (solution_bound x nearB smallB) _; rewrite eBx ler_wmuln2r //.
  have -> : V * T^-1 = \sum_(i < rho) \sum_(j < 1) entry_sum P * entry_sum z * T^-1.
    by rewrite sumr_const sumr_const !card_ord mulr1n /V -mulrA mulr_natl.
  by apply: ler_sum => i _; apply: ler_sum => j _; exact: product_bound.
pose y := z - Q *m x.
have pos_y d : 0 < y d ord0.
  have bound : `|(Q *m x) d ord0| <= entry_sum Q * (V * T^-1 *+ 2).
    rewrite mxE; apply: le_trans (ler_norm_sum _ _ _) _.
    apply: le_trans (_ : _ <= \sum_j entry_sum Q * `|x j ord0|) _.
      by apply: ler_sum => j _; rewrite normrM ler_wpmul2r // entry_le.
    rewrite -big_distrr ler_wpmul2l ?entry_sum_ge0 //; apply: le_trans small_x.
    by apply: ler_sum => j _; rewrite big_ord_recl big_ord0 addr0.
  have less : entry_sum Q * (V * T^-1 *+ 2) < least.
    have -> : entry_sum Q * (V * T^-1 *+ 2) = (entry_sum Q * V *+ 2) / T.
      by rewrite mulrnAr mulrA mulrnAl.
    rewrite ltr_pdivr_mulr // /T !mulrDr mulr1 [least * (_ / least)]mulrCA divff ?lt0r_neq0 //.
    rewrite mulr1 ltr_addr ltr_paddr // addr_ge0 // mulr_ge0 ?(ltW pos_least) //;
      by rewrite mulr_ge0 ?ler0n.
  rewrite /y mxE [X in _ + X]mxE subr_gt0; apply: le_lt_trans (ler_norm _) _.
  exact: le_lt_trans bound (lt_le_trans less (least_z d)).
have none : (P *m L) *m (R *m y) = 0.
  have -> : P *m L *m (R *m y) = P *m (L *m R) *m y by rewrite !mulmxA.
  rewrite /y mulmxBr [X in _ - X]mulmxA -/B eBx eLR mulmxDr mulmxDl.
  by rewrite -[P *m M *m z]mulmxA zero mulmx0 add0r subrr.
have inj : row_full (P *m L).
  rewrite /row_full eqn_leq rank_leq_col; apply: leq_trans few _.
  apply: (@leq_trans (\rank B)); first by rewrite (eqP free).
  have -> : B = P *m L *m (R *m Q) by rewrite /B !mulmxA.
  exact: mxrankM_maxl.
have Ry0 : R *m y = 0.
  by rewrite -[R *m y]mul1mx -(mulVpmx inj) -mulmxA none mulmx0.
have R0 : R = 0.
  apply/matrixP => i d; rewrite mxE; have := congr1 (fun v : 'cV_h => v i ord0) Ry0.
  rewrite !mxE => /eqP; rewrite psumr_eq0 => [|d' _]; last by rewrite mulr_ge0 // ltW.
  move=> /allP/(_ d (mem_index_enum d)); rewrite /= mulf_eq0 => /orP [/eqP //|].
  by rewrite gt_eqF.
by move: free pos_rank; rewrite /row_free /B R0 mulmx0 mulmx0 mul0mx mxrank0 => /eqP <-.
Qed.
