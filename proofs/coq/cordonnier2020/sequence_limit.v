(** C20.sequence, in the limit: K heads with D_p = 2 are any 1-D convolution.

    Let K = 2 r + 1, and let a sequence of tokens stand between r zero tokens and r zero tokens. Let E
    be an exponential over an ordered field: positive, non-decreasing, from sums to products,
    exceeding every bound (the real one is such). The layer with one head for each shift Δ in
    {-r..r}, with the scores v·r_δ of the two features r_δ = (δ², δ), δ = k - q, with v = -α (1, -2Δ)
    and the value map W_Δ, tends to the zero-padded 1-D convolution as α → ∞: for every kernel,
    sequence, length and number of channels. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Convattn.foundation Require Import attention heads sequences exponential sharp_limits.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** The scores of the head of the offset [d], counted from 0, for a query counted without the zeros
    before it and a key counted with them. *)
Definition sequence_score (R : realFieldType) (length r : nat) (alpha : R)
    (d : 'I_r.*2.+1) (q : 'I_length) (k : 'I_(length + r.*2)) : R :=
  two_feature_score alpha (d%:R - r%:R) (k%:R - (q + r)%:R).

Lemma sequence_gap (R : realFieldType) (E : R -> R) (length r : nat) (alpha : R)
    (d : 'I_r.*2.+1) (q : 'I_length) (k : 'I_(length + r.*2)) :
  is_exponential E -> 0 <= alpha -> k != sequence_key q d ->
  E (sequence_score alpha d q k) <= E (- alpha) * E (sequence_score alpha d q (sequence_key q d)).
Proof.
move=> E_exp ge0 neq; rewrite -exponential_add //; apply: exponential_monotone => //.
rewrite /sequence_score !two_feature_score_square addrA ler_add2r.
rewrite !mulNr -opprD ler_opp2 -[X in X + _]mulr1 -mulrDr; apply: ler_wpmul2l => //.
have -> : (sequence_key q d)%:R - (q + r)%:R - (d%:R - r%:R) = 0 :> R.
  by rewrite /= !natrD; ring.
have -> : k%:R - (q + r)%:R - (d%:R - r%:R) = (k%:Z - (sequence_key q d)%:Z)%:~R :> R.
  by rewrite rmorphB /= !natrD; ring.
rewrite expr0n addr0 -rmorphX (ler_int _ 1).
suff : (k%:Z - (sequence_key q d)%:Z) ^+ 2 != 0.
  by move=> nz; rewrite -gtz0_ge1 lt_neqAle eq_sym nz sqr_ge0.
by rewrite sqrf_eq0 subr_eq0 eqz_nat val_eqE.
Qed.

Theorem sequence_limit (R : realFieldType) (E : R -> R) (In : finType) (Out : Type)
    (length r : nat) (W : nat -> In -> Out -> R) (X : nat -> In -> R) (q : 'I_length) (o : Out) :
  is_exponential E -> unbounded E ->
  tends_to
    (fun alpha =>
      attention_layer (fun (d : 'I_r.*2.+1) q => softmax (fun k => E (sequence_score alpha d q k)))
        (fun d => W d) (fun k : 'I_(length + r.*2) => zero_ended length r X k) q o)
    (sequence_convolution length r W X q o).
Proof.
move=> E_exp E_unbounded; rewrite -(@hard_sequence R In Out length r W X q o).
apply: layer_tends_to => d k; apply: (softmax_tends_to_one_hot E_exp E_unbounded) => [a k'|a k' ge0 neq].
  exact: exponential_positive.
exact: sequence_gap.
Qed.
