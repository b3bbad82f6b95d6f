(** C20.rank (refuted): a head's map has rank at most D_h, not D_out - D_h.

    The map of a head is W_val W_out, with W_val of D_in × D_h and W_out of D_h × D_out, over any
    field. (1) Its rank is at most min(D_in, D_h, D_out), and (2) reaches that. (3) Where
    D_out > 2 D_h, as with D_h = D_out / N_h and three heads or more, it is never the printed
    D_out - D_h.
    (4) What the paper concludes stands: a map of rank above D_h is none of a head, and any D_h of
    the D_out outputs of one head's map, chosen by an injective [choose], can be those of any
    D_in × D_h map. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import zify.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Lemma product_rank (F : fieldType) (D_in D_h D_out : nat)
    (W_val : 'M[F]_(D_in, D_h)) (W_out : 'M[F]_(D_h, D_out)) :
  (\rank (W_val *m W_out) <= minn D_in (minn D_h D_out))%N.
Proof.
by rewrite !leq_min rank_leq_row rank_leq_col mulmx_max_rank.
Qed.

Theorem rank (F : fieldType) (D_in D_h D_out : nat) :
  (forall (W_val : 'M[F]_(D_in, D_h)) (W_out : 'M[F]_(D_h, D_out)),
    (\rank (W_val *m W_out) <= minn D_in (minn D_h D_out))%N) /\
  (exists (W_val : 'M[F]_(D_in, D_h)) (W_out : 'M[F]_(D_h, D_out)),
    \rank (W_val *m W_out) = minn D_in (minn D_h D_out)) /\
  ((D_h.*2 < D_out)%N ->
    forall (W_val : 'M[F]_(D_in, D_h)) (W_out : 'M[F]_(D_h, D_out)),
      \rank (W_val *m W_out) <> (D_out - D_h)%N) /\
  (forall W : 'M[F]_(D_in, D_out), (D_h < \rank W)%N ->
    forall (W_val : 'M[F]_(D_in, D_h)) (W_out : 'M[F]_(D_h, D_out)), W_val *m W_out <> W) /\
  (forall choose : 'I_D_h -> 'I_D_out, injective choose ->
    exists W_out : 'M[F]_(D_h, D_out), forall W : 'M[F]_(D_in, D_h),
    exists W_val : 'M[F]_(D_in, D_h), forall i j, (W_val *m W_out) i (choose j) = W i j).
Proof.
split; [exact: product_rank | split; [| split; [| split]]].
- exists (pid_mx (minn D_in (minn D_h D_out))), (pid_mx (minn D_in (minn D_h D_out))).
  by rewrite mul_pid_mx rank_pid_mx; lia.
- by move=> small W_val W_out; have := product_rank W_val W_out; lia.
- by move=> W large W_val W_out eW; have := product_rank W_val W_out; rewrite eW; lia.
move=> choose inj; exists (\matrix_(e, o) (o == choose e)%:R) => W; exists W => i j.
rewrite mxE (bigD1 j) //= mxE eqxx mulr1 big1 ?addr0 // => e /negbTE ne.
by rewrite mxE (inj_eq inj) eq_sym ne mulr0.
Qed.
