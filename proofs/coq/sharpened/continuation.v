(** S.continuation: what is exact at every size needs heads whose combinations have compact support.

    Fix a query, and let head h give the key k = 0, 1, … the weight z_h g_h(k), where z_h, which a normaliser
    makes, may depend on everything but the key. Let m be the last key that the convolution reads from there.
    (1) If every combination of the g_h that is not zero on 0, …, m is not zero at some later key, then from
    some number N₀ of keys on, no value maps make the heads what a kernel on the keys 0, …, m makes of all
    tokens, unless the kernel is zero there; N₀ depends on the g_h and m alone, and the z_h and the maps may be
    chosen for each number of keys. (2) So it is if the g_h recur together: for every ε > 0 there are p, as
    large as one likes, such that |g_h(k + p) - g_h(k)| ≤ ε for all h and k, as for almost periodic functions.

    The field is any that holds the absolute values of its numbers. Biases are zero, as both sides are at zero
    tokens. Not covered: the least N₀, the bound on the error, and that exponentials of rotary scores recur,
    which is continuation_rotary. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import zify.
From Convattn.foundation Require Import attention rank.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** What is not zero up to key m is not zero at some later key either. *)
Definition seen_later (F : fieldType) (Head : finType) (m : nat) (g : Head -> nat -> F) : Prop :=
  forall c : Head -> F, (exists2 k, (k <= m)%N & \sum_h c h * g h k != 0) ->
    exists2 k, (m < k)%N & \sum_h c h * g h k != 0.

