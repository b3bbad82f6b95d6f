(** Causal attention on a sequence of N tokens: a query sees itself and the tokens before it. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import zify.
From Convattn.foundation Require Import attention.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

(** Exponentials of relative scores under the causal mask: [u d] at the distance d = q - k, and
    zero at the keys after the query. *)
Definition causal_weights (F : fieldType) (N : nat) (u : nat -> F) (q k : 'I_N) : F :=
  if (k <= q)%N then u (q - k)%N else 0.

(** The causal convolution with the taps W_0, …, W_(T-1): out_q = Σ_d X_(q-d) W_d, read at the
    tokens that there are. *)
Definition causal_convolution (F : fieldType) (In : finType) (Out : Type) (N T : nat)
    (W : nat -> In -> Out -> F) (X : 'I_N -> In -> F) (q : 'I_N) (o : Out) : F :=
  \sum_(k < N | (k <= q)%N && (q - k < T)%N) feature_map (W (q - k)%N) (X k) o.

(** The heads are that convolution at every query that has all T taps. *)
Definition causal_expresses (F : fieldType) (In Head : finType) (Out : Type) (N T : nat)
    (A : Head -> 'I_N -> 'I_N -> F) (V : Head -> In -> Out -> F) (W : nat -> In -> Out -> F) :=
  forall X (q : 'I_N) o, (T <= q.+1)%N ->
    attention_layer A V X q o = causal_convolution T W X q o.

Section Coefficients.

Variables (F : fieldType) (In Head : finType) (Out : Type) (N T : nat).
Variables (A : Head -> 'I_N -> 'I_N -> F) (V : Head -> In -> Out -> F) (W : nat -> In -> Out -> F).

(** What such a layer has at each pair of a query and a key. *)
Lemma causal_coefficients : causal_expresses T A V W ->
  forall (q k : 'I_N) i o, (T <= q.+1)%N -> (k <= q)%N ->
    \sum_h A h q k * V h i o = if (q - k < T)%N then W (q - k)%N i o else 0.
Proof.
move=> computes q k i o full le.
pose C (k : 'I_N) i o : F := if (k <= q)%N && (q - k < T)%N then W (q - k)%N i o else 0.
have /layer_coefficients at_keys X : attention_layer A V X q o = \sum_k feature_map (C k) (X k) o.
  rewrite computes // /causal_convolution big_mkcond; apply: eq_bigr => j _ /=.
  rewrite /C; case: ifP => // _.
  by rewrite /feature_map big1 // => i0 _; rewrite mulr0.
by rewrite at_keys /C le.
Qed.

End Coefficients.

(** The sum of causal weights: those of the distances from 0 to q. *)
Lemma sum_causal_weights (F : fieldType) (N : nat) (u : nat -> F) (q : 'I_N) :
  \sum_k causal_weights u q k = \sum_(d < q.+1) u d.
Proof.
rewrite -(big_mkord xpredT u) big_nat_rev /= add0n.
rewrite (eq_big_nat _ _ (F2 := fun k => u (q - k)%N)) => [|k _]; last by rewrite subSS.
rewrite big_mkord (big_ord_widen N (fun k => u (q - k)%N) (ltn_ord q)) [RHS]big_mkcond /=.
by apply: eq_bigr => k _; rewrite /causal_weights ltnS.
Qed.
