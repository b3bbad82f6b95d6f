(** A square family that is close to the identity has full rank, and no family
    has a family of smaller rank close by: the rank falls only in a limit. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import rank.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory Num.Theory Order.Theory.
Local Open Scope ring_scope.

Section NearIdentity.

Variable F : numFieldType.

(** If B is off the identity by at most η in each of its n² entries, with n η < 1, then v B = 0 only
    for v = 0: the sum of the sizes of v's entries is at most n η times itself. *)
Lemma near_identity_free (n : nat) (B : 'M[F]_n) (eta : F) :
  (forall i j, `|B i j - (i == j)%:R| <= eta) -> n%:R * eta < 1 -> row_free B.
Proof.
move=> near small; rewrite -kermx_eq0; apply/eqP/row_matrixP => k; rewrite row0.
have : row k (kermx B) *m B = 0 by rewrite -row_mul mulmx_ker row0.
move: (row k _) => v zero; pose size := \sum_j `|v ord0 j|.
have entry j : v ord0 j = - \sum_i v ord0 i * (B i j - (i == j)%:R).
  under eq_bigr do rewrite mulrBr.
  have := congr1 (fun u : 'rV_n => u ord0 j) zero; rewrite sumrB !mxE => ->.
  by rewrite (bigD1 j) //= eqxx mulr1 big1 ?addr0 ?sub0r ?opprK // => i /negbTE ->; rewrite mulr0.
have bound : size <= n%:R * eta * size.
  have -> : n%:R * eta * size = \sum_(j < n) eta * size by rewrite sumr_const card_ord -mulrA mulr_natl.
  apply: ler_sum => j _; rewrite entry normrN big_distrr /=.
  apply: le_trans (ler_norm_sum _ _ _) _; apply: ler_sum => i _.
  by rewrite normrM mulrC ler_wpmul2r.
have size0 : size = 0.
  apply/eqP; apply: contraT => nz.
  have pos : 0 < size by rewrite lt_def nz sumr_ge0.
  by move: bound; rewrite ler_pmull // => big; have := lt_le_trans small big; rewrite ltxx.
apply/rowP => j; rewrite [RHS]mxE; apply/eqP; rewrite -normr_eq0.
by have /eqP := size0; rewrite psumr_eq0 // => /allP/(_ j (mem_index_enum j)).
Qed.

(** The left inverse of such a family. *)
Lemma near_identity_inverse (T : finType) (B : T -> T -> F) (eta : F) :
  (forall a b, `|B a b - (a == b)%:R| <= eta) -> #|T|%:R * eta < 1 ->
  exists L : T -> T -> F, forall a b, \sum_r L a r * B r b = (a == b)%:R.
Proof.
move=> near small.
have free : row_free (family_matrix B).
  by apply: near_identity_free small => i j; rewrite mxE -(inj_eq enum_val_inj).
exists (fun a r => invmx (family_matrix B) (enum_rank a) (enum_rank r)) => a b.
have := mulVmx (_ : family_matrix B \in unitmx); rewrite -row_free_unit => /(_ free).
move/matrixP/(_ (enum_rank a) (enum_rank b)); rewrite !mxE (inj_eq enum_rank_inj) => <-.
rewrite -sum_enum_val; apply: eq_bigr => i _.
by rewrite mxE enum_valK enum_rankK.
Qed.

(** The sizes of a matrix's entries, added up. *)
Definition entry_sum (k l : nat) (M : 'M[F]_(k, l)) : F := \sum_i \sum_j `|M i j|.

Lemma entry_sum_ge0 k l (M : 'M[F]_(k, l)) : 0 <= entry_sum M.
Proof. by rewrite sumr_ge0 // => i _; rewrite sumr_ge0. Qed.

Lemma entry_le k l (M : 'M[F]_(k, l)) i j : `|M i j| <= entry_sum M.
Proof.
rewrite /entry_sum (bigD1 i) //= (bigD1 j) //= -addrA ler_addl.
by rewrite addr_ge0 ?sumr_ge0 // => i' _; rewrite sumr_ge0.
Qed.

(** The size of an entry of P E Q, from the sizes of the entries of E. *)
Lemma product_bound (k m n l : nat) (P : 'M[F]_(k, m)) (E : 'M[F]_(m, n)) (Q : 'M[F]_(n, l))
    (eta : F) : 0 <= eta -> (forall i j, `|E i j| <= eta) ->
  forall i j, `|(P *m E *m Q) i j| <= entry_sum P * entry_sum Q * eta.
Proof.
move=> ge0 small i j; pose left := \sum_a `|P i a|; pose right := \sum_b `|Q b j|.
have one_left : left <= entry_sum P.
  by rewrite /entry_sum (bigD1 i) //= ler_addl sumr_ge0 // => i' _; rewrite sumr_ge0.
have one_right : right <= entry_sum Q.
  by rewrite /entry_sum exchange_big (bigD1 j) //= ler_addl sumr_ge0 // => j' _; rewrite sumr_ge0.
apply: (@le_trans _ _ (left * right * eta)); last first.
  by rewrite ler_wpmul2r // ler_pmul // sumr_ge0.
rewrite mxE; apply: le_trans (ler_norm_sum _ _ _) _.
rewrite -mulrA mulrC -mulrA big_distrl; apply: ler_sum => b _ /=.
rewrite normrM [X in X <= _]mulrC ler_wpmul2l // mxE; apply: le_trans (ler_norm_sum _ _ _) _.
by rewrite mulrC big_distrl; apply: ler_sum => a _; rewrite normrM ler_wpmul2l.
Qed.

(** Around every family there is a ball without families of smaller rank. *)
Lemma family_rank_nearby (Row Column : finType) (M : Row -> Column -> F) :
  exists2 eps, 0 < eps & forall N : Row -> Column -> F,
    (forall i j, `|N i j - M i j| <= eps) -> (family_rank M <= family_rank N)%N.
Proof.
pose P := pinvmx (col_base (family_matrix M)); pose Q := pinvmx (row_base (family_matrix M)).
have one : P *m family_matrix M *m Q = 1%:M.
  transitivity (P *m (col_base (family_matrix M) *m row_base (family_matrix M)) *m Q).
    by rewrite mulmx_base.
  by rewrite mulmxA mulVpmx ?col_base_full // mul1mx mulmxVp ?row_base_free.
pose size := entry_sum P * entry_sum Q.
have size0 : 0 <= size by rewrite mulr_ge0 ?entry_sum_ge0.
pose rho : F := (\rank (family_matrix M))%:R.
have pos : 0 < rho * size + 1 by rewrite ltr_paddl ?ltr01 // mulr_ge0 ?ler0n.
exists (rho * size + 1)^-1; first by rewrite invr_gt0.
move=> N near.
have free : row_free (P *m family_matrix N *m Q).
  apply: (@near_identity_free _ _ (size / (rho * size + 1))) => [i j|]; last first.
    by rewrite mulrA ltr_pdivr_mulr // mul1r ltr_addl ltr01.
  have -> : (P *m family_matrix N *m Q) i j - (i == j)%:R =
      (P *m (family_matrix N - family_matrix M) *m Q) i j.
    by rewrite mulmxBr mulmxBl one !mxE.
  apply: product_bound => [|a b]; first by rewrite invr_ge0 ltW.
  rewrite !mxE; exact: near.
rewrite /family_rank -(eqP free).
exact: leq_trans (mxrankM_maxl _ _) (mxrankM_maxr _ _).
Qed.

End NearIdentity.
