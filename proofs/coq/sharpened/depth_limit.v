(** S.depth, in the limit: two layers of K heads are every K × K convolution.

    Let m ≥ r₁ / p₁ and n ≥ r₂ / p₂. A first layer with a head for each of the 2 m + 1 vertical offsets
    copies the token at its offset into a block of features of its own; it runs on the image's rows and on
    all columns of the ringed grid. A second one, with a head for each of the 2 n + 1 horizontal offsets,
    takes block i through the map of the offset (i, j). With hard attention their composition is the
    zero-padded convolution, for every image and kernel, where one layer has a head for each pair.

    Not covered: finite scores, where the second layer takes one head more. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention image grid bare patches.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

(** The tokens between the layers: the rows of the image, the columns of the ringed grid. *)
Definition middle_grid (rows columns n : nat) : finType :=
  [finType of 'I_rows * 'I_(columns + n.*2)].

Definition vertical_target (rows columns m n : nat) (i : 'I_m.*2.+1)
    (p : middle_grid rows columns n) : option (ringed_grid rows columns m n) :=
  Some (Ordinal (ringed_bound p.1 i), p.2).

Definition horizontal_target (rows columns n : nat) (j : 'I_n.*2.+1)
    (q : bare_grid rows columns) : option (middle_grid rows columns n) :=
  Some (q.1, Ordinal (ringed_bound q.2 j)).

(** The map of the first layer's head i: the features, copied into block i. *)
Definition copied (F : fieldType) (Block Feature : eqType) (i : Block) (s : Feature)
    (c : Block * Feature) : F :=
  (c == (i, s))%:R.

Theorem depth_limit (F : fieldType) (In Out : finType)
    (rows columns p1 p2 m n r1 r2 : nat) (W : nat -> nat -> In -> Out -> F)
    (X : image_type F In) (q : bare_grid rows columns) (t : patch_feature p1 p2 Out) :
  (r1 <= p1 * m)%N -> (r2 <= p2 * n)%N ->
  attention_layer
      (fun (j : 'I_n.*2.+1) q => one_hot F (horizontal_target j q))
      (fun j (c : 'I_m.*2.+1 * patch_feature p1 p2 In) =>
        output_block m n r1 r2 W c.1 j c.2)
      (attention_layer (fun (i : 'I_m.*2.+1) p => one_hot F (vertical_target i p))
        (fun i s c => copied F i s c) (patch_token X)) q t =
    convolution (p1 * rows) (p2 * columns) r1 r2 W X
      (p1 * q.1 + t.1.1)%N (p2 * q.2 + t.1.2)%N t.2.
Proof.
move=> reach1 reach2; rewrite -(convolution_of_tokens W X q t reach1 reach2).
have between p (c : 'I_m.*2.+1 * patch_feature p1 p2 In) :
    attention_layer (fun (i : 'I_m.*2.+1) p => one_hot F (vertical_target i p))
        (fun i s c => copied F i s c) (patch_token X) p c =
      patch_token X (Ordinal (ringed_bound p.1 c.1), p.2 : 'I_(columns + n.*2)) c.2.
  rewrite /attention_layer (bigD1 c.1) //= [X in _ + X]big1 ?addr0 => [|i ne]; last first.
    rewrite /feature_map big1 // => s _; rewrite /copied.
    by case: eqP => [e | _]; rewrite ?mulr0 //; move: ne; rewrite e eqxx.
  rewrite /feature_map (bigD1 c.2) //= big1 ?addr0 => [|s ne]; last first.
    rewrite /copied; case: eqP => [e | _]; rewrite ?mulr0 //.
    by move: ne; rewrite e eqxx.
  by rewrite attend_one_hot /copied -surjective_pairing eqxx mulr1.
rewrite {1}/attention_layer.
transitivity (\sum_(j < n.*2.+1) \sum_(i < m.*2.+1) feature_map (output_block m n r1 r2 W i j)
    (patch_token X (ringed_key q (i, j))) t).
  apply: eq_bigr => j _; rewrite /feature_map.
  rewrite (eq_bigr (fun c : 'I_m.*2.+1 * patch_feature p1 p2 In =>
    patch_token X (ringed_key q (c.1, j)) c.2 * output_block m n r1 r2 W c.1 j c.2 t)).
    by rewrite pair_bigA.
  by move=> c _; rewrite attend_one_hot /= between.
by rewrite exchange_big pair_bigA; apply: eq_bigr => -[i j] _.
Qed.
