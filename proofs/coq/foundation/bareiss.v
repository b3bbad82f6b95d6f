(** The determinant of a list of lists of integers, by elimination without fractions.

    Bareiss's elimination below the pivot p divides p·a - b·c by the pivot before. Here every such
    division is checked as it is done: that it is exact, which Sylvester's identity says, need not be
    proved. A pivot that is zero is mended by adding rows below, which leaves the determinant as it
    is, so that no sign is kept. If the outcome is not zero, it is the determinant; it is zero if the
    determinant is, or if a division was not exact. *)

From Coq Require Import BinInt.
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ssrZ.
From Convattn.foundation Require Import listed_integers.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

(** The first row, and further ones added to it as long as it begins with zero. *)
Definition pivot_row (first : seq Z) (rest : seq (seq Z)) : seq Z :=
  foldl (fun top r => if Z.eqb (head Z0 top) Z0 then add_rows top r else top) first rest.

Definition cross (p : Z) (tail r : seq Z) : seq Z :=
  [seq Z.sub (Z.mul p x.2) (Z.mul (head Z0 r) x.1) | x <- zip tail (behead r)].

Definition exact_division (previous : Z) (rows : seq (seq Z)) : bool :=
  all (all (fun a => Z.eqb (Z.mul (Z.div a previous) previous) a)) rows.

Fixpoint bareiss (n : nat) (previous : Z) (rows : seq (seq Z)) : Z :=
  match n, rows with
  | n'.+1, first :: rest =>
    match pivot_row first rest with
    | p :: tail =>
      if n' is 0 then p else
      if Z.eqb p Z0 then Z0 else
      let crossed := [seq cross p tail r | r <- rest] in
      if exact_division previous crossed
      then bareiss n' p [seq [seq Z.div a previous | a <- r] | r <- crossed]
      else Z0
    | [::] => Z0
    end
  | _, _ => Z0
  end.

(** Lists of lists as matrices. *)
Definition listed_matrix (n : nat) (rows : seq (seq Z)) : 'M[int]_n :=
  \matrix_(i, j) int_of_Z (nth Z0 (nth [::] rows i) j).

Section Pivot.

Variables (n : nat) (rest : seq (seq Z)).
Hypothesis rest_size : size rest = n.
Hypothesis rows_size : all (fun r => size r == n.+1) rest.

(** Adding a row to the first leaves the determinant as it is. *)
Lemma det_add_row first r : size first = n.+1 -> r \in rest ->
  \det (listed_matrix n.+1 (add_rows first r :: rest)) = \det (listed_matrix n.+1 (first :: rest)).
Proof.
move=> first_size in_r; have r_size : size r = n.+1 by apply/eqP/(allP rows_size).
have lt : (index r rest < n)%N by rewrite -rest_size index_mem.
rewrite (@determinant_multilinear _ _ _ (listed_matrix n.+1 (first :: rest))
  (listed_matrix n.+1 (r :: rest)) ord0 1 1).
- rewrite !mul1r [X in _ + X](determinant_alternate (i1 := ord0) (i2 := lift ord0 (Ordinal lt))) ?addr0 //.
  by move=> j; rewrite !mxE /= /bump /= nth_index.
- by apply/rowP => j; rewrite !mxE /= !mul1r nth_add_rows // first_size.
- by apply/matrixP => i j; rewrite !mxE.
- by apply/matrixP => i j; rewrite !mxE.
Qed.

Lemma pivot_row_det first : size first = n.+1 ->
  size (pivot_row first rest) = n.+1 /\
  \det (listed_matrix n.+1 (pivot_row first rest :: rest)) =
    \det (listed_matrix n.+1 (first :: rest)).
Proof.
rewrite /pivot_row; have : {subset rest <= rest} by [].
elim: {1 3 4}rest first => [|r s IH] first sub first_size //=.
have in_r : r \in rest by apply: sub; rewrite mem_head.
have r_size : size r = n.+1 by apply/eqP/(allP rows_size).
have sub' : {subset s <= rest} by move=> x xs; apply: sub; rewrite in_cons xs orbT.
case: ifP => _; last exact: IH.
have size_sum : size (add_rows first r) = n.+1.
  by rewrite size_map size_zip first_size r_size minnn.
by have [? ->] := IH _ sub' size_sum; rewrite det_add_row.
Qed.

End Pivot.

