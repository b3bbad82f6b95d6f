(** Heads of a given width: a map of rank r takes ⌈r / d⌉ heads with d inner features each. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import zify.
From Convattn.foundation Require Import attention rank rank_factors head_dimension.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

(** ⌈r / d⌉. *)
Definition heads_for_rank (d r : nat) : nat := ((r + d.-1) %/ d)%N.

Lemma heads_for_rank_enough (d r : nat) : (0 < d)%N -> (r <= heads_for_rank d r * d)%N.
Proof.
rewrite /heads_for_rank => lt0d; have := divn_eq (r + d.-1) d.
by have := ltn_pmod (r + d.-1) lt0d; lia.
Qed.

(** No fewer are enough. *)
Lemma heads_for_rank_least (d r k : nat) : (0 < d)%N -> (r <= k * d)%N -> (heads_for_rank d r <= k)%N.
Proof.
move=> lt0d le; rewrite /heads_for_rank -ltnS ltn_divLR //; first by rewrite mulSn; lia.
Qed.

Lemma heads_for_rank_monotone (d r r' : nat) :
  (r <= r')%N -> (heads_for_rank d r <= heads_for_rank d r')%N.
Proof. by move=> le; apply: leq_div2r; rewrite leq_add2r. Qed.

Section Ranks.

Variables (F : fieldType) (Row Column : finType).

Lemma family_rank_add (A B : Row -> Column -> F) :
  (family_rank (fun i j => (A i j + B i j)%R) <= family_rank A + family_rank B)%N.
Proof.
have e : family_matrix (fun i j => A i j + B i j) = family_matrix A + family_matrix B.
  by apply/matrixP => i j; rewrite !mxE.
by rewrite /family_rank e mxrank_add.
Qed.

Lemma family_rank_scale (c : F) (A : Row -> Column -> F) :
  (family_rank (fun i j => (c * A i j)%R) <= family_rank A)%N.
Proof.
have e : family_matrix (fun i j => c * A i j) = c *: family_matrix A.
  by apply/matrixP => i j; rewrite !mxE.
by rewrite /family_rank e mxrank_scale.
Qed.

Lemma family_rank_sum (T : finType) (P : pred T) (A : T -> Row -> Column -> F) :
  (family_rank (fun i j => (\sum_(t | P t) A t i j)%R) <= \sum_(t | P t) family_rank (A t))%N.
Proof.
elim: (index_enum T) => [|t s IH].
  rewrite big_nil leqn0 /family_rank mxrank_eq0; apply/eqP/matrixP => i j.
  by rewrite !mxE big_nil.
rewrite big_cons; case: ifP => Pt; last first.
  rewrite /family_rank (@eq_family_matrix _ _ _ _ (fun i j => \sum_(t <- s | P t) A t i j)) // => i j.
  by rewrite big_cons Pt.
rewrite /family_rank (@eq_family_matrix _ _ _ _ (fun i j => A t i j + \sum_(t <- s | P t) A t i j)).
  exact: leq_trans (family_rank_add _ _) (leq_add (leqnn _) IH).
by move=> i j; rewrite big_cons Pt.
Qed.

Lemma eq_family_rank (A B : Row -> Column -> F) :
  (forall i j, A i j = B i j) -> family_rank A = family_rank B.
Proof. by move=> eAB; rewrite /family_rank (eq_family_matrix eAB). Qed.

End Ranks.

Section Split.

Variables (F : fieldType) (Group In Out : finType) (d : nat) (count : Group -> nat).

(** [count g] heads for each group [g]. *)
Definition split_head : finType := [finType of {g : Group & 'I_(count g)}].

Definition head_of (g : Group) (j : 'I_(count g)) : split_head := Tagged (fun g => 'I_(count g)) j.

Lemma card_split_head : #|split_head| = (\sum_g count g)%N.
Proof.
by rewrite card_tagged sumnE big_map big_enum /=; apply: eq_bigr => g _; rewrite card_ord.
Qed.

Lemma sum_split_head (f : split_head -> F) :
  \sum_h f h = \sum_g \sum_(j < count g) f (head_of j).
Proof. by rewrite (sig_big_dep _ _ (fun g j => f (@head_of g j))); apply: eq_bigr => -[]. Qed.

(** Maps of low enough rank are sums of maps of width d, one for each head of their group. *)
Lemma split_maps (C : Group -> In -> Out -> F) :
  (forall g, (family_rank (C g) <= count g * d)%N) ->
  exists (V : split_head -> In -> 'I_d -> F) (U : split_head -> 'I_d -> Out -> F),
    forall g i o, \sum_(j < count g) through (V (head_of j)) (U (head_of j)) i o = C g i o.
Proof.
move=> low.
have factors g : exists LR : (In -> 'I_(count g) * 'I_d -> F) * ('I_(count g) * 'I_d -> Out -> F),
    forall i o, C g i o = \sum_h LR.1 i h * LR.2 h o.
  have [|L [R eC]] := @low_rank_factors F _ _ [finType of 'I_(count g) * 'I_d] (C g).
    by rewrite card_prod !card_ord.
  by exists (L, R).
have /fin_all_exists[LR eLR] := factors.
exists (fun h i e => (LR (tag h)).1 i (tagged h, e)), (fun h e o => (LR (tag h)).2 (tagged h, e) o).
move=> g i o; rewrite eLR /through /=.
by rewrite (pair_bigA _ (fun j e => (LR g).1 i (j, e) * (LR g).2 (j, e) o)); apply: eq_bigr => -[].
Qed.

(** A layer does not change if its heads are split. *)
Lemma split_layer (Key : finType) (Query : Type) (A : Group -> Query -> Key -> F)
    (C : Group -> In -> Out -> F) (M : split_head -> In -> Out -> F) X q o :
  (forall g i o, \sum_(j < count g) M (head_of j) i o = C g i o) ->
  attention_layer (fun h : split_head => A (tag h)) M X q o = attention_layer A C X q o.
Proof.
move=> eC; rewrite /attention_layer sum_split_head; apply: eq_bigr => g _ /=.
rewrite /feature_map exchange_big; apply: eq_bigr => i _ /=.
by rewrite -big_distrr /= eC.
Qed.

End Split.
