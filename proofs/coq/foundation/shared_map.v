(** One matrix Φ for all queries: when heads without content can be every convolution.

    Here a convolution is Σ_δ X_(q+δ) M_δ over the offsets δ whose target q + δ is a token. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention heads.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Section SharedMap.

Variables (F : fieldType) (Head Query Key Offset : finType).
Variables (A : Head -> Query -> Key -> F) (target : Query -> Offset -> option Key).

(** E_q = Φ A_q for all q, where E_q has the rows e_(q+δ), zero if that is no token, and A_q the
    rows of the heads. *)
Definition one_map_serves (Phi : Offset -> Head -> F) : Prop :=
  forall q d k, one_hot F (target q d) k = \sum_h Phi d h * A h q k.

Variables (In : finType) (Out : Type).
Implicit Types (M : Head -> In -> Out -> F) (B : Offset -> In -> Out -> F).

(** The coefficients of Σ_δ X_(q+δ) B_δ. *)
Lemma targets_as_coefficients B (X : Key -> In -> F) q o :
  \sum_d feature_map (B d) (fun i => if target q d is Some k then X k i else 0) o =
    \sum_k feature_map (fun i o => \sum_d one_hot F (target q d) k * B d i o) (X k) o.
Proof.
rewrite -(layer_as_coefficients (fun d q => one_hot F (target q d)) B).
exact/esym/hard_heads.
Qed.

(** A layer equals it for all tokens iff its coefficients do. *)
Lemma layer_is_targets M B q o :
  (forall X : Key -> In -> F, attention_layer A M X q o =
    \sum_d feature_map (B d) (fun i => if target q d is Some k then X k i else 0) o) <->
  (forall k i, \sum_h A h q k * M h i o = \sum_d one_hot F (target q d) k * B d i o).
Proof.
have [only_if suffices_] := layer_coefficients A M
  (fun k i o => \sum_d one_hot F (target q d) k * B d i o) q o.
split=> [eq_layer | /suffices_ eq_layer X]; last by rewrite eq_layer targets_as_coefficients.
by apply: only_if => X; rewrite eq_layer targets_as_coefficients.
Qed.

(** If: with Φ, the maps Σ_δ Φ_δh B_δ. *)
Lemma one_map_suffices Phi B X q o : one_map_serves Phi ->
  attention_layer A (fun h i o => \sum_d Phi d h * B d i o) X q o =
    \sum_d feature_map (B d) (fun i => if target q d is Some k then X k i else 0) o.
Proof.
move=> eE; move: X; apply/layer_is_targets => k i.
under eq_bigr do rewrite big_distrr; rewrite exchange_big; apply: eq_bigr => d _ /=.
by rewrite eE big_distrl; apply: eq_bigr => h _; rewrite mulrCA mulrA.
Qed.

(** Only if: an entry that is one in the block of one offset and zero in the others is a row of Φ. *)
Lemma one_map_row M B d i o :
  (forall d', B d' i o = (d' == d)%:R) ->
  (forall X q, attention_layer A M X q o =
    \sum_d feature_map (B d) (fun i => if target q d is Some k then X k i else 0) o) ->
  forall q k, one_hot F (target q d) k = \sum_h M h i o * A h q k.
Proof.
move=> one eq_layer q k; have /layer_is_targets/(_ k i) := fun X => eq_layer X q.
rewrite [RHS](bigD1 d) //= one eqxx mulr1 [X in _ + X]big1 ?addr0 => [<-|d' /negbTE nd]; last first.
  by rewrite one nd mulr0.
by apply: eq_bigr => h _; rewrite mulrC.
Qed.

End SharedMap.
