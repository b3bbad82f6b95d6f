(** C20.sequence: in one dimension K heads and two features are enough.

    Let K = 2 r + 1 and let a sequence of tokens stand between r zero tokens and r zero tokens.

    1. The layer with K hard heads, one for each shift δ in {-r..r}, which attends to the key at
       q + δ with the value map W_δ, is the zero-padded 1-D convolution, for every kernel, length,
       number of channels and field.
    2. The two features r_δ = (δ², δ) give every quadratic score: with v = -α (1, -2Δ) it is
       v·r_δ = -α (δ - Δ)² + α Δ², and the last term is the same for all keys.

    That the layer with these scores tends to the convolution is [sequence_limit]. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention heads sequences.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.


Theorem sequence (F : fieldType) (In : finType) (Out : Type) (length r : nat) :
  (forall (W : nat -> In -> Out -> F) (X : nat -> In -> F) (q : 'I_length) (o : Out),
    attention_layer (hard_attention F (fun q (d : 'I_r.*2.+1) => Some (sequence_key q d)))
        (fun d => W d) (fun k : 'I_(length + r.*2) => zero_ended length r X k) q o =
      sequence_convolution length r W X q o)
  /\
  (forall alpha centre shift : F,
    two_feature_score alpha centre shift = - alpha * (shift - centre) ^+ 2 + alpha * centre ^+ 2).
Proof. by split=> *; [exact: hard_sequence | exact: two_feature_score_square]. Qed.
