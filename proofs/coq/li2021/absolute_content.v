(** L21.absolute (2): an absolute encoding mixed with the content leaves only uniform attention free of content.

    Let the tokens' content be any vectors of F^d, over an ordered field, the position p_k be added to the content of
    key k, and the score of the key k from the query q, one of the keys, be (x_q + p_q) W (x_k + p_k)ᵀ. If there is a
    key besides q, and no weight of the softmax of the scores at q depends on the content, then W = 0, and every
    weight is 1/N, N being the number of keys. For every exponential that takes no value twice. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention exponential total_variation scores.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** The weights at the query: the content of both sides with the positions added. *)
Definition mixed_attention (R : realFieldType) (E : R -> R) (Key Feature : finType)
    (W : Feature -> Feature -> R) (p : Key -> Feature -> R) (q : Key) (X : Key -> Feature -> R) (k : Key) : R :=
  softmax (fun j => E (bilinear W (fun i => X q i + p q i) (fun i => X j i + p j i))) k.

Theorem absolute_content (R : realFieldType) (E : R -> R) (Key Feature : finType)
    (W : Feature -> Feature -> R) (p : Key -> Feature -> R) (q other : Key) :
  is_exponential E -> injective E -> other != q ->
  (forall X X' k, mixed_attention E W p q X k = mixed_attention E W p q X' k) ->
  (forall i j, W i j = 0) /\ (forall X k, mixed_attention E W p q X k = #|Key|%:R^-1).
Proof.
move=> E_exp inj ne free.
have zero (u y : Feature -> R) : bilinear W u y = 0.
  pose content (z : Feature -> R) k i := (if k == q then u i else z i) - p k i.
  pose w z k := E (bilinear W (fun i => content z q i + p q i) (fun i => content z k i + p k i)).
  have gt0 z k : 0 < w z k by exact: exponential_positive.
  have same k : softmax (w y) k = softmax (w (fun=> 0)) k by exact: free.
  have at_query : w y q = w (fun=> 0) q by rewrite /w /content eqxx.
  have sums : \sum_k w y k = \sum_k w (fun=> 0) k.
    have nz : w (fun=> 0) q != 0 by rewrite gt_eqF.
    by have := same q; rewrite /softmax at_query => /(mulfI nz)/invr_inj.
  have : w y other = w (fun=> 0) other.
    have nz : (\sum_k w (fun=> 0) k)^-1 != 0 by rewrite invr_eq0 gt_eqF // (sum_positive q).
    by have := same other; rewrite /softmax sums => /(mulIf nz).
  rewrite /w /content (negbTE ne) eqxx => /inj.
  have query_part z : bilinear W (fun i => u i - p q i + p q i) (fun i => z i - p other i + p other i) =
      bilinear W u z by apply: eq_bigr => i _; apply: eq_bigr => j _; rewrite !subrK.
  rewrite query_part => ->; rewrite (query_part (fun=> 0)).
  by rewrite /bilinear big1 // => i _; rewrite big1 // => j _; rewrite mulr0.
split=> [i j|X k]; last first.
  rewrite /mixed_attention /softmax; under eq_bigr do rewrite zero exponential_zero //.
  by rewrite zero exponential_zero // sum_one div1r.
rewrite -[RHS](zero (fun i' => (i' == i)%:R) (fun j' => (j' == j)%:R)) /bilinear.
rewrite (bigD1 i) //= [X in _ + X]big1 ?addr0 => [|i' /negbTE ->]; last first.
  by rewrite big1 // => j' _; rewrite !mul0r.
rewrite (bigD1 j) //= [X in _ + X]big1 ?addr0 => [|j' /negbTE ->]; last by rewrite mulr0.
by rewrite !eqxx mul1r mulr1.
Qed.
