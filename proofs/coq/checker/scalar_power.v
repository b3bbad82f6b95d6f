(** The rows of a scalar-power head are softmaxes of a score with one parameter, for every N.

    Let the offsets of a query be distinct keys, N keys in all, and give each offset a base above
    zero. The head of exponent e has the weights base_δ^e at the offsets and 1 at every other key,
    the exponentials of the scores e · log(base_δ) and 0. Its softmax is what [attention.py] writes
    down as c_δ = base_δ^e - 1 and u1 = 1; and these numbers meet the checker's conditions on a row
    at finite scores. So they do for every N, over every ordered field. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention certified_heads.
From Convattn.checker Require Import equality.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Theorem scalar_power (F : numFieldType) (Offset Key : finType) (target : Offset -> Key)
    (base : Offset -> F) (e : nat) (weight : Key -> F) :
  injective target -> (forall d, 0 < base d) ->
  (forall d, weight (target d) = base d ^+ e) ->
  (forall k, (forall d, k != target d) -> weight k = 1) ->
  finite_row (fun d => base d ^+ e - 1) 0 1 /\
  forall k, softmax weight k = shared_row target (fun d => base d ^+ e - 1) 0 1 k.
Proof.
move=> inj base_gt0 at_target elsewhere; split=> [|k].
  by rewrite /finite_row lexx ler01 add0r ltr01 /=; apply/forallP => d;
     rewrite subrK exprn_gt0 // ltW // exprn_gt0.
have nzN : #|Key|%:R != 0 :> F by rewrite pnatr_eq0 -lt0n; apply/card_gt0P; exists k.
have weightE k' : weight k' = shared_weight target (fun d => base d ^+ e - 1) 0 1 k'.
  rewrite /shared_weight add0r mul1r divff //.
  have [d /eqP at_d|none] := pickP (fun d => k' == target d).
    rewrite at_d at_target (bigD1 d) //= eqxx mulr1 big1 ?addr0 ?subrK // => d' ne.
    by rewrite (inj_eq inj) eq_sym (negbTE ne) mulr0.
  rewrite elsewhere => [|d]; last by rewrite none.
  by rewrite big1 ?add0r // => d _; rewrite none mulr0.
rewrite /softmax /shared_row weightE -(sum_shared_weight target) //.
by congr (_ / _); apply: eq_bigr.
Qed.
