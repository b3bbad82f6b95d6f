(** Scores of attention: a query's features against a key's, by eq. 2 of C20. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Section Scores.

Variable F : fieldType.

(** x W_qry · (y W_key): the score of the token y for the token x, through D_k features. *)
Definition score (In1 In2 Inner : finType) (Wq : In1 -> Inner -> F) (Wk : In2 -> Inner -> F)
    (x : In1 -> F) (y : In2 -> F) : F :=
  \sum_s feature_map Wq x s * feature_map Wk y s.

(** x W yᵀ. *)
Definition bilinear (In1 In2 : finType) (W : In1 -> In2 -> F) (x : In1 -> F) (y : In2 -> F) : F :=
  \sum_i \sum_j x i * W i j * y j.

Lemma score_bilinear (In1 In2 Inner : finType) (Wq : In1 -> Inner -> F) (Wk : In2 -> Inner -> F) x y :
  score Wq Wk x y = bilinear (fun i j => \sum_s Wq i s * Wk j s) x y.
Proof.
rewrite /score /bilinear /feature_map.
under eq_bigr do rewrite big_distrlr /=.
rewrite exchange_big; apply: eq_bigr => i _ /=; rewrite exchange_big; apply: eq_bigr => j _ /=.
rewrite big_distrr big_distrl /=; apply: eq_bigr => s _.
by rewrite mulrACA mulrA [x i * y j]mulrC -!mulrA mulrC -!mulrA.
Qed.

End Scores.
