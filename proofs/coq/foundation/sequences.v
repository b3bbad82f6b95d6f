(** Sequences, their convolutions, and the two features of a quadratic score in one dimension. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring zify.
From Convattn.foundation Require Import attention heads.

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

(** The key at an offset from a query, counted with the zeros before the sequence. *)
Definition sequence_key (length r : nat) (q : 'I_length) (d : 'I_r.*2.+1) : 'I_(length + r.*2) :=
  Ordinal (sequence_bound q d).

Lemma hard_sequence (F : fieldType) (In : finType) (Out : Type) (length r : nat)
    (W : nat -> In -> Out -> F) (X : nat -> In -> F) (q : 'I_length) (o : Out) :
  attention_layer (hard_attention F (fun q (d : 'I_r.*2.+1) => Some (sequence_key q d)))
      (fun d => W d) (fun k : 'I_(length + r.*2) => zero_ended length r X k) q o =
    sequence_convolution length r W X q o.
Proof. by rewrite hard_heads. Qed.

(** v·r_δ with r_δ = (δ², δ) and v = -α (1, -2Δ). *)
Definition two_feature_score (F : fieldType) (alpha centre shift : F) : F :=
  let v := [:: - alpha; - alpha * (- 2%:R * centre)] in
  let features := [:: shift ^+ 2; shift] in
  \sum_(s < 2) v`_s * features`_s.

Lemma two_feature_score_square (F : fieldType) (alpha centre shift : F) :
  two_feature_score alpha centre shift = - alpha * (shift - centre) ^+ 2 + alpha * centre ^+ 2.
Proof. by rewrite /two_feature_score !big_ord_recr big_ord0 /=; ring. Qed.
