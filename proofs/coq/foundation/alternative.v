(** Farkas' lemma over an ordered field, and Stiemke's form of Gordan's theorem. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory Num.Theory Order.Theory.
Local Open Scope ring_scope.

Section Alternative.

Variable F : realFieldType.

(** Either some x has A x ≤ 0 and g x > 0, or g is a combination of the rows of A with numbers that are not
    negative: by induction on the rows (Bartl). *)
Lemma farkas (k n : nat) (A : 'M[F]_(k, n)) (g : 'rV[F]_n) :
  (exists x : 'cV[F]_n, (forall i, (A *m x) i ord0 <= 0) /\ 0 < (g *m x) ord0 ord0) \/
  (exists l : 'rV[F]_k, (forall i, 0 <= l ord0 i) /\ g = l *m A).
Proof.
elim: k A g => [A g|k IH].
  have [->|nz] := eqVneq g 0.
    by right; exists 0; split=> [[]//|]; rewrite mul0mx.
  have [j nzj] : exists j, g ord0 j != 0.
    apply/existsP; apply: contraNT nz; rewrite negb_exists => /forallP zero.
    by apply/eqP/rowP => j; rewrite mxE; apply/eqP; move: (zero j); rewrite negbK.
  left; exists (g ord0 j *: delta_mx j ord0); split=> [[]//|].
  by rewrite -scalemxAr -colE !mxE -expr2 lt_def sqrf_eq0 nzj sqr_ge0.
rewrite -[k.+1]/(1 + k)%N => A g; pose a := usubmx A; pose B := dsubmx A.
have rowsA (x : 'cV_n) : (a *m x) ord0 ord0 <= 0 -> (forall i, (B *m x) i ord0 <= 0) ->
    forall i, (A *m x) i ord0 <= 0.
  move=> lea leB i; rewrite -[A](vsubmxK A) mul_col_mx.
  by case: (split_ordP i) => j ->; rewrite ?col_mxEu ?col_mxEd ?ord1.
have combineA (c : F) (l : 'rV_k) : row_mx c%:M l *m A = c *: a + l *m B.
  by rewrite -[A](vsubmxK A) mul_row_col mul_scalar_mx.
have nonneg (c : F) (l : 'rV_k) : 0 <= c -> (forall i, 0 <= l ord0 i) ->
    forall i, 0 <= (row_mx c%:M l : 'rV_(1 + k)) ord0 i.
  move=> c0 l0 i; case: (split_ordP i) => j ->; rewrite ?row_mxEl ?row_mxEr //.
  by rewrite (ord1 j) mxE eqxx.
have [[x0 [leB pos]]|[l [l0 eg]]] := IH B g; last first.
  by right; exists (row_mx 0%:M l); rewrite combineA scale0r add0r; split=> //; exact: nonneg.
have [lea|gta] := leP ((a *m x0) ord0 ord0) 0.
  by left; exists x0; split=> //; exact: rowsA.
pose x := ((a *m x0) ord0 ord0)^-1 *: x0.
have ax : a *m x = 1%:M.
  by rewrite /x -scalemxAr; apply/matrixP => i j; rewrite !ord1 mxE [RHS]mxE eqxx mulVf // gt_eqF.
have leBx i : (B *m x) i ord0 <= 0.
  by rewrite /x -scalemxAr mxE pmulr_rle0 ?invr_gt0.
have posx : 0 < (g *m x) ord0 ord0 by rewrite /x -scalemxAr mxE mulr_gt0 ?invr_gt0.
have [[y [leB' pos']]|[l [l0 eg]]] := IH (B - B *m x *m a) (g - g *m x *m a).
  left; exists (y - x *m (a *m y)).
  have moved (j : nat) (C : 'M_(j, n)) : C *m (y - x *m (a *m y)) = (C - C *m x *m a) *m y.
    by rewrite mulmxBr mulmxBl !mulmxA.
  split; last by rewrite moved.
  apply: rowsA => [|i]; last by rewrite moved.
  by rewrite moved ax mul1mx subrr mul0mx mxE.
right; pose c := (g *m x) ord0 ord0 - (l *m (B *m x)) ord0 ord0.
exists (row_mx c%:M l); split.
  apply: nonneg => //; rewrite subr_ge0; apply: le_trans (ltW posx).
  by rewrite mxE -oppr_ge0 -sumrN sumr_ge0 // => i _; rewrite oppr_ge0 mulr_ge0_le0.
have ec : c%:M = g *m x - l *m (B *m x) :> 'M_1.
  by rewrite [RHS]mx11_scalar; congr (_%:M); rewrite [RHS]mxE [X in _ = _ + X]mxE.
rewrite combineA -mul_scalar_mx ec mulmxBl -[LHS](subrK (g *m x *m a)) eg mulmxBr !mulmxA.
by rewrite addrC addrA addrAC.
Qed.

(** Either the row space contains a vector that is not negative and not zero, or some z > 0 is orthogonal to it. *)
Lemma stiemke (k l : nat) (A : 'M[F]_(k, l)) :
  (exists c : 'rV[F]_k, (forall d, 0 <= (c *m A) ord0 d) /\ c *m A != 0) \/
  (exists z : 'cV[F]_l, (forall d, 0 < z d ord0) /\ A *m z = 0).
Proof.
suff some (s : seq 'I_l) :
    (exists c : 'rV[F]_k, (forall d, 0 <= (c *m A) ord0 d) /\ c *m A != 0) \/
    (exists z : 'cV[F]_l, [/\ forall d, 0 <= z d ord0, forall d, d \in s -> 1 <= z d ord0 & A *m z = 0]).
  have [yes|[z [_ large zero]]] := some (enum 'I_l); [by left | right].
  by exists z; split=> // d; apply: lt_le_trans ltr01 (large d _); rewrite mem_enum.
elim: s => [|d s [yes|[z [z0 large zero]]]]; [|by left|].
  by right; exists 0; split=> [d|//|]; rewrite ?mulmx0 // mxE.
have [[x [below above]]|[t [t0 et]]] := farkas (- A^T) (col d A)^T.
  left; exists x^T; split=> [e|].
    by have := below e; rewrite mulNmx mxE oppr_le0 -[x^T *m A]trmxK trmx_mul trmxK [in X in _ -> X]mxE.
  apply/eqP => /rowP/(_ d); rewrite [RHS]mxE => e; move: above.
  have -> : (col d A)^T *m x = ((x^T *m A) *m delta_mx d ord0)^T.
    by rewrite -mulmxA -colE trmx_mul trmxK.
  by rewrite -colE !mxE; move: e; rewrite mxE => ->; rewrite ltxx.
right; exists (z + delta_mx d ord0 + t^T); split=> [e|e|].
- by rewrite !mxE !addr_ge0 ?ler0n.
- rewrite inE !mxE => /orP [/eqP ->|in_s].
    by rewrite !eqxx addrAC ler_addr addr_ge0.
  by rewrite -addrA ler_paddr ?large // addr_ge0 ?ler0n.
rewrite !mulmxDr zero add0r -colE -[col d A]trmxK et mulmxN linearN /= trmx_mul trmxK.
by rewrite addNr.
Qed.

End Alternative.
