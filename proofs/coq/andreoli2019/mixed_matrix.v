(** A19.mixed: the rank of a mixed product of matrices, as a matrix.

    Let a_k be matrices of shape M × N and b_k of shape P × Q, k in a finite K. Grouped as a matrix
    with rows (m, p) and columns (n, q), their mixed product, which is the sum of the Kronecker
    products of a_k and b_k, has rank at most Σ_k rank(a_k) rank(b_k). The rank is that of linear
    algebra. Over every field, for all K, M, N, P and Q. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import rank rank_factors structure.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

(** The mixed product of families of matrices, with the first axes as rows and the second ones
    as columns. *)
Definition grouped_product (F : fieldType) (K M N P Q : finType)
    (a : K -> M -> N -> F) (b : K -> P -> Q -> F) (r : M * P) (c : N * Q) : F :=
  mixed_product (flattened a) (flattened b) (r.1, c.1) (r.2, c.2).

Theorem mixed_matrix (F : fieldType) (K M N P Q : finType)
    (a : K -> M -> N -> F) (b : K -> P -> Q -> F) :
  (family_rank (grouped_product a b) <= \sum_k family_rank (a k) * family_rank (b k))%N.
Proof.
have /fin_all_exists[L /fin_all_exists[R ea]] k := rank_factors (a k).
have /fin_all_exists[U /fin_all_exists[V eb]] k := rank_factors (b k).
pose Inner := [finType of {k : K & 'I_(family_rank (a k)) * 'I_(family_rank (b k))}%type].
have -> : (\sum_k family_rank (a k) * family_rank (b k) = #|Inner|)%N.
  rewrite card_tagged sumnE big_map big_enum.
  by apply: eq_bigr => k _; rewrite card_prod !card_ord.
apply: (@family_rank_product _ _ Inner _ _
  (fun r h => L (tag h) r.1 (tagged h).1 * U (tag h) r.2 (tagged h).2)
  (fun h c => R (tag h) (tagged h).1 c.1 * V (tag h) (tagged h).2 c.2)) => -[m p] [n q].
apply: etrans (sig_big_dep xpredT (fun _ => xpredT)
  (fun k (h : 'I_(family_rank (a k)) * 'I_(family_rank (b k))) =>
     L k m h.1 * U k p h.2 * (R k h.1 n * V k h.2 q))).
apply: eq_bigr => k _; rewrite /flattened /= ea eb big_distrl /=.
rewrite -(pair_bigA _ (fun g h => L k m g * U k p h * (R k g n * V k h q))) /=.
apply: eq_bigr => g _; rewrite big_distrr; apply: eq_bigr => h _ /=.
by rewrite mulrACA.
Qed.
