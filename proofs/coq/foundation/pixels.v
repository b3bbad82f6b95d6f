(** Images whose tokens are their pixels, and their convolutions of a stride or a dilation. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import zify.
From Convattn.foundation Require Import attention image heads grid bare dilated.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

(** The token at a key: the pixel there, of the image in a ring of m rows and n columns of zeros. *)
Definition pixel_token (F : fieldType) (Channel : Type) (rows columns m n : nat)
    (X : image_type F Channel) (k : ringed_grid rows columns m n) : Channel -> F :=
  zero_framed rows columns m n X k.1 k.2.

(** The zero-padded convolution of dilation (D₁, D₂): out_q = Σ_δ X_(q + Dδ) W_δ. *)
Definition convolution_of_dilation (F : fieldType) (In : finType) (Out : Type)
    (height width D1 D2 r1 r2 : nat) (W : nat -> nat -> In -> Out -> F)
    (X : image_type F In) (y x : nat) (o : Out) : F :=
  \sum_(i < r1.*2.+1) \sum_(j < r2.*2.+1) \sum_c
    zero_framed height width (D1 * r1) (D2 * r2) X (y + D1 * i)%N (x + D2 * j)%N c * W i j c o.

(** How many pixels of an axis are kept. *)
Definition strided_side (side stride : nat) : nat := (side + stride.-1) %/ stride.

(** The zero-padded convolution of stride (s₁, s₂): out_q = Σ_δ X_(s·q + δ) W_δ. *)
Definition strided_convolution (F : fieldType) (In : finType) (Out : Type)
    (height width s1 s2 r1 r2 : nat) (W : nat -> nat -> In -> Out -> F)
    (X : image_type F In) (y x : nat) (o : Out) : F :=
  \sum_(i < r1.*2.+1) \sum_(j < r2.*2.+1) \sum_c
    zero_framed height width r1 r2 X (s1 * y + i)%N (s2 * x + j)%N c * W i j c o.

Lemma dilated_bound (rows D r : nat) (y : 'I_rows) (i : 'I_r.*2.+1) :
  (y + D * i < rows + (D * r).*2)%N.
Proof.
have lti := ltn_ord i; have lty := ltn_ord y.
have : (D * i <= D * r.*2)%N by rewrite leq_mul2l -ltnS lti orbT.
by rewrite -doubleMr; lia.
Qed.

(** The key at query + D · offset, in coordinates that count a ring of D · r zeros. *)
Definition dilated_key (rows columns D1 D2 r1 r2 : nat)
    (q : bare_grid rows columns) (d : token_offset r1 r2) :
    ringed_grid rows columns (D1 * r1) (D2 * r2) :=
  (Ordinal (dilated_bound D1 q.1 d.1), Ordinal (dilated_bound D2 q.2 d.2)).

(** The pixel at an offset: of the image, if there is one, and zero if not. *)
Lemma pixel_token_bare (F : fieldType) (Channel : Type) (rows columns m n : nat)
    (X : image_type F Channel) (q : bare_grid rows columns) (d : token_offset m n) c :
  pixel_token X (ringed_key q d) c = if bare_target q d is Some k then X k.1 k.2 c else 0.
Proof.
rewrite /pixel_token /zero_framed /= -bare_target_exists.
case e: (bare_target q d) => [k|] //=.
by move/eqP: e; rewrite bare_target_some => /andP[/eqP <- /eqP <-]; rewrite !addnK.
Qed.

Lemma pixel_token_image_key (F : fieldType) (Channel : Type) (rows columns m n : nat)
    (X : image_type F Channel) (k : bare_grid rows columns) c :
  pixel_token X (image_key m n k) c = X k.1 k.2 c.
Proof. by rewrite image_key_centre pixel_token_bare bare_target_centre. Qed.

(** Every number of taps of an axis is odd, and its heads are as many as the taps. *)
Lemma card_offsets (r1 r2 : nat) : #|token_offset r1 r2| = (r1.*2.+1 * r2.*2.+1)%N.
Proof. by rewrite card_prod !card_ord. Qed.

Section Pixels.

Variables (F : fieldType) (In : finType) (Out : Type) (rows columns r1 r2 : nat).
Variables (W : nat -> nat -> In -> Out -> F) (X : image_type F In).

Lemma dilated_of_pixels (D1 D2 : nat) (q : bare_grid rows columns) (o : Out) :
  \sum_(d : token_offset r1 r2)
      feature_map (W d.1 d.2) (pixel_token X (dilated_key D1 D2 q d)) o =
    convolution_of_dilation rows columns D1 D2 r1 r2 W X q.1 q.2 o.
Proof. by rewrite /convolution_of_dilation [RHS]pair_bigA. Qed.

Lemma convolution_of_pixels (q : bare_grid rows columns) (o : Out) :
  \sum_(d : token_offset r1 r2) feature_map (W d.1 d.2) (pixel_token X (ringed_key q d)) o =
    convolution rows columns r1 r2 W X q.1 q.2 o.
Proof. by rewrite /convolution [RHS]pair_bigA. Qed.

(** One hard head for each offset, through any bijection f of the heads onto the offsets. *)
Lemma hard_bijection (Head Key : finType) (Query : Type) (f : Head -> token_offset r1 r2)
    (key : Query -> token_offset r1 r2 -> Key) (M : Head -> In -> Out -> F) (T : Key -> In -> F)
    (q : Query) (o : Out) :
  bijective f -> (forall h c o, M h c o = W (f h).1 (f h).2 c o) ->
  attention_layer (hard_attention F (fun q h => Some (key q (f h)))) M T q o =
    \sum_(d : token_offset r1 r2) feature_map (W d.1 d.2) (T (key q d)) o.
Proof.
move=> bij_f eM; rewrite hard_heads (reindex f) /=; last exact: onW_bij.
by apply: eq_bigr => h _; apply: eq_feature_map.
Qed.

End Pixels.

(** A kernel of one tap acts on each pixel by itself. *)
Lemma convolution_of_one_tap (F : fieldType) (In : finType) (Out : Type) (rows columns : nat)
    (W : nat -> nat -> In -> Out -> F) (X : image_type F In) (q : bare_grid rows columns) (o : Out) :
  convolution rows columns 0 0 W X q.1 q.2 o = \sum_c X q.1 q.2 c * W 0%N 0%N c o.
Proof.
rewrite /convolution !big_ord1; apply: eq_bigr => c _ /=.
by rewrite /zero_framed !addn0 !add0n !subn0 !ltn_ord.
Qed.

(** The dilated convolution of an odd kernel, in its two forms: by rings, and by signed shifts. *)
Lemma convolution_of_dilation_by_shifts (F : fieldType) (In : finType) (Out : Type)
    (height width D1 D2 r1 r2 : nat) (W : nat -> nat -> In -> Out -> F) (X : image_type F In)
    (y x : nat) (o : Out) :
  convolution_of_dilation height width D1 D2 r1 r2 W X y x o =
    dilated_convolution height width r1.*2.+1 r2.*2.+1 D1 D2 W X y x o.
Proof.
have shift (D r i a : nat) : a%:Z + tap_shift r.*2.+1 D i = (a + D * i)%N%:Z - (D * r)%N%:Z.
  by rewrite /tap_shift /= divn2 doubleK PoszD !PoszM mulrBl ![_ * D%:Z]mulrC addrA.
apply: eq_bigr => i _; apply: eq_bigr => j _; apply: eq_bigr => c _; congr (_ * _).
rewrite !shift /zero_outside /zero_framed; move: (_ + D1 * i)%N (D1 * r1)%N => a m.
move: (_ + D2 * j)%N (D2 * r2)%N => b n.
case: ifP => inside; case: ifP => framed //; try by exfalso; lia.
by congr X; lia.
Qed.
