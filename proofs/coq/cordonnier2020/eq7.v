(** C20.eq7: the score with absolute positions splits into four terms.

    Let X_q, X_k be the tokens and P_q, P_k their positional encodings, all rows of length D, and
    W_qry, W_key of shape D × D_k. Then, with W = W_qry W_keyᵀ,

      (X_q + P_q) W_qry · (X_k + P_k) W_key = X_q W X_kᵀ + X_q W P_kᵀ + P_q W X_kᵀ + P_q W P_kᵀ,

    for every field, D and D_k. The print lacks the transposes on X_k and P_k in its second line. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention scores.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.


Lemma bilinear_add (F : fieldType) (In : finType) (W : In -> In -> F) (x p y r : In -> F) :
  bilinear W (fun i => x i + p i) (fun i => y i + r i) =
    bilinear W x y + bilinear W x r + bilinear W p y + bilinear W p r.
Proof.
rewrite /bilinear -!big_split; apply: eq_bigr => i _ /=.
rewrite -!big_split; apply: eq_bigr => j _ /=.
by rewrite !mulrDl mulrDr !mulrDr !addrA.
Qed.

Theorem eq7 (F : fieldType) (In Inner : finType) (Wq Wk : In -> Inner -> F) (Xq Pq Xk Pk : In -> F) :
  let W i j := \sum_s Wq i s * Wk j s in
  score Wq Wk (fun i => Xq i + Pq i) (fun i => Xk i + Pk i) =
    bilinear W Xq Xk + bilinear W Xq Pk + bilinear W Pq Xk + bilinear W Pq Pk.
Proof. by move=> W; rewrite score_bilinear bilinear_add. Qed.