(** One step: below the pivot p all is p·a - b·c, and the power of p on the left pays for it. *)
Lemma det_step (n : nat) (p : Z) (tail : seq Z) (rest : seq (seq Z)) (M : 'M[int]_n) (previous : Z) :
  size tail = n -> size rest = n -> all (fun r => size r == n.+1) rest ->
  (forall i j : 'I_n, int_of_Z (nth Z0 (cross p tail (nth [::] rest i)) j) =
    int_of_Z previous * M i j) ->
  int_of_Z p ^+ n * \det (listed_matrix n.+1 ((p :: tail) :: rest)) =
    int_of_Z p * (int_of_Z previous ^+ n * \det M).
Proof.
move=> tail_size rest_size rows_size eqM.
set A : 'M_(1 + n) := listed_matrix n.+1 _.
pose L : 'M_(1 + n) := block_mx 1%:M 0 (- dlsubmx A) (int_of_Z p)%:M.
have ul : ulsubmx A = (int_of_Z p)%:M.
  by apply/matrixP => i j; rewrite !ord1 !mxE /= mulr1n.
have -> : int_of_Z p ^+ n * \det A = \det (L *m A).
  by rewrite det_mulmx det_lblock det1 det_scalar mul1r.
rewrite -{1}[A]submxK mulmx_block !mul1mx !mul0mx !addr0 ul.
have -> : - dlsubmx A *m (int_of_Z p)%:M + (int_of_Z p)%:M *m dlsubmx A = 0.
  by rewrite mul_mx_scalar mul_scalar_mx scalerN addNr.
rewrite det_ublock det_scalar expr1; congr (_ * _).
rewrite -detZ mul_scalar_mx; congr (\det _); apply/matrixP => i j.
rewrite !mxE big_ord1 !mxE /= -eqM.
have i_lt : (i < size rest)%N by rewrite rest_size.
have /eqP r_size : size (nth [::] rest i) == n.+1 by apply: (allP rows_size); rewrite mem_nth.
rewrite (nth_map (Z0, Z0)) ?size_zip ?size_behead ?r_size ?tail_size ?minnn //.
rewrite nth_zip ?size_behead ?r_size // int_of_ZB !int_of_ZM !nth_behead /=.
by rewrite nth0 mulNr addrC.
Qed.

Lemma bareissE (n : nat) (previous : Z) (rows : seq (seq Z)) :
  size rows = n.+1 -> all (fun r => size r == n.+1) rows -> bareiss n.+1 previous rows != Z0 ->
  \det (listed_matrix n.+1 rows) = int_of_Z (bareiss n.+1 previous rows) * int_of_Z previous ^+ n.
Proof.
elim: n previous rows => [|n IH] previous [//|first rest] [rest_size] /andP[/eqP first_size rows_size].
  have [] := pivot_row_det rest_size rows_size first_size; rewrite /=.
  case: (pivot_row first rest) => [//|p tail] _ <- _; rewrite det_mx11 mxE /=.
  by rewrite expr0 mulr1.
have [top_size <-] := pivot_row_det rest_size rows_size first_size; move: top_size.
rewrite /=; case: (pivot_row first rest) => [//|p tail] [tail_size].
case: ifP => // p_nz; case: ifP => // exact; set crossed := [seq cross _ _ _ | _ <- _].
pose next := [seq [seq Z.div a previous | a <- r] | r <- crossed].
rewrite -/(bareiss n.+1 p next) => nz.
have cross_size r : r \in rest -> size (cross p tail r) = n.+1.
  move=> /(allP rows_size)/eqP r_size.
  by rewrite size_map size_zip size_behead r_size tail_size minnn.
have next_size : size next = n.+1 by rewrite !size_map.
have next_rows : all (fun r => size r == n.+1) next.
  apply/allP => r /mapP[_ /mapP[r' in_r' ->] ->].
  by rewrite size_map cross_size.
have := @det_step _ p _ _ (listed_matrix n.+1 next) previous tail_size rest_size rows_size.
rewrite (IH p next next_size next_rows nz) => step.
have p0 : int_of_Z p != 0 by rewrite int_of_Z_eq0 p_nz.
apply: (mulfI (expf_neq0 n.+1 p0)); rewrite step => [|i j].
  rewrite [int_of_Z p ^+ n.+1]exprS -[RHS]mulrA; congr (_ * _).
  by rewrite mulrC -mulrA [RHS]mulrCA.
have i_lt : (i < size rest)%N by rewrite rest_size.
have in_r : nth [::] rest i \in rest by rewrite mem_nth.
have j_lt : (j < size (cross p tail (nth [::] rest i)))%N by rewrite cross_size.
rewrite !mxE (nth_map [::]) ?size_map // (nth_map [::]) // (nth_map Z0) //.
rewrite -int_of_ZM; congr int_of_Z.
have : cross p tail (nth [::] rest i) \in crossed by rewrite map_f.
move/(allP exact)/all_nthP => /(_ Z0 _ j_lt) /Z.eqb_spec e.
by rewrite [RHS]Z.mul_comm e.
Qed.

(** The determinant, by elimination from the start. *)
Lemma bareiss_det (n : nat) (rows : seq (seq Z)) :
  size rows = n -> all (fun r => size r == n) rows -> bareiss n (Zpos xH) rows != Z0 ->
  \det (listed_matrix n rows) = int_of_Z (bareiss n (Zpos xH) rows).
Proof.
case: n => [//|n] rows_size row_sizes nz.
by rewrite (bareissE rows_size row_sizes nz) expr1n mulr1.
Qed.
