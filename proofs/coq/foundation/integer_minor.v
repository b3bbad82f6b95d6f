(** Minors of families of integers, seen in a field. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import rank.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

(** In characteristic zero only the integer zero is zero. *)
Lemma intr_eq0_char0 (F : fieldType) (z : int) :
  [char F] =i pred0 -> ((z%:~R : F) == 0) = (z == 0).
Proof.
move=> /charf0P char0; case: z => n /=; first by rewrite -pmulrn char0.
by rewrite NegzE mulrNz oppr_eq0 -pmulrn char0.
Qed.

Section Minor.

Variables (F : fieldType) (Row Column : finType) (n : nat).
Variables (row : 'I_n -> Row) (column : 'I_n -> Column).

(** A minor that is invertible in the field bounds the rank there. *)
Lemma rank_of_field_minor (M : Row -> Column -> F) :
  \det (\matrix_(i, j) M (row i) (column j)) != 0 -> (n <= family_rank M)%N.
Proof.
set A := (\matrix_(i, j) _ : 'M[F]_n) => nz.
have unitA : A \in unitmx by rewrite unitmxE unitfE.
pose L a r := \sum_i invmx A a i * (r == row i)%:R.
rewrite -{1}[n]card_ord; apply: (@family_rank_left_inverse _ _ _ _ _ L column) => a b.
transitivity ((invmx A *m A) a b); last by rewrite mulVmx // mxE.
rewrite mxE /L; under eq_bigr do rewrite big_distrl.
rewrite exchange_big; apply: eq_bigr => i _ /=.
rewrite (bigD1 (row i)) //= eqxx mulr1 big1 ?addr0 ?mxE // => r /negbTE ->.
by rewrite mulr0 mul0r.
Qed.

(** So does one of integers whose determinant is not zero in the field. *)
Lemma rank_of_minor (M : Row -> Column -> int) :
  (\det (\matrix_(i, j) M (row i) (column j)))%:~R != 0 :> F ->
  (n <= family_rank (fun r c => (M r c)%:~R : F))%N.
Proof.
move=> nz; apply: rank_of_field_minor; move: nz; rewrite -det_map_mx.
by congr (\det _ != 0); apply/matrixP => i j; rewrite !mxE.
Qed.

End Minor.
