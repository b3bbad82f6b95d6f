(** A certificate that no value maps serve all queries: the separator shows it.

    Let H heads attend with the weights a_h(q, k) on some n pixels in a row, or in any other set of
    queries and keys, and let E(q, k) be 1 where k is the target of q and 0 elsewhere: the
    convolution with one tap, from one channel to one. A certificate gives numbers y(q, k) with
    Σ y a_h = 0 for every head and Σ y E ≠ 0. Then no value maps, which are one number w_h for each
    head here, and no bias make the layer this convolution for every input: over any field, whatever
    the heads attend to at each single query. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Theorem shared_map (F : fieldType) (Head Query Key : finType)
    (A : Head -> Query -> Key -> F) (target : Query -> option Key) (y : Query -> Key -> F)
    (w : Head -> F) (b : F) :
  (forall h, \sum_q \sum_k y q k * A h q k = 0) ->
  \sum_q \sum_k y q k * (Some k == target q)%:R != 0 ->
  ~ (forall (X : Key -> unit -> F) q,
       attention_layer A (fun h (_ _ : unit) => w h) X q tt + b =
         if target q is Some k then X k tt else 0).
Proof.
move=> orthogonal /eqP separates eqL; apply: separates.
have b0 (q : Query) : b = 0.
  have := eqL (fun _ _ => 0) q; rewrite /attention_layer big1 => [|h _]; last first.
    by rewrite /feature_map big1 // => i _; rewrite /attend big1 ?mul0r // => k _; rewrite mulr0.
  by rewrite add0r => ->; case: (target q).
have entry q k : (Some k == target q)%:R = \sum_h A h q k * w h :> F.
  have := (layer_coefficients A (fun h (_ _ : unit) => w h)
             (fun k' (_ _ : unit) => (Some k' == target q)%:R) q tt).1 _ k tt.
  move=> <- // X; rewrite -[LHS]addr0 -[X in _ + X](b0 q) eqL -attend_one_hot /attend.
  by apply: eq_bigr => k' _; rewrite /feature_map (big_pred1 tt) 1?mulrC // => -[].
under eq_bigr => q _ do under eq_bigr => k _ do rewrite entry big_distrr /=.
under eq_bigr do rewrite exchange_big /=.
rewrite exchange_big big1 // => h _ /=.
transitivity (\sum_q \sum_k (y q k * A h q k) * w h).
  by apply: eq_bigr => q _; apply: eq_bigr => k _; rewrite mulrA.
by under eq_bigr do rewrite -big_distrl; rewrite -big_distrl /= orthogonal mul0r.
Qed.
