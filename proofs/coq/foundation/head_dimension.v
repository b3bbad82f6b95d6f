(** Value maps through a head dimension: W = W_val · W_out. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Section HeadDimension.

Variable F : fieldType.

(** The map of a head: into the features of the head, and out of them. *)
Definition through (In Out : Type) (Inner : finType)
    (V : In -> Inner -> F) (O : Inner -> Out -> F) (i : In) (o : Out) : F :=
  \sum_s V i s * O s o.

(** A type with no more elements than another is embedded in it. *)
Lemma embedding (S T : finType) : (#|S| <= #|T|)%N -> exists f : S -> T, injective f.
Proof.
move=> leST; exists (fun s => enum_val (widen_ord leST (enum_rank s))) => s s'.
by move=> /enum_val_inj /(congr1 val) /= /ord_inj /enum_rank_inj.
Qed.

(** A head dimension as large as the smaller of the two sides is enough for every map: the other
    factor is then an identity, padded with zeros. *)
Lemma through_suffices (In Out Inner : finType) (M : In -> Out -> F) :
  (minn #|In| #|Out| <= #|Inner|)%N ->
  exists (V : In -> Inner -> F) (O : Inner -> Out -> F), forall i o, through V O i o = M i o.
Proof.
case: (leqP #|In| #|Out|) => _ /embedding[f inj_f].
  exists (fun i s => (s == f i)%:R), (fun s o => \sum_(i | f i == s) M i o) => i o.
  rewrite /through (bigD1 (f i)) //= eqxx mul1r [X in _ + X]big1 ?addr0 => [|s /negbTE ->].
    by rewrite (eq_bigl (pred1 i)) ?big_pred1_eq // => i'; rewrite /= (inj_eq inj_f).
  by rewrite mul0r.
exists (fun i s => \sum_(o | f o == s) M i o), (fun s o => (s == f o)%:R) => i o.
rewrite /through (bigD1 (f o)) //= eqxx mulr1 [X in _ + X]big1 ?addr0 => [|s /negbTE ->].
  by rewrite (eq_bigl (pred1 o)) ?big_pred1_eq // => o'; rewrite /= (inj_eq inj_f).
by rewrite mulr0.
Qed.

(** The same for every head at once. *)
Lemma heads_through (Head In Out Inner : finType) (M : Head -> In -> Out -> F) :
  (minn #|In| #|Out| <= #|Inner|)%N ->
  exists (V : Head -> In -> Inner -> F) (O : Head -> Inner -> Out -> F),
    forall h i o, through (V h) (O h) i o = M h i o.
Proof.
move=> le; have /fin_all_exists[V /fin_all_exists[O eM]] h := through_suffices (M h) le.
by exists V, O.
Qed.

End HeadDimension.

(** Equal maps give equal layers. *)
Lemma eq_layer_maps (F : fieldType) (Head Key In : finType) (Query Out : Type)
    (A : Head -> Query -> Key -> F) (M M' : Head -> In -> Out -> F) X q o :
  (forall h i o, M h i o = M' h i o) -> attention_layer A M X q o = attention_layer A M' X q o.
Proof. by move=> eM; apply: eq_bigr => h _; apply: eq_feature_map. Qed.
