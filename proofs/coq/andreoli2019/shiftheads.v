(** A19.shiftheads: shift-matrix heads beside attention heads.

    A basis of attention matrices followed by shift matrices, with the parameters in the same order,
    gives the sum of the attention convolution and the grid convolution. Let the attention matrices
    be softmaxes over the keys of weights that are any functions of the two tokens (self-attention
    without positions). Then the attention convolution is equivariant to every reordering of the
    tokens. Beside it, one shift head d that is no zero shift, and occurs on the grid, with Θ_d ≠ 0
    breaks that: for some tokens and some reordering the layer does not move along.

    And A_d has a column of zeros, for every d ≠ 0 on a grid without an empty axis. That the columns of
    a softmax sum to one, so that "precisely", said of attention heads that play the role of shift
    matrices, cannot be meant, is no part of this. Over every field, for grids of any number of
    axes. *)

From mathcomp Require Import all_ssreflect all_fingroup all_algebra.
From mathcomp Require Import zify.
From Convattn.foundation Require Import attention structure shifts.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

(** The basis of both: the heads of the one, then those of the other. *)
Definition beside (K K' : Type) (T : Type) (a : K -> T) (b : K' -> T) (k : K + K') : T :=
  match k with inl k => a k | inr k => b k end.

(** Self-attention without positions: column n is the softmax of the weights between x_m and x_n. *)
Definition positionless_attention (F : fieldType) (K Token P : finType)
    (weight : K -> (P -> F) -> (P -> F) -> F) (x : Token -> P -> F) (k : K) (m n : Token) : F :=
  softmax (fun l => weight k (x l) (x n)) m.

Section Heads.

Variables (F : fieldType) (P : finType) (Q : Type).

Lemma heads_beside (K K' M : finType) (N : Type) (A : K -> M -> N -> F) (B : K' -> M -> N -> F)
    (Theta : K -> P -> Q -> F) (Theta' : K' -> P -> Q -> F) x n q :
  structured_convolution (beside A B) (beside Theta Theta') x n q =
    structured_convolution A Theta x n q + structured_convolution B Theta' x n q.
Proof. exact: big_sumType. Qed.

(** Attention moves along with the tokens. *)
Lemma attention_moves_along (K Token : finType) (weight : K -> (P -> F) -> (P -> F) -> F)
    (Theta : K -> P -> Q -> F) (s : {perm Token}) (x : Token -> P -> F) n q :
  structured_convolution (positionless_attention weight (fun m => x (s m))) Theta
      (fun m => x (s m)) n q =
    structured_convolution (positionless_attention weight x) Theta x (s n) q.
Proof.
apply: eq_bigr => k _; apply: eq_feature_map => // p.
rewrite /attend [RHS](reindex_inj (@perm_inj _ s)) /=; apply: eq_bigr => m _; congr (_ * _).
rewrite /positionless_attention /softmax; congr (_ / _).
by rewrite [RHS](reindex_inj (@perm_inj _ s)).
Qed.

Variables (Axis : finType) (S : Axis -> nat).

(** One shift head alone does not. *)
Lemma shift_stays (d : shift Axis) (m0 n0 : node S) (Theta : P -> Q -> F) p q :
  d != 0 -> difference m0 n0 = d -> Theta p q != 0 ->
  exists (x : node S -> P -> F) (s : {perm node S}) (n : node S),
    structured_convolution (fun _ : unit => shift_matrix F d) (fun _ => Theta)
        (fun m => x (s m)) n q !=
      structured_convolution (fun _ : unit => shift_matrix F d) (fun _ => Theta) x (s n) q.
Proof.
move=> nd e nT; pose x m p' : F := ((m == m0) && (p' == p))%:R.
have one_head y n : structured_convolution (fun _ : unit => shift_matrix F d) (fun _ => Theta) y n q =
    feature_map Theta (fun p' => \sum_m y m p' * shift_matrix F d m n) q.
  rewrite /structured_convolution /attention_layer (bigD1 tt) //= [X in _ + X]big1 ?addr0; last by case.
  by apply: eq_feature_map => // p'; apply: eq_bigr => m _; rewrite mulrC.
