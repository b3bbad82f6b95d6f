(** S.causal (c), converse: with independent taps no fewer than T + 1 causal heads are exact.

    Let a layer with any number of heads be, at every query that has all T ≥ 1 taps, the causal
    convolution with T linearly independent taps on N > T tokens, with weights that are not zero at
    any key a query sees, as a softmax of finite scores has them. Then it has more than T heads, over
    every field. The weights need not be relative, nor sum to one. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import zify.
From Convattn.foundation Require Import attention rank nonzero_heads causal.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Theorem causal_least (F : fieldType) (In Out Head : finType) (N T : nat)
    (A : Head -> 'I_N -> 'I_N -> F) (V : Head -> In -> Out -> F) (W : nat -> In -> Out -> F) :
  (0 < T < N)%N ->
  family_rank (fun (d : 'I_T) (st : In * Out) => W d st.1 st.2) = T ->
  (forall h (q k : 'I_N), (k <= q)%N -> A h q k != 0) ->
  causal_expresses T A V W ->
  (T < #|Head|)%N.
Proof.
move=> /andP [some more] full nz computes.
have ltN : (N.-1 < N)%N by lia.
pose q : 'I_N := Ordinal ltN.
have key e : (e < N)%N -> exists2 k : 'I_N, (k <= q)%N & (q - k)%N = e.
  move=> lte; have ltk : (q - e < N)%N by rewrite /q /=; lia.
  by exists (Ordinal ltk); rewrite /q /=; lia.
have [k0 le0 far] := key T more.
have full' : family_rank (fun (d : 'I_T) (st : In * Out) => W d st.1 st.2) = #|'I_T| by rewrite card_ord.
have := nonzero_heads (M := fun d : 'I_T => W d) (A := A) (V := V) (q0 := q) (k0 := k0) (Ordinal some) full'.
rewrite card_ord; apply=> [d|s t|h]; last exact: nz.
  have [|k le near] := key d; first by apply: ltn_trans more.
  exists q, k => s t; rewrite (causal_coefficients computes) //; last by rewrite /q /=; lia.
  by rewrite near ltn_ord.
by rewrite (causal_coefficients computes) ?far ?ltnn //; rewrite /q /=; lia.
Qed.
