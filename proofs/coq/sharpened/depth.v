(** S.depth: two layers together have at least rank F heads in product.

    Let m ≥ r₁ / p₁ and n ≥ r₂ / p₂, and let the image have more than m rows and n columns of patches. If two
    attention layers, linear between them, compute the zero-padded convolution for all images, then the
    product of their numbers of heads is at least the rank of the kernel's flattened form F. If moreover all
    attention weights are positive, as those of a softmax at finite scores are, and some query has a token of
    the image outside its receptive field, or some offset has the map zero, and F is not zero, it is more than
    that rank. Between the layers there may be any tokens with any features; the first may have a bias. A skip
    connection is a head whose attention is the identity, so it counts as one.

    The composition of two layers is a layer again (the lemma composite). Not covered: more than two
    layers, limits, and that K and K + 1 heads suffice. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention image grid rank.
From Convattn.foundation Require Import flattened_kernel lower_bound.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.Theory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** The heads of the composition are the pairs of heads. *)
Definition composite_attention (F : fieldType) (Key Middle : finType) (Query Head1 Head2 : Type)
    (A1 : Head1 -> Middle -> Key -> F) (A2 : Head2 -> Query -> Middle -> F)
    (h : Head2 * Head1) (q : Query) (k : Key) : F :=
  \sum_p A2 h.1 q p * A1 h.2 p k.

Definition composite_map (F : fieldType) (Mid : finType) (In Out Head1 Head2 : Type)
    (M1 : Head1 -> In -> Mid -> F) (M2 : Head2 -> Mid -> Out -> F)
    (h : Head2 * Head1) (i : In) (o : Out) : F :=
  \sum_c M1 h.2 i c * M2 h.1 c o.

Lemma composite (F : fieldType) (Key Middle In Mid Head1 Head2 : finType) (Query Out : Type)
    (A1 : Head1 -> Middle -> Key -> F) (A2 : Head2 -> Query -> Middle -> F)
    (M1 : Head1 -> In -> Mid -> F) (M2 : Head2 -> Mid -> Out -> F)
    (X : Key -> In -> F) (q : Query) (o : Out) :
  attention_layer A2 M2 (attention_layer A1 M1 X) q o =
    attention_layer (composite_attention A1 A2) (composite_map M1 M2) X q o.
Proof.
rewrite /attention_layer -(pair_big xpredT xpredT (fun g h =>
  feature_map (composite_map M1 M2 (g, h)) (attend (composite_attention A1 A2 (g, h) q) X) o)) /=.
apply: eq_bigr => g _.
rewrite /feature_map /attend /composite_map /composite_attention /=.
under eq_bigr => c _.
  rewrite (eq_bigr (fun p => \sum_h A2 g q p * (\sum_i (\sum_k A1 h p k * X k i) * M1 h i c))); last first.
    by move=> p _; rewrite big_distrr.
  rewrite exchange_big big_distrl /=.
  over.
rewrite exchange_big; apply: eq_bigr => h _ /=.
transitivity (\sum_c \sum_i (\sum_k (\sum_p A2 g q p * A1 h p k) * X k i) * (M1 h i c * M2 g c o)).
  apply: eq_bigr => c _.
  rewrite (eq_bigr (fun p => \sum_i (\sum_k A2 g q p * A1 h p k * X k i) * M1 h i c)); last first.
    move=> p _; rewrite big_distrr /=; apply: eq_bigr => i _.
    rewrite mulrA big_distrr /=; congr (_ * _); apply: eq_bigr => k _; exact: mulrA.
  rewrite exchange_big big_distrl /=; apply: eq_bigr => i _.
  rewrite -big_distrl /= mulrA; congr (_ * _ * _).
  rewrite exchange_big; apply: eq_bigr => k _ /=.
  by rewrite big_distrl.
rewrite exchange_big; apply: eq_bigr => i _ /=.
by rewrite big_distrr.
Qed.

Lemma attention_layer_bias (F : fieldType) (Head Key In : finType) (Query Out : Type)
    (A : Head -> Query -> Key -> F) (M : Head -> In -> Out -> F)
    (X : Key -> In -> F) (b : In -> F) (q : Query) (o : Out) :
  attention_layer A M (fun k i => X k i + b i) q o =
    attention_layer A M X q o + attention_layer A M (fun _ => b) q o.
