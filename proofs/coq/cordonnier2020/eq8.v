(** C20.eq8: with the relative encoding, position enters the scores only through the shift (amended).

    Let tokens and encodings be rows, W_qry, W_key of shape D × D_k, Ŵ_key of shape D_p × D_k, u and v
    rows of length D_k. Positions are the elements of any abelian group (Z² for an unbounded image,
    a torus), and δ = k - q. The score of eq. 8, in the shapes that fit,

      A_qk = X_q W_qry·X_k W_key + X_q W_qry·r_δ Ŵ_key + u·X_k W_key + v·r_δ Ŵ_key

    1. is translated with the image: moving every token by t moves the scores by t;
    2. is v·r_δ Ŵ_key, a function of δ alone, if W_qry = 0 and u W_keyᵀ = 0: without content;
    3. is not a function of δ alone with content: there are tokens, two positions and maps whose
       scores differ at two pairs of one shift δ = 0, in every field and every group of more than
       one element. The print's "the attention scores only depend on the shift" is too strong. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention scores.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.


Section RelativeScore.

Variables (F : fieldType) (Position : zmodType) (In Encoding Inner : finType).

(** Eq. 8. *)
Definition relative_score (Wq Wk : In -> Inner -> F) (Wr : Encoding -> Inner -> F) (u v : Inner -> F)
    (r : Position -> Encoding -> F) (X : Position -> In -> F) (q k : Position) : F :=
  score Wq Wk (X q) (X k) + score Wq Wr (X q) (r (k - q))
    + \sum_s u s * feature_map Wk (X k) s + \sum_s v s * feature_map Wr (r (k - q)) s.

End RelativeScore.

Theorem eq8 (F : fieldType) (Position : zmodType) :
  (forall (In Encoding Inner : finType) (Wq Wk : In -> Inner -> F) (Wr : Encoding -> Inner -> F)
      (u v : Inner -> F) (r : Position -> Encoding -> F) (X : Position -> In -> F),
    (forall t q k, relative_score Wq Wk Wr u v r (fun p => X (p - t)) (q + t) (k + t) =
      relative_score Wq Wk Wr u v r X q k)
    /\
    ((forall i s, Wq i s = 0) -> (forall i, \sum_s u s * Wk i s = 0) ->
      forall q k, relative_score Wq Wk Wr u v r X q k =
        \sum_s v s * feature_map Wr (r (k - q)) s))
  /\
  (forall p : Position, p != 0 ->
    exists (Wq Wk Wr : 'I_1 -> 'I_1 -> F) (u v : 'I_1 -> F) (r X : Position -> 'I_1 -> F),
      relative_score Wq Wk Wr u v r X 0 0 != relative_score Wq Wk Wr u v r X p p).
Proof.
split=> [In Encoding Inner Wq Wk Wr u v r X | p nz].
  split=> [t q k | zero_q zero_u q k].
    have same : k + t - (q + t) = k - q by rewrite opprD addrACA subrr addr0.
    by rewrite /relative_score same !addrK.
  have none x s : feature_map Wq x s = 0 by rewrite /feature_map big1 // => i _; rewrite zero_q mulr0.
  have no_query (T : finType) (Wt : T -> Inner -> F) x y : score Wq Wt x y = 0.
    by rewrite /score big1 // => s _; rewrite none mul0r.
  rewrite /relative_score !no_query addr0 add0r.
  suff -> : \sum_s u s * feature_map Wk (X k) s = 0 by rewrite add0r.
  rewrite /feature_map; under eq_bigr do rewrite big_distrr /=.
  rewrite exchange_big big1 // => i _ /=; transitivity (X k i * \sum_s u s * Wk i s).
    by rewrite big_distrr; apply: eq_bigr => s _; rewrite mulrCA.
  by rewrite zero_u mulr0.
exists (fun _ _ => 1), (fun _ _ => 1), (fun _ _ => 1), (fun=> 0), (fun=> 0), (fun _ _ => 0).
exists (fun x _ => (x == p)%:R).
rewrite /relative_score /score /feature_map !big_ord1 !mul0r !mulr0 !addr0 !mulr1 eqxx mulr1.
by rewrite [0 == p]eq_sym (negbTE nz) mulr0 eq_sym oner_eq0.
Qed.
