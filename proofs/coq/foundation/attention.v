(** Attention as algebra: what a layer does to tokens, over any field.

    Tokens, queries, heads and features are indexed by finite types, so that a
    statement holds for every number of them. A token is a function from its
    features to the field, and [X k i] is feature [i] of the token at key [k].

    What exponential a softmax is made of does not matter to its algebra: here
    a softmax is given by its _weights_, the exponentials of the scores. *)

From mathcomp Require Import all_ssreflect all_algebra.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Section Definitions.

Variable F : fieldType.

(** A linear map of features, applied to a token as a row vector: x M. *)
Definition feature_map (In : finType) (Out : Type)
    (M : In -> Out -> F) (x : In -> F) (o : Out) : F :=
  \sum_i x i * M i o.

(** One row of attention, applied to the tokens: Σ_k a_k X_k. *)
Definition attend (Key : finType) (In : Type)
    (a : Key -> F) (X : Key -> In -> F) (i : In) : F :=
  \sum_k a k * X k i.

(** Multi-head attention: Σ_h A_h X W_h at the query [q], W_h = W_V W_O. *)
Definition attention_layer (Head Key In : finType) (Query Out : Type)
    (A : Head -> Query -> Key -> F) (M : Head -> In -> Out -> F)
    (X : Key -> In -> F) (q : Query) (o : Out) : F :=
  \sum_h feature_map (M h) (attend (A h q) X) o.

(** Softmax of the scores whose exponentials are [w]. *)
Definition softmax (Key : finType) (w : Key -> F) (k : Key) : F :=
  w k / \sum_k' w k'.

(** Hard attention: weight one at the target. Where there is none the row is
    zero, which no softmax gives. *)
Definition one_hot (Key : eqType) (target : option Key) (k : Key) : F :=
  (Some k == target)%:R.

(** Exponentials of the scores of a relative-bias head: [e] = exp M at its
    target, 1 = exp 0 elsewhere, and everywhere if there is no target. *)
Definition bias_weights (Key : eqType) (e : F) (target : option Key) (k : Key) : F :=
  if Some k == target then e else 1.

(** The mean of all tokens. *)
Definition mean_token (Key : finType) (In : Type) (X : Key -> In -> F) (i : In) : F :=
  (\sum_k X k i) / #|Key|%:R.

End Definitions.

Section Linearity.

Variable F : fieldType.

Lemma feature_map_scale (In : finType) (Out : Type) (M : In -> Out -> F) c x o :
  feature_map M (fun i => c * x i) o = c * feature_map M x o.
Proof. by rewrite /feature_map big_distrr /=; apply: eq_bigr => i _; rewrite mulrA. Qed.

Lemma feature_map_add (In : finType) (Out : Type) (M : In -> Out -> F) x y o :
  feature_map M (fun i => x i + y i) o = feature_map M x o + feature_map M y o.
Proof. by rewrite /feature_map -big_split; apply: eq_bigr => i _; rewrite mulrDl. Qed.

Lemma feature_map_sum (In : finType) (Out : Type) (T : finType)
    (M : In -> Out -> F) (c : T -> F) (x : T -> In -> F) o :
  feature_map M (fun i => \sum_t c t * x t i) o = \sum_t c t * feature_map M (x t) o.
Proof.
rewrite /feature_map; under eq_bigr do rewrite big_distrl.
rewrite exchange_big; apply: eq_bigr => t _ /=.
by rewrite big_distrr /=; apply: eq_bigr => i _; rewrite mulrA.
Qed.

Lemma feature_map_scaled (In : finType) (Out : Type) (M : In -> Out -> F) c x o :
  feature_map (fun i o => c * M i o) x o = c * feature_map M x o.
Proof.
by rewrite /feature_map big_distrr /=; apply: eq_bigr => i _; rewrite mulrCA.
Qed.

