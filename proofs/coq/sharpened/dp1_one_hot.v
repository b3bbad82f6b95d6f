(** S.dp1: one positional feature does not give each of three offsets or more a one-hot head.

    Whatever number r_δ each of at least three offsets has, there is an offset that no head sees with
    more than half of its weight: on every finite set of keys that contains the keys at the offsets,
    whatever the features of the other keys and whatever number v the head multiplies the features
    with. The numbers are those of a totally ordered field with some exponential. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention exponential total_variation.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** Of three numbers one lies between the others. *)
Lemma middle_of_three (R : realFieldType) (Offset : finType) (r : Offset -> R) :
  (2 < #|Offset|)%N -> exists a b c, [/\ a != b, c != b & r a <= r b <= r c].
Proof.
case/card_gt2P => x [y [z [_ [xy yz zx]]]].
case: (leP (r x) (r y)) (leP (r y) (r z)) (leP (r z) (r x)) => [le1|/ltW le1] [le2|/ltW le2] [le3|/ltW le3].
- by exists x, y, z; rewrite xy eq_sym yz le1.
- by exists x, y, z; rewrite xy eq_sym yz le1.
- by exists z, x, y; rewrite zx eq_sym xy le1 le3.
- by exists x, z, y; rewrite eq_sym zx yz le2 le3.
- by exists y, z, x; rewrite yz eq_sym zx le2 le3.
- by exists y, x, z; rewrite eq_sym xy zx le1 le3.
- by exists z, y, x; rewrite eq_sym yz xy le1 le2.
- by exists z, y, x; rewrite eq_sym yz xy le1 le2.
Qed.

Theorem dp1_one_hot (R : realFieldType) (E : R -> R) (Offset : finType) (r : Offset -> R) :
  is_exponential E -> (2 < #|Offset|)%N ->
  exists d, forall (Key : finType) (key : Offset -> Key) (feature : Key -> R) (v : R),
    injective key -> (forall d', feature (key d') = r d') ->
    softmax (fun k => E (v * feature k)) (key d) <= 2%:R^-1.
Proof.
move=> E_exp /(middle_of_three r)[a [b [c [ab cb between]]]].
exists b => Key key feature v key_inj featureE.
have E_gt0 x : 0 < E x by exact: exponential_positive.
have [d db le_d] : exists2 d, d != b & E (v * feature (key b)) <= E (v * feature (key d)).
  case/andP: between => le_ab le_bc; case: (leP 0 v) => [v_ge0 | /ltW v_le0].
    by exists c => //; apply: exponential_monotone; rewrite ?featureE ?ler_wpmul2l.
  by exists a => //; apply: exponential_monotone; rewrite ?featureE ?ler_wnmul2l.
rewrite /softmax ler_pdivr_mulr ?(sum_positive (key b)) // ler_pdivl_mull ?ltr0n //.
rewrite mulr_natl mulr2n (bigD1 (key b)) //= ler_add2l.
rewrite (bigD1 (key d)) ?(inj_eq key_inj) //= (le_trans le_d) // ler_addl sumr_ge0 // => k _.
exact: ltW.
Qed.