Proof.
rewrite /attention_layer -big_split; apply: eq_bigr => h _ /=.
rewrite -feature_map_add; apply: eq_bigr => i _; congr (_ * _).
by rewrite /attend -big_split; apply: eq_bigr => k _; rewrite mulrDr.
Qed.

Theorem depth (F : realFieldType) (In Mid Out Middle Head1 Head2 : finType)
    (rows columns p1 p2 a b m n r1 r2 : nat)
    (A1 : Head1 -> Middle -> ringed_grid rows columns a b -> F)
    (M1 : Head1 -> patch_feature p1 p2 In -> Mid -> F) (bias1 : Mid -> F)
    (A2 : Head2 -> bare_grid rows columns -> Middle -> F)
    (M2 : Head2 -> Mid -> patch_feature p1 p2 Out -> F) (bias2 : patch_feature p1 p2 Out -> F)
    (W : nat -> nat -> In -> Out -> F) :
  let rank := family_rank (flattened_kernel p1 p2 m n r1 r2 W) in
  (r1 <= p1 * m)%N -> (r2 <= p2 * n)%N -> (m < rows)%N -> (n < columns)%N ->
  (forall (X : image_type F In) (q : bare_grid rows columns) (t : patch_feature p1 p2 Out),
    attention_layer A2 M2
        (fun k c => attention_layer A1 M1 (patch_token X) k c + bias1 c) q t + bias2 t =
      convolution (p1 * rows) (p2 * columns) r1 r2 W X
        (p1 * q.1 + t.1.1)%N (p2 * q.2 + t.1.2)%N t.2) ->
  (rank <= #|Head1| * #|Head2|)%N /\
  ((forall h p k, 0 < A1 h p k) -> (forall h q p, 0 < A2 h q p) ->
   (m.+1 < rows)%N \/ (n.+1 < columns)%N \/
     (exists d, forall st, flattened_kernel p1 p2 m n r1 r2 W st d = 0) ->
   (0 < rank)%N -> (rank < #|Head1| * #|Head2|)%N).
Proof.
move=> rank reach1 reach2 large1 large2 equal.
pose A := composite_attention A1 A2; pose M := composite_map M1 M2.
have layer X q t : attention_layer A M (patch_token X) q t =
    convolution (p1 * rows) (p2 * columns) r1 r2 W X
      (p1 * q.1 + t.1.1)%N (p2 * q.2 + t.1.2)%N t.2.
  have := equal (fun _ _ _ => 0) q t; have := equal X q t.
  rewrite !attention_layer_bias !composite attention_blank convolution_blank add0r -addrA.
  by move=> <- ->; rewrite addr0.
have expressed : @expresses F In Out _ rows columns p1 p2 a b r1 r2 A M (fun _ => 0) W.
  by move=> X q t; rewrite addr0 layer.
have count : #|[finType of Head2 * Head1]| = (#|Head1| * #|Head2|)%N by rewrite card_prod mulnC.
rewrite -count; split; first exact: (head_bound reach1 reach2 expressed large1 large2).
move=> pos1 pos2 outside rank_pos.
have [q [k zero]] := zero_map reach1 reach2 expressed large1 large2 outside.
apply: (one_more_head reach1 reach2 expressed large1 large2 rank_pos _ zero) => h.
have [p _ | none] := pickP (fun p : Middle => true).
  apply: lt0r_neq0; rewrite /A /composite_attention (bigD1 p) //=.
  by rewrite ltr_paddr ?mulr_gt0 // sumr_ge0 // => i _; rewrite mulr_ge0 // ltW.
pose no_heads := fun (_ : 'I_0) (_ : bare_grid rows columns) (_ : ringed_grid rows columns a b) => 0 : F.
have empty : @expresses F In Out _ rows columns p1 p2 a b r1 r2 no_heads (fun _ _ _ => 0) (fun _ => 0) W.
  move=> X q' t; rewrite addr0 -layer /attention_layer big_ord0 big1 // => g _.
  rewrite /feature_map big1 // => i _; rewrite /attend big1 ?mul0r // => j _.
  by rewrite /A /composite_attention big_pred0 ?mul0r // => p; have := none p.
have := head_bound reach1 reach2 empty large1 large2.
by rewrite card_ord leqn0 -/rank => /eqP e; move: rank_pos; rewrite e.
Qed.
