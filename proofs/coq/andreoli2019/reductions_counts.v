(** A19.reductions (as amended): how many numbers the forms have, and when they save.

    All of Θ has KPQ numbers; a grouped one with ν groups, P = ν p and Q = ν q, has KPQ/ν; a depth-wise
    separable one KP + PQ; a controlled separable one H(K + PQ). Controlled separability saves, that is
    H(K + PQ) < KPQ, iff H < KPQ/(K + PQ). That implies H < K and H < PQ, but is not implied: with
    K = PQ = 9, where K ≪ PQ is false, H = 4 saves, and H = 5 does not. Every H < K saves iff
    K(K - 1) < PQ, for K > 0. Depth-wise separability saves iff (K - 1)(Q - 1) > 1, for P > 0. The rest
    holds for all sizes, zero included. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import zify.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.

Definition full_count (K P Q : nat) : nat := K * P * Q.
Definition grouped_count (K groups p q : nat) : nat := K * groups * (p * q).
Definition separable_count (K P Q : nat) : nat := K * P + P * Q.
Definition controlled_count (H K P Q : nat) : nat := H * (K + P * Q).

(** The counts are the numbers of entries of the arrays that make up Θ. *)
Lemma counts_of_arrays (H K P Q groups p q : nat) :
  [/\ full_count K P Q = #|[finType of 'I_K * 'I_P * 'I_Q]|,
      grouped_count K groups p q = #|[finType of 'I_K * 'I_groups * ('I_p * 'I_q)]|,
      separable_count K P Q = #|[finType of 'I_K * 'I_P + 'I_P * 'I_Q]| &
      controlled_count H K P Q = #|[finType of 'I_H * 'I_K + 'I_H * ('I_P * 'I_Q)]|].
Proof. by split; rewrite ?card_sum !card_prod !card_ord // -mulnDr. Qed.

(** With the sizes that P and Q stand for. *)
Lemma controlled_saves_all (K R : nat) : 0 < K ->
  (forall H, H < K -> H * (K + R) < K * R) <-> K * K.-1 < R.
Proof.
case: K => // k _; split=> [/(_ k (leqnn _)) | lt H leH]; first by nia.
have : H * (k.+1 + R) <= k * (k.+1 + R) by rewrite leq_mul2r -ltnS leH orbT.
by nia.
Qed.

Theorem reductions_counts (H K P Q groups p q : nat) :
  [/\ [/\ full_count K P Q = #|[finType of 'I_K * 'I_P * 'I_Q]|,
          grouped_count K groups p q = #|[finType of 'I_K * 'I_groups * ('I_p * 'I_q)]|,
          separable_count K P Q = #|[finType of 'I_K * 'I_P + 'I_P * 'I_Q]| &
          controlled_count H K P Q = #|[finType of 'I_H * 'I_K + 'I_H * ('I_P * 'I_Q)]|],
      grouped_count K groups p q * groups = full_count K (groups * p) (groups * q),
      0 < P -> (separable_count K P Q < full_count K P Q) = (1 < K.-1 * Q.-1),
      [/\ (controlled_count H K P Q < full_count K P Q) =
            (H%:R < (full_count K P Q)%:R / (K + P * Q)%:R :> rat)%R,
          controlled_count H K P Q < full_count K P Q -> H < K /\ H < P * Q &
          0 < K -> (forall H', H' < K -> controlled_count H' K P Q < full_count K P Q) <->
            K * K.-1 < P * Q] &
      controlled_count 4 9 3 3 < full_count 9 3 3 /\ ~~ (controlled_count 5 9 3 3 < full_count 9 3 3)].
Proof.
split=> //; first exact: counts_of_arrays.
- rewrite /grouped_count /full_count; lia.
- rewrite /separable_count /full_count => lt0P.
  have -> : K * P + P * Q = P * (K + Q) by lia.
  have -> : K * P * Q = P * (K * Q) by lia.
  rewrite ltn_pmul2l //.
  by case: K Q => [|k] [|l]; rewrite ?muln0 //=; nia.
rewrite /controlled_count /full_count -mulnA; split=> [|lt|lt0K].
- have [z | nz] := posnP (K + P * Q); last by rewrite ltr_pdivl_mulr ?ltr0n // -natrM ltr_nat.
  by rewrite z invr0 mulr0 ltNge ler0n; nia.
- rewrite !ltnNge; split; apply/negP => le; move: lt.
    by have := leq_mul le (leqnn (P * Q)); lia.
  by have := leq_mul (leqnn K) le; lia.
exact: controlled_saves_all.
Qed.
