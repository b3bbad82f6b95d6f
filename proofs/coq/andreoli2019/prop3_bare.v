(** A19.prop3, to be read with it: on a bare grid, grid convolutions do not compose to one.

    Let e be the shift by one node on an axis of two nodes or more, of a bare grid of any number of
    axes, none of them empty. Then A_e A_-e is the diagonal matrix with 1 at the nodes from which the
    step does not lead outside, and 0 at the others: diag(1, 0) for the line of two nodes. It is not a
    combination of shift matrices, of whatever shifts and however many. So the convolution with A_-e
    after the one with A_e, one channel and Θ = 1 for both, is no grid convolution. Over every
    field. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import zify.
From Convattn.foundation Require Import attention structure shifts.
From Convattn.andreoli2019 Require Import prop2_full prop3.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Section Bare.

Variables (F : fieldType) (Axis : finType) (S : Axis -> nat).
Implicit Types m n : node S.

(** There and back: the identity, less the nodes whose step leads outside. *)
Lemma there_and_back i m n :
  \sum_l shift_matrix F (unit_shift i) m l * shift_matrix F (- unit_shift i) l n =
    ((m == n) && ((m i).+1 < S i)%N)%:R.
Proof.
have [lt|ge] := ltnP; last first.
  rewrite andbF sum_after0 // => l; apply/eqP => /step_up e.
  by have := ltn_ord (l i); lia.
rewrite (sum_after _ (difference_up lt)) andbT shift_matrix_opp /shift_matrix.
rewrite -(difference_up lt); congr (_%:R); congr nat_of_bool.
by apply/eqP/eqP => [/difference_injl -> | ->].
Qed.

(** Combinations of shift matrices are constant on the diagonal. *)
Lemma there_and_back_no_combination (K : finType) (d : K -> shift Axis) (c : K -> F) i m :
  (1 < S i)%N ->
  ~ forall m n, ((m == n) && ((m i).+1 < S i)%N)%:R = \sum_k c k * shift_matrix F (d k) m n.
Proof.
move=> lt e; have lt0 : (0 < S i)%N by lia.
have ltl : ((S i).-1 < S i)%N by lia.
have := e (moved m i 0) (moved m i 0); have := e (moved m i (S i).-1) (moved m i (S i).-1).
rewrite !eqxx !moved_place // !eqxx lt /shift_matrix.
rewrite (_ : (S i).-1.+1 < S i = false)%N; last by lia.
under eq_bigr do rewrite difference_self.
under [in X in _ -> X]eq_bigr do rewrite difference_self.
by move=> <- /esym/eqP; rewrite eq_sym oner_eq0.
Qed.

End Bare.

Theorem prop3_bare (F : fieldType) (Axis : finType) (S : Axis -> nat) (i : Axis) :
  (forall j, 0 < S j)%N -> (1 < S i)%N ->
  let forth (_ : unit) := @shift_matrix F _ S (unit_shift i) in
  let back (_ : unit) := @shift_matrix F _ S (- unit_shift i) in
  let one (_ _ _ : unit) : F := 1 in
  [/\ forall m n, \sum_l forth tt m l * back tt l n = ((m == n) && ((m i).+1 < S i)%N)%:R,
      forall (K : finType) (d : K -> shift Axis) (c : K -> F),
        ~ forall m n, \sum_l forth tt m l * back tt l n = \sum_k c k * shift_matrix F (d k) m n &
      forall (K : finType) (d : K -> shift Axis) (Theta : K -> unit -> unit -> F),
        ~ forall x n u,
            structured_convolution back one (structured_convolution forth one x) n u =
              structured_convolution (fun k => @shift_matrix F _ S (d k)) Theta x n u].
Proof.
move=> lt0 lt1 forth back one.
pose m0 : node S := [ffun j => Ordinal (lt0 j)].
split=> [m n | K d c e | K d Theta e].
- exact: there_and_back.
- apply: (there_and_back_no_combination (d := d) (c := c) m0 lt1) => m n.
  by rewrite -there_and_back e.
apply: (there_and_back_no_combination (d := d) (c := fun k => Theta k tt tt) m0 lt1) => m n.
have [_ composed] := prop3 (omega := fun u : unit * unit => u)
  (A := fun u m n => \sum_l forth u.1 m l * back u.2 l n)
  (Theta := fun u p q => \sum_r one u.1 p r * one u.2 r q)
  (Bijective (fun=> erefl) (fun=> erefl)) (fun _ _ _ _ => erefl) (fun _ _ _ _ => erefl).
have := e (unit_input F m tt) n tt; rewrite composed !convolution_as_transform !transform_of_unit.
rewrite /mixed_product /flattened /= (bigD1 (tt, tt)) //= [X in _ + X]big1 ?addr0; last first.
  by case=> -[] [].
rewrite there_and_back (bigD1 tt) //= [X in _ + X]big1 ?addr0; last by case.
rewrite mulr1 mulr1 => ->.
by apply: eq_bigr => k _; rewrite mulrC.
Qed.
