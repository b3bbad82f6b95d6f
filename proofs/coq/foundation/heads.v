(** Two kinds of heads that each look at one target, and what they compute.

    [target q δ] is the key that the head of offset δ looks at from the query q,
    or [None] where that key does not exist. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Convattn.foundation Require Import attention.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Section OptionSum.

Variables (F : fieldType) (T : finType).

Lemma sum_option (f : option T -> F) : \sum_o f o = f None + \sum_t f (Some t).
Proof.
rewrite (bigD1 None) //=; congr (_ + _).
rewrite (reindex_omap Some id) /= => [|[t|] //].
by apply: eq_bigl => t; rewrite eqxx.
Qed.

End OptionSum.

Section Heads.

Variables (F : fieldType) (Offset Key In : finType) (Query Out : Type).
Variable target : Query -> Offset -> option Key.
Variable M : Offset -> In -> Out -> F.

(** Hard attention, one head an offset. *)
Definition hard_attention (h : Offset) (q : Query) : Key -> F := one_hot F (target q h).

Lemma hard_heads (X : Key -> In -> F) q o :
  attention_layer hard_attention M X q o =
    \sum_h feature_map (M h) (fun i => if target q h is Some t then X t i else 0) o.
Proof.
apply: eq_bigr => h _; apply: eq_feature_map => // i.
exact: attend_one_hot.
Qed.

(** Finite attention: a bias head for each offset, [e] = exp M, and one head
    more, [None], without any bias. *)
Definition finite_attention (e : F) (h : option Offset) (q : Query) : Key -> F :=
  softmax (if h is Some d then bias_weights e (target q d) else fun=> 1).

(** Their maps: M_δ / (1 - ε), and -ε / (1 - ε) Σ_δ M_δ for the uniform head,
    with ε = N / (e + N - 1) and N = [keys]. *)
Definition finite_maps (keys : nat) (e : F) (h : option Offset) (i : In) (o : Out) : F :=
  if h is Some d then (keys%:R + e - 1) / (e - 1) * M d i o
  else - (keys%:R / (e - 1)) * \sum_d M d i o.

Lemma finite_heads (e : F) (X : Key -> In -> F) q o :
  #|Key|%:R != 0 :> F -> e != 1 -> #|Key|%:R + e - 1 != 0 ->
  attention_layer (finite_attention e) (finite_maps #|Key| e) X q o =
    \sum_d feature_map (M d)
      (fun i => if target q d is Some t then X t i else mean_token X i) o.
Proof.
move=> nzN ne1 nzZ.
have nz1 : e - 1 != 0 by rewrite subr_eq0.
pose mean d := feature_map (M d) (mean_token X) o.
have uniform : feature_map (finite_maps #|Key| e None)
      (attend (finite_attention e None q) X) o =
    - (#|Key|%:R / (e - 1)) * \sum_d mean d.
  rewrite feature_map_scaled; congr (_ * _).
  rewrite /mean /feature_map exchange_big; apply: eq_bigr => i _ /=.
  by rewrite big_distrr /= attend_flat.
have biased d : feature_map (finite_maps #|Key| e (Some d))
      (attend (finite_attention e (Some d) q) X) o =
    feature_map (M d) (fun i => if target q d is Some t then X t i else mean_token X i) o
      + #|Key|%:R / (e - 1) * mean d.
  rewrite feature_map_scaled -!feature_map_scale -feature_map_add.
  apply: eq_feature_map => // i; rewrite /finite_attention.
  case: (target q d) => [t|]; last by rewrite attend_flat //; field.
  by rewrite attend_bias //; field; apply/andP.
rewrite /attention_layer sum_option uniform.
by rewrite (eq_bigr _ (fun d _ => biased d)) big_split -big_distrr /= mulNr addrC addrK.
Qed.

End Heads.
