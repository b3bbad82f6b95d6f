(** Grids of any number of axes, and their shift matrices: A19's Definition 1.

    A node has a place below [S i] on each axis [i]; a shift has an integer for
    each axis. (A_d)_mn = 1 where n - m = d, and 0 elsewhere: a bare grid, on
    which shifts that lead outside are cut off. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import zify.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Definition node (Axis : finType) (S : Axis -> nat) : finType :=
  [finType of {dffun forall i, 'I_(S i)}].

Definition shift (Axis : finType) : zmodType := [zmodType of {ffun Axis -> int}].

(** n - m. *)
Definition difference (Axis : finType) (S : Axis -> nat) (m n : node S) : shift Axis :=
  [ffun i => (n i)%:Z - (m i)%:Z].

Definition shift_matrix (F : fieldType) (Axis : finType) (S : Axis -> nat)
    (d : shift Axis) (m n : node S) : F :=
  (difference m n == d)%:R.

(** The same entry from the places on each axis, listed in any order: this computes. *)
Definition shift_entry (d : seq int) (m n : seq nat) : bool :=
  [seq p.2%:Z - p.1%:Z | p <- zip m n] == d.

(** The shift by one node on one axis. *)
Definition unit_shift (Axis : finType) (i : Axis) : shift Axis := [ffun j => (j == i)%:R].

(** The node at the place [k] on the axis [i], and elsewhere as [m]. *)
Definition moved (Axis : finType) (S : Axis -> nat) (m : node S) (i : Axis) (k : nat) : node S :=
  [ffun j => insubd (m j) (if j == i then k else m j)].

(** The shifts that occur on a grid, from -(S i - 1) to S i - 1 on each axis, counted from 0. *)
Definition occurring (Axis : finType) (S : Axis -> nat) : finType :=
  [finType of {dffun forall i, 'I_(S i).*2.-1}].

Definition occurring_shift (Axis : finType) (S : Axis -> nat) (d : occurring S) : shift Axis :=
  [ffun i => (d i)%:Z - (S i).-1%:Z].

Section Nodes.

Variables (Axis : finType) (S : Axis -> nat).
Implicit Types (m n l : node S) (i j : Axis).

Lemma eq_node m n : (forall i, m i = n i :> nat) -> m = n.
Proof. by move=> e; apply/ffunP => i; apply: val_inj; rewrite /= e. Qed.

Lemma moved_place m i k j : (k < S i)%N -> moved m i k j = (if j == i then k else m j) :> nat.
Proof.
move=> ltk; rewrite ffunE val_insubd; case: eqP => [->|_]; first by rewrite ltk.
by rewrite ltn_ord.
Qed.

Lemma difference_self m : difference m m = 0.
Proof. by apply/ffunP => i; rewrite !ffunE subrr. Qed.

Lemma difference_eq0 m n : (difference m n == 0) = (m == n).
Proof.
apply/eqP/eqP => [/ffunP e | ->]; last exact: difference_self.
by apply: eq_node => i; have := e i; rewrite !ffunE => /eqP; rewrite subr_eq0 => /eqP[].
Qed.

Lemma difference_opp m n : difference n m = - difference m n.
Proof. by apply/ffunP => i; rewrite !ffunE opprB. Qed.

(** A node is known by its difference from another. *)
Lemma difference_inj m l l' : difference m l = difference m l' -> l = l'.
Proof.
move/ffunP => e; apply: eq_node => i; have := e i; rewrite !ffunE => /addIr[]; exact.
Qed.

Lemma difference_injl n l l' : difference l n = difference l' n -> l = l'.
Proof. by rewrite difference_opp [RHS]difference_opp => /oppr_inj/difference_inj. Qed.

(** One step up an axis is the unit shift. *)
Lemma difference_up m i : ((m i).+1 < S i)%N ->
  difference m (moved m i (m i).+1) = unit_shift i.
Proof.
move=> lt; apply/ffunP => j; rewrite [LHS]ffunE moved_place // !ffunE.
by case: eqP => [->|_] /=; lia.
Qed.

Lemma difference_down m i : (0 < m i)%N ->
  difference m (moved m i (m i).-1) = - unit_shift i.
Proof.
move=> lt; have ltS := ltn_ord (m i).
apply/ffunP => j; rewrite [LHS]ffunE moved_place ?[RHS]ffunE ?ffunE; last by lia.
by case: eqP => [->|_] /=; lia.
Qed.

(** What differs by a unit shift is one step up. *)
Lemma step_up m n i : difference m n = unit_shift i -> (n i = (m i).+1 :> nat)%N.
Proof. by move/ffunP/(_ i); rewrite !ffunE eqxx => e; lia. Qed.

(** Every occurring shift does occur. *)
Lemma occurs (d : occurring S) : exists m n, difference m n = occurring_shift d.
Proof.
have lt1 i : (d i - (S i).-1 < S i)%N by have := ltn_ord (d i); lia.
have lt2 i : ((S i).-1 - d i < S i)%N by have := ltn_ord (d i); lia.
exists ([ffun i => Ordinal (lt2 i)] : node S), ([ffun i => Ordinal (lt1 i)] : node S).
by apply/ffunP => i; rewrite !ffunE /=; have := ltn_ord (d i); lia.
Qed.

Lemma occurring_bound m n i : (n i + (S i).-1 - m i < (S i).*2.-1)%N.
Proof. by have := ltn_ord (m i); have := ltn_ord (n i); lia. Qed.

(** The difference of two nodes among the occurring shifts. *)
Definition difference_index m n : occurring S := [ffun i => Ordinal (occurring_bound m n i)].

Lemma difference_index_shift m n : occurring_shift (difference_index m n) = difference m n.
Proof. by apply/ffunP => i; rewrite !ffunE /=; have := ltn_ord (m i); lia. Qed.

Lemma occurring_shift_inj : injective (@occurring_shift Axis S).
Proof.
move=> d d' /ffunP e; apply/ffunP => i; apply: val_inj => /=.
by have := e i; rewrite !ffunE => /addIr[].
Qed.

End Nodes.

Section Products.

Variables (F : fieldType) (Axis : finType) (S : Axis -> nat).
Implicit Types (m n l : node S) (f : node S -> F).

(** A product with a shift matrix picks the node from which the shift leads here, if there is one. *)
Lemma sum_before f l n d : difference l n = d -> \sum_l' f l' * shift_matrix F d l' n = f l.
Proof.
move=> e; rewrite (bigD1 l) //= /shift_matrix e eqxx mulr1 big1 ?addr0 // => l' nl.
case: eqP => [e'|_]; last by rewrite mulr0.
by case/eqP: nl; apply: (@difference_injl _ _ n); rewrite e e'.
Qed.

(** And to which it leads from here. *)
Lemma sum_after f m l d : difference m l = d -> \sum_l' shift_matrix F d m l' * f l' = f l.
Proof.
move=> e; rewrite (bigD1 l) //= /shift_matrix e eqxx mul1r big1 ?addr0 // => l' nl.
case: eqP => [e'|_]; last by rewrite mul0r.
by case/eqP: nl; apply: (@difference_inj _ _ m); rewrite e e'.
Qed.

Lemma sum_after0 f m d : (forall l, difference m l != d) ->
  \sum_l shift_matrix F d m l * f l = 0.
Proof. by move=> no; rewrite big1 // => l _; rewrite /shift_matrix (negbTE (no l)) mul0r. Qed.

Lemma shift_matrix_list (axes : seq Axis) d m n : (forall i, i \in axes) ->
  shift_matrix F d m n =
    (shift_entry (map d axes) [seq val (m i) | i <- axes] [seq val (n i) | i <- axes])%:R.
Proof.
move=> all_axes; rewrite /shift_matrix /shift_entry zip_map -map_comp; congr (nat_of_bool _)%:R.
apply/eqP/eqP => [<- | /eq_in_map e].
  by apply: eq_map => i; rewrite ffunE.
by apply/ffunP => i; rewrite ffunE; exact: e.
Qed.

Lemma shift_matrix_opp d m n : shift_matrix F (- d) m n = shift_matrix F d n m.
Proof. by rewrite /shift_matrix difference_opp eqr_opp. Qed.

End Products.