(** The functions come back together, as near and as late as one likes. *)
Definition recurs (F : numFieldType) (Head : finType) (g : Head -> nat -> F) : Prop :=
  forall (eps : F) (n : nat), 0 < eps ->
    exists2 p, (n <= p)%N & forall h k, `|g h (k + p)%N - g h k| <= eps.

(** Rows of these heads at the query, on so many keys, are a kernel on the keys up to m. *)
Definition makes_kernel (F : fieldType) (Head : finType) (m : nat) (g : Head -> nat -> F) (N : nat)
    (In Out : finType) (z : Head -> F) (V : Head -> In -> Out -> F) (K : 'I_N -> In -> Out -> F) : Prop :=
  (forall k : 'I_N, (m < k)%N -> forall i o, K k i o = 0) /\
  (forall (X : 'I_N -> In -> F) o,
    attention_layer (fun h (_ : unit) (k : 'I_N) => z h * g h k) V X tt o = \sum_k feature_map (K k) (X k) o).

Section Dichotomy.

Variables (F : fieldType) (Head : finType) (m : nat) (g : Head -> nat -> F).

Local Notation near := (family_matrix (fun h (k : 'I_m.+1) => g h k)).
Local Notation far L := (family_matrix (fun h (k : 'I_L) => g h (m.+1 + k)%N)).

Lemma combination_entry (c : 'rV[F]_#|Head|) (n : nat) (f : nat -> nat) (k : 'I_#|'I_n|) :
  (c *m family_matrix (fun h (k : 'I_n) => g h (f k))) 0 k =
    \sum_h c 0 (enum_rank h) * g h (f (enum_val k)).
Proof.
rewrite mxE -[RHS]sum_enum_val; apply: eq_bigr => h _.
by rewrite !mxE enum_valK.
Qed.

Lemma killed_entries (c : 'rV[F]_#|Head|) (n : nat) (f : nat -> nat) :
  (c <= kermx (family_matrix (fun h (k : 'I_n) => g h (f k))))%MS ->
  forall k, (k < n)%N -> \sum_h c 0 (enum_rank h) * g h (f k) = 0.
Proof.
move=> /sub_kermxP zero k lt; have := combination_entry c f (enum_rank (Ordinal lt)).
by rewrite zero mxE enum_rankK => /esym.
Qed.

Lemma far_smaller L L' : (L <= L')%N -> (kermx (far L') <= kermx (far L))%MS.
Proof.
move=> le; apply/row_subP => r; apply/sub_kermxP/rowP => k; rewrite [RHS]mxE.
apply: etrans (combination_entry _ (fun k => m.+1 + k)%N _) _.
apply: (@killed_entries _ L' (fun k => m.+1 + k)%N); first exact: row_sub.
exact: leq_trans (ltn_ord _) le.
Qed.

Lemma window : seen_later m g -> exists L, (kermx (far L) <= kermx near)%MS.
Proof.
move=> later; suff all d : forall L, (\rank (kermx (far L)) <= d)%N -> exists L', (kermx (far L') <= kermx near)%MS.
  exact: (all _ 0%N (leqnn _)).
elim: d => [|d IH] L le.
  exists L; move: le; rewrite leqn0 mxrank_eq0 => /eqP ->; exact: sub0mx.
case: (boolP (kermx (far L) <= kermx near)%MS) => [in_ | /row_subPn [r out]]; first by exists L.
set c := row r (kermx (far L)).
have [k lek nz] : exists2 k, (k <= m)%N & \sum_h c 0 (enum_rank h) * g h k != 0.
  case: (pickP (fun k : 'I_m.+1 => \sum_h c 0 (enum_rank h) * g h k != 0)) => [k nz | zero].
    by exists k; rewrite // -ltnS.
  case/negP: out; apply/sub_kermxP/rowP => k; rewrite [RHS]mxE.
  apply: etrans (combination_entry _ id _) _; apply/eqP.
  by have := zero (enum_val k) => /negbFE.
have [k' ltk nz'] := later (fun h => c 0 (enum_rank h)) (ex_intro2 _ _ k lek nz).
pose L' := maxn L (k' - m); apply: (IH L').
have smaller := far_smaller (leq_maxl L (k' - m)).
rewrite -ltnS (leq_trans _ le) // ltnNge; apply/negP => same.
have : (kermx (far L) <= kermx (far L'))%MS by rewrite -(mxrank_leqif_sup smaller).2 eqn_leq (mxrankS smaller).
move/(submx_trans (row_sub r _))/(@killed_entries _ L' (fun k => m.+1 + k)%N) => /(_ (k' - m.+1)%N).
have -> : (k' - m.+1 < L')%N by rewrite leq_max; lia.
have -> : (m.+1 + (k' - m.+1) = k')%N by lia.
by move=> /(_ isT) zero; rewrite zero eqxx in nz'.
Qed.

Lemma never : seen_later m g -> exists N0, forall N, (N0 <= N)%N ->
  forall (In Out : finType) (z : Head -> F) (V : Head -> In -> Out -> F) (K : 'I_N -> In -> Out -> F),
  makes_kernel m g z V K -> forall k i o, K k i o = 0.
Proof.
move=> /window [L all]; exists (m.+1 + L)%N => N leN In Out z V K [outside equal] k i o.
case: (leqP k m) => [lek | lt]; last exact: outside.
have entry (l : 'I_N) : \sum_h z h * V h i o * g h l = K l i o.
  have [+ _] := layer_coefficients (fun h (_ : unit) (k : 'I_N) => z h * g h k) V K tt o.
  move=> /(_ (fun X => equal X o)) /(_ l i) <-; apply: eq_bigr => h _; exact: mulrAC.
pose c : 'rV[F]_#|Head| := \row_h (z (enum_val h) * V (enum_val h) i o).
have ec h : c 0 (enum_rank h) = z h * V h i o by rewrite mxE enum_rankK.
suff /(@killed_entries c m.+1 id) zero : (c <= kermx near)%MS.
  by rewrite -entry -[RHS](zero k) //; apply: eq_bigr => h _; rewrite ec.
apply: submx_trans all; apply/sub_kermxP/rowP => j; rewrite [RHS]mxE.
apply: etrans (combination_entry _ (fun k => m.+1 + k)%N _) _.
have ltN : (m.+1 + enum_val j < N)%N by apply: leq_trans leN; rewrite ltn_add2l.
have beyond : (m < Ordinal ltN)%N by rewrite /= leq_addr.
by rewrite -[RHS](outside _ beyond i o) -entry; apply: eq_bigr => h _; rewrite ec.
Qed.

End Dichotomy.

Lemma recurring (F : numFieldType) (Head : finType) (m : nat) (g : Head -> nat -> F) :
  recurs g -> seen_later m g.
Proof.
move=> back c [k lek nz]; pose B := \sum_h `|c h|.
have B_ge0 : 0 <= B by apply: sumr_ge0.
have B1_gt0 : 0 < B + 1 by rewrite ltr_paddl.
have eps_gt0 : 0 < `|\sum_h c h * g h k| / (B + 1) by rewrite divr_gt0 ?normr_gt0.
have [p lep near] := back _ m.+1 eps_gt0; exists (k + p)%N; first by apply: leq_trans lep _; exact: leq_addl.
apply/eqP => zero; set S := \sum_h c h * g h k in nz eps_gt0 near.
have eS : S = - (\sum_h c h * (g h (k + p)%N - g h k)).
  by under eq_bigr do rewrite mulrBr; rewrite sumrB zero sub0r opprK.
have : `|S| <= B * (`|S| / (B + 1)).
  rewrite {1}eS normrN /B mulr_suml; apply: le_trans (ler_norm_sum _ _ _) _.
  by apply: ler_sum => h _; rewrite normrM; apply: ler_wpmul2l => //; exact: near.
rewrite mulrCA ler_pmulr ?normr_gt0 // ler_pdivl_mulr // mul1r.
by rewrite ger_addl ler10.
Qed.

Theorem continuation (F : numFieldType) (Head : finType) (m : nat) (g : Head -> nat -> F) :
  (seen_later m g -> exists N0, forall N, (N0 <= N)%N ->
    forall (In Out : finType) (z : Head -> F) (V : Head -> In -> Out -> F) (K : 'I_N -> In -> Out -> F),
    makes_kernel m g z V K -> forall k i o, K k i o = 0) /\
  (recurs g -> seen_later m g).
Proof. by split; [exact: never | exact: recurring]. Qed.
