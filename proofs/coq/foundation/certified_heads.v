(** Heads whose value maps are combinations of the maps of the offsets.

    The offset δ has the map [B δ] and, at a query, the key [target δ]; the convolution is
    Σ_δ X_(target δ) B_δ. Head h has the value map Σ_δ V_hδ B_δ. The rows of attention that a
    certificate describes lie in the span of the unit rows at the offsets and the uniform row. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Convattn.foundation Require Import attention.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Section OffsetHeads.

Variables (F : fieldType) (Head Offset Key In : finType) (Out : Type).

(** A head's value map: coefficients times the maps of the offsets. *)
Definition offset_values (V : Head -> Offset -> F) (B : Offset -> In -> Out -> F)
    (h : Head) (i : In) (o : Out) : F :=
  \sum_d V h d * B d i o.

(** What the convolution puts at a key. *)
Definition at_key (target : Offset -> Key) (B : Offset -> In -> Out -> F)
    (k : Key) (i : In) (o : Out) : F :=
  \sum_d (k == target d)%:R * B d i o.

Lemma convolution_at_keys target B (X : Key -> In -> F) o :
  \sum_d feature_map (B d) (X (target d)) o = \sum_k feature_map (at_key target B k) (X k) o.
Proof.
transitivity (\sum_k \sum_d (k == target d)%:R * feature_map (B d) (X k) o).
  rewrite [RHS]exchange_big; apply: eq_bigr => d _ /=.
  rewrite [RHS](bigD1 (target d)) //= eqxx mul1r big1 ?addr0 // => k /negbTE ->.
  by rewrite mul0r.
apply: eq_bigr => k _; rewrite /feature_map; under [LHS]eq_bigr do rewrite big_distrr.
rewrite exchange_big; apply: eq_bigr => i _ /=.
by rewrite /at_key big_distrr; apply: eq_bigr => d _ /=; rewrite mulrCA.
Qed.

(** What the heads together put at a key. *)
Lemma layer_at_key (A : Head -> Key -> F) V B k i o :
  \sum_h A h k * offset_values V B h i o = \sum_d (\sum_h A h k * V h d) * B d i o.
Proof.
under eq_bigr do rewrite /offset_values big_distrr.
rewrite exchange_big; apply: eq_bigr => d _ /=.
by rewrite big_distrl; apply: eq_bigr => h _ /=; rewrite mulrA.
Qed.

(** The layer is the convolution if the two agree at every key. *)
Lemma layer_of_maps (Query : Type) (A : Head -> Query -> Key -> F) V B target X q o :
  (forall k i, \sum_d (\sum_h A h q k * V h d) * B d i o = at_key target B k i o) ->
  attention_layer A (offset_values V B) X q o = \sum_d feature_map (B d) (X (target d)) o.
Proof.
move=> agree; rewrite convolution_at_keys layer_as_coefficients.
apply: eq_bigr => k _; apply: eq_feature_map => // i.
by rewrite (layer_at_key (fun h => A h q)) agree.
Qed.

(** So it is if they agree as numbers there, whatever the maps. *)
Lemma layer_of_identity (Query : Type) (A : Head -> Query -> Key -> F) V B target X q o :
  (forall k d, \sum_h A h q k * V h d = (k == target d)%:R) ->
  attention_layer A (offset_values V B) X q o = \sum_d feature_map (B d) (X (target d)) o.
Proof.
by move=> same; apply: layer_of_maps => k i; apply: eq_bigr => d _; rewrite same.
Qed.

(** The normaliser Z(N) of a row, and the row (Σ_δ c_δ S_δ + (u0 + u1·N) J) / Z(N), N the number of
    keys: S_δ the unit row at the offset, J the row of 1/N. *)
Definition row_total (c : Offset -> F) (u0 u1 : F) (N : nat) : F := \sum_d c d + u0 + u1 * N%:R.

(** Such a row before normalisation has the sum Z(N), so the row has the sum one. *)
Definition shared_weight (target : Offset -> Key) (c : Offset -> F) (u0 u1 : F) (k : Key) : F :=
  \sum_d c d * (k == target d)%:R + (u0 + u1 * #|Key|%:R) / #|Key|%:R.

Lemma sum_shared_weight target c u0 u1 : #|Key|%:R != 0 :> F ->
  \sum_k shared_weight target c u0 u1 k = row_total c u0 u1 #|Key|.
Proof.
move=> nzN; rewrite /shared_weight big_split /= exchange_big /=.
have -> : \sum_(k : Key) (u0 + u1 * #|Key|%:R) / #|Key|%:R = u0 + u1 * #|Key|%:R.
  by rewrite sumr_const -[_ *+ #|_|]mulr_natr divfK.
rewrite (eq_bigr c) => [|d _]; first by rewrite addrA.
by rewrite (bigD1 (target d)) //= eqxx mulr1 big1 ?addr0 // => k /negbTE ->; rewrite mulr0.
Qed.

Definition shared_row target c u0 u1 (k : Key) : F :=
  shared_weight target c u0 u1 k / row_total c u0 u1 #|Key|.

(** The identity of a certificate, Σ_h c_hδ V_hδ' = [δ = δ'] and Σ_h u_h V_hδ' = 0, gives the
    numbers at every key, with the coefficients Z_h(N) V_hδ. *)
Lemma identity_at_keys (target : Offset -> Key) (c : Head -> Offset -> F) (u0 u1 : Head -> F)
    (V : Head -> Offset -> F) :
  (forall h, row_total (c h) (u0 h) (u1 h) #|Key| != 0) ->
  (forall d d', \sum_h c h d * V h d' = (d == d')%:R) ->
  (forall d, \sum_h u0 h * V h d = 0) -> (forall d, \sum_h u1 h * V h d = 0) ->
  forall k d, \sum_h shared_row target (c h) (u0 h) (u1 h) k
      * (row_total (c h) (u0 h) (u1 h) #|Key| * V h d) = (k == target d)%:R.
Proof.
move=> nzZ eq_c eq_u0 eq_u1 k d; set N := #|Key|%:R : F.
transitivity (\sum_h (\sum_d' (k == target d')%:R * (c h d' * V h d)
    + N^-1 * (u0 h * V h d) + (u1 h * V h d) * (N * N^-1))).
  apply: eq_bigr => h _; rewrite mulrA /shared_row divfK // /shared_weight -/N mulrDl big_distrl /= -addrA.
  congr (_ + _); first by apply: eq_bigr => d' _; rewrite [c h d' * _]mulrC mulrA.
  by rewrite -!mulrA; ring.
rewrite !big_split /= -big_distrr /= eq_u0 mulr0 addr0 -big_distrl /= eq_u1 mul0r addr0.
rewrite exchange_big (bigD1 d) //= -big_distrr /= eq_c eqxx mulr1 big1 ?addr0 // => d' /negbTE ne.
by rewrite -big_distrr /= eq_c ne mulr0.
Qed.

End OffsetHeads.
