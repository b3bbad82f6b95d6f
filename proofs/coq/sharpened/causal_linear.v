(** S.causal (b): causal heads whose biases are linear in the distance (ALiBi).

    Under a causal mask let head h give the key at the distance d = q - k the score s_h - m_h d, so
    the weight y_h x_h^d with x_h = e^(-m_h), whatever the slopes and intercepts are, and let the
    layer be, at all queries that have all T taps of N tokens, the causal convolution with a kernel
    that is not zero. Then H ≥ N - T + 1. Over any field; x_h ≠ 0 is all that is asked of the
    weights, which may have any sign and any sum. Two slopes may be the same. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring zify.
From Convattn.foundation Require Import attention causal.
From Convattn.sharpened Require Import barrier.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Theorem causal_linear (F : fieldType) (In Head : finType) (Out : Type) (N T : nat)
    (x y : Head -> F) (V : Head -> In -> Out -> F) (W : nat -> In -> Out -> F) :
  (forall h, x h != 0) ->
  (exists d i o, (d < T)%N && (W d i o != 0)) ->
  causal_expresses T (fun h => fun q : 'I_N => softmax (causal_weights (fun d => y h * x h ^+ d) q))
    V W ->
  (N < #|Head| + T)%N.
Proof.
move=> nz [d [i [o /andP [ltd nzW]]]] computes.
rewrite ltnNge; apply/negP => few.
have ltN : (N.-1 < N)%N by lia.
pose q : 'I_N := Ordinal ltN; have eq : q.+1 = N by rewrite /q /=; lia.
pose c h : F := y h * V h i o / \sum_k causal_weights (fun d => y h * x h ^+ d) q k.
have at_distance e : (e < N)%N -> exponentials x c e = if (e < T)%N then W e i o else 0.
  move=> lte; have ltk : (q - e < N)%N by lia.
  pose k : 'I_N := Ordinal ltk.
  have le : (k <= q)%N by rewrite /k /=; lia.
  have ek : (q - k)%N = e by rewrite /k /= subKn //; lia.
  have := causal_coefficients computes i o (q := q) (k := k); rewrite ek => <- //; last lia.
  by apply: eq_bigr => h _; rewrite /c /softmax /causal_weights le ek; ring.
have /negP [] := nzW; have := at_distance d; rewrite ltd => <-; last lia.
apply/eqP; apply: (vanishing (s := T)) => // j ltj.
by rewrite at_distance ?ifN //; lia.
Qed.