Lemma eq_feature_map (In : finType) (Out : Type) (M M' : In -> Out -> F) x x' o :
  (forall i, M i o = M' i o) -> x =1 x' -> feature_map M x o = feature_map M' x' o.
Proof. by move=> eM ex; apply: eq_bigr => i _; rewrite eM ex. Qed.

Lemma attend_one_hot (Key : finType) (In : Type) (target : option Key) (X : Key -> In -> F) i :
  attend (one_hot F target) X i = if target is Some t then X t i else 0.
Proof.
rewrite /attend /one_hot; case: target => [t|]; last by rewrite big1 // => k _; rewrite mul0r.
rewrite (bigD1 t) //= eqxx mul1r big1 ?addr0 // => k /negbTE nk.
by rewrite (inj_eq Some_inj) nk mul0r.
Qed.

(** A layer is Σ_k X_k C_k with the coefficients C_k = Σ_h A_h(q, k) W_h. *)
Lemma layer_as_coefficients (Head Key In : finType) (Query Out : Type)
    (A : Head -> Query -> Key -> F) (M : Head -> In -> Out -> F) X q o :
  attention_layer A M X q o =
    \sum_k feature_map (fun i o => \sum_h A h q k * M h i o) (X k) o.
Proof.
rewrite /attention_layer.
under eq_bigr do rewrite /attend feature_map_sum.
rewrite exchange_big; apply: eq_bigr => k _ /=.
rewrite /feature_map; under eq_bigr do rewrite big_distrr.
rewrite exchange_big; apply: eq_bigr => i _ /=.
by rewrite big_distrr; apply: eq_bigr => h _; rewrite mulrCA.
Qed.

(** Two maps that are linear in the tokens are equal on all tokens only if
    their coefficients are. *)
Lemma coefficients_unique (Key In : finType) (Out : Type) (C D : Key -> In -> Out -> F) o :
  (forall X, \sum_k feature_map (C k) (X k) o = \sum_k feature_map (D k) (X k) o) ->
  forall k i, C k i o = D k i o.
Proof.
move=> eqCD k i; have := eqCD (fun k' i' => ((k' == k) && (i' == i))%:R).
have pick (B : Key -> In -> Out -> F) :
    \sum_k0 feature_map (B k0) (fun i' => ((k0 == k) && (i' == i))%:R) o = B k i o.
  rewrite (bigD1 k) //= [X in _ + X]big1 ?addr0 => [|k0 /negbTE nk].
    rewrite /feature_map (bigD1 i) //= !eqxx mul1r big1 ?addr0 // => i0 /negbTE ->.
    by rewrite andbF mul0r.
  by rewrite /feature_map big1 // => i0 _; rewrite nk mul0r.
by rewrite !pick.
Qed.

(** What a layer computes for all tokens fixes its coefficients. *)
Lemma layer_coefficients (Head Key In : finType) (Query Out : Type)
    (A : Head -> Query -> Key -> F) (M : Head -> In -> Out -> F)
    (C : Key -> In -> Out -> F) q o :
  (forall X, attention_layer A M X q o = \sum_k feature_map (C k) (X k) o) <->
  (forall k i, \sum_h A h q k * M h i o = C k i o).
Proof.
split=> [eqX k i | eqC X].
  apply: (coefficients_unique (C := fun k i o => \sum_h A h q k * M h i o)) => X.
  by rewrite -eqX layer_as_coefficients.
by rewrite layer_as_coefficients; apply: eq_bigr => k _; apply: eq_feature_map.
Qed.

End Linearity.

Section Softmax.

Variables (F : fieldType) (Key : finType).

Lemma sum_softmax (w : Key -> F) : \sum_k w k != 0 -> \sum_k softmax w k = 1.
Proof. by move=> nz; rewrite /softmax -big_distrl /= divff. Qed.

Lemma sum_one : \sum_(k : Key) 1 = #|Key|%:R :> F.
Proof. by rewrite big_const -Monoid.iteropE. Qed.

Lemma sum_bias_weights (e : F) (target : Key) :
  \sum_k bias_weights e (Some target) k = #|Key|%:R + e - 1.
Proof.
rewrite (bigD1 target) //= /bias_weights eqxx (eq_bigr (fun=> 1)) => [|k /negbTE nk]; last first.
  by rewrite (inj_eq Some_inj) nk.
rewrite -sum_one [in RHS](bigD1 target) //=.
by rewrite addrAC [1 + _]addrC addrK addrC.
Qed.

(** A bias head: (1 - ε) X_target + ε · mean, ε = N / (e + N - 1). *)
Lemma attend_bias (In : Type) (e : F) (target : Key) (X : Key -> In -> F) i :
  #|Key|%:R != 0 :> F ->
  attend (softmax (bias_weights e (Some target))) X i =
    ((e - 1) * X target i + #|Key|%:R * mean_token X i) / (#|Key|%:R + e - 1).
Proof.
move=> nzN; rewrite /attend /softmax sum_bias_weights.
under eq_bigr do rewrite mulrAC.
rewrite -big_distrl /=; congr (_ / _).
rewrite /mean_token mulrCA mulfV // mulr1.
rewrite (bigD1 target) //= [in RHS](bigD1 target) //= /bias_weights eqxx.
rewrite addrA mulrBl mul1r subrK; congr (_ + _).
by apply: eq_bigr => k /negbTE nk; rewrite (inj_eq Some_inj) nk mul1r.
Qed.

(** A head without bias, or without a target: the mean. *)
Lemma attend_flat (In : Type) (w : Key -> F) (X : Key -> In -> F) i :
  w =1 (fun=> 1) -> attend (softmax w) X i = mean_token X i.
Proof.
move=> flat; rewrite /attend /softmax /mean_token.
under eq_bigr => k do rewrite (eq_bigr _ (fun k _ => flat k)) flat sum_one mulrAC mul1r.
by rewrite -big_distrl.
Qed.

End Softmax.
