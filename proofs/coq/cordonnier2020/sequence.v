(** C20.sequence: in one dimension K heads and two features are enough.

    Let K = 2 r + 1 and let a sequence of tokens stand between r zero tokens and r zero tokens.

    1. The layer with K hard heads, one for each shift δ in {-r..r}, which attends to the key at
       q + δ with the value map W_δ, is the zero-padded 1-D convolution, for every kernel, length,
       number of channels and field.
    2. The two features r_δ = (δ², δ) give every quadratic score: with v = -α (1, -2Δ) it is
       v·r_δ = -α (δ - Δ)² + α Δ², and the last term is the same for all keys.

    How the quadratic scores tend to hard attention is Lemma 2's matter. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring zify.
From Convattn.foundation Require Import attention image heads.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.


(** The sequence between zeros. *)
Definition zero_ended (F : fieldType) (Channel : Type) (length r : nat)
    (X : nat -> Channel -> F) (x : nat) (c : Channel) : F :=
  if (r <= x < r + length)%N then X (x - r)%N c else 0.

(** The zero-padded convolution: out_q = Σ_δ X_(q+δ) W_δ, taps counted from 0. *)
Definition sequence_convolution (F : fieldType) (In : finType) (Out : Type) (length r : nat)
    (W : nat -> In -> Out -> F) (X : nat -> In -> F) (x : nat) (o : Out) : F :=
  \sum_(j < r.*2.+1) \sum_c zero_ended length r X (x + j)%N c * W j c o.

Lemma sequence_bound (length r : nat) (q : 'I_length) (d : 'I_r.*2.+1) :
  (q + d < length + r.*2)%N.
Proof. by case: q d => q ltq [d ltd] /=; lia. Qed.

Theorem sequence (F : fieldType) (In : finType) (Out : Type) (length r : nat) :
  (forall (W : nat -> In -> Out -> F) (X : nat -> In -> F) (q : 'I_length) (o : Out),
    attention_layer
        (hard_attention F (fun q (d : 'I_r.*2.+1) => Some (Ordinal (sequence_bound q d))))
        (fun d => W d) (fun k : 'I_(length + r.*2) => zero_ended length r X k) q o =
      sequence_convolution length r W X q o)
  /\
  (forall alpha centre shift : F,
    let v := [:: - alpha; - alpha * (- 2%:R * centre)] in
    let features := [:: shift ^+ 2; shift] in
    \sum_(s < 2) v`_s * features`_s = - alpha * (shift - centre) ^+ 2 + alpha * centre ^+ 2).
Proof.
split=> [W X q o | alpha centre shift v features]; first by rewrite hard_heads.
by rewrite !big_ord_recr big_ord0 /=; ring.
Qed.