have nmn : m0 != n0 by rewrite -difference_eq0 e.
exists x, (tperm m0 n0), m0; rewrite tpermL !one_head.
have -> : feature_map Theta (fun p' => \sum_m x m p' * shift_matrix F d m n0) q = Theta p q.
  rewrite /feature_map (bigD1 p) //= (sum_before _ e) /x !eqxx mul1r big1 ?addr0 // => p' np.
  by rewrite (sum_before _ e) (negbTE np) andbF mul0r.
suff -> : feature_map Theta (fun p' => \sum_m x (tperm m0 n0 m) p' * shift_matrix F d m m0) q = 0.
  by rewrite eq_sym.
rewrite /feature_map big1 // => p' _; rewrite big1 ?mul0r // => m _.
rewrite /shift_matrix; case: eqP => [em|]; last by rewrite mulr0.
rewrite mulr1 /x; case: tpermP => [_|em1|/eqP/negbTE -> _ //].
  by rewrite eq_sym (negbTE nmn).
case/eqP: nd; apply/ffunP => i; move: em e => /ffunP/(_ i) + /ffunP/(_ i).
by rewrite em1 !ffunE; move: (d i) (nat_of_ord (m0 i)) (nat_of_ord (n0 i)) => z a b; lia.
Qed.

(** The first nodes of an axis along which the shift goes are reached from nowhere. *)
Lemma zero_column (d : shift Axis) : (forall i, 0 < S i)%N -> d != 0 ->
  exists n : node S, forall m, shift_matrix F d m n = 0.
Proof.
move=> lt0 nd; have [i di] : exists i, d i != 0.
  apply/existsP; apply: contraR nd => /existsPn d0; apply/eqP/ffunP => i; rewrite ffunE.
  by apply/eqP; rewrite -[_ == _]negbK d0.
have lt1 j : ((S j).-1 < S j)%N by have := lt0 j; lia.
pose n : node S := [ffun j => if 0 < d j then Ordinal (lt0 j) else Ordinal (lt1 j)].
exists n => m; rewrite /shift_matrix; case: eqP => // /ffunP/(_ i) e; exfalso; move: e di.
by have := ltn_ord (m i); rewrite !ffunE; move: (d i) => z; case: ifP => /=; lia.
Qed.

End Heads.

Theorem shiftheads (F : fieldType) (P : finType) (Q : Type) (Axis : finType) (S : Axis -> nat) :
  [/\ forall (K K' : finType) (A : K -> node S -> node S -> F) (d : K' -> shift Axis)
          (Theta : K -> P -> Q -> F) (Theta' : K' -> P -> Q -> F) x n q,
        structured_convolution (beside A (fun k => @shift_matrix F _ S (d k)))
            (beside Theta Theta') x n q =
          structured_convolution A Theta x n q +
            structured_convolution (fun k => @shift_matrix F _ S (d k)) Theta' x n q,
      forall (K : finType) (weight : K -> (P -> F) -> (P -> F) -> F) (Theta : K -> P -> Q -> F)
          (s : {perm node S}) (x : node S -> P -> F) n q,
        structured_convolution (positionless_attention weight (fun m => x (s m))) Theta
            (fun m => x (s m)) n q =
          structured_convolution (positionless_attention weight x) Theta x (s n) q,
      forall (K : finType) (weight : K -> (P -> F) -> (P -> F) -> F) (Theta : K -> P -> Q -> F)
          (d : shift Axis) (m0 n0 : node S) (Theta' : P -> Q -> F) p q,
        d != 0 -> difference m0 n0 = d -> Theta' p q != 0 ->
        let layer (x : node S -> P -> F) := structured_convolution
          (beside (positionless_attention weight x) (fun _ : unit => shift_matrix F d))
          (beside Theta (fun _ => Theta')) x in
        exists x (s : {perm node S}) n, layer (fun m => x (s m)) n q != layer x (s n) q &
      forall d : shift Axis, (forall i, 0 < S i)%N -> d != 0 ->
        exists n : node S, forall m, shift_matrix F d m n = 0].
Proof.
split=> [K K' A d Theta Theta' x n q | K weight Theta s x n q
    | K weight Theta d m0 n0 Theta' p q nd e nT layer | d].
- exact: heads_beside.
- exact: attention_moves_along.
- have [x [s [n ne]]] := shift_stays nd e nT; exists x, s, n.
  rewrite /layer !heads_beside attention_moves_along.
  by apply: contraNneq ne => /addrI ->.
exact: zero_column.
Qed.
