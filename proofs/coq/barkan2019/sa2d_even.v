(** B19.sa2d: 1 × 1 heads with the even bias express no kernel that is not even within the image.

    Let a layer of any number of heads mix the pixels of an image, without a ring: the weight of a key,
    before normalisation, is any function of the query's and the key's pixel and of their distances
    |i - r| and |j - t|, and the value of a key is any function of its pixel. If it equals the zero-padded
    convolution with a kernel W for all images, then W_δ = W_Pδ for the reflection P of either axis and
    every shift δ that occurs between two pixels of the image. Over any field; the weights may be those
    of a softmax, or others. For limits see sa2d_even_limit. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import zify.
From Convattn.foundation Require Import attention image grid even.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

(** A layer of 1 × 1 filters: pixels and distances are all that it sees. *)
Definition pixel_layer (F : fieldType) (In Head : finType) (Out : Type) (rows columns : nat)
    (w : Head -> (In -> F) -> (In -> F) -> nat -> nat -> F) (v : Head -> (In -> F) -> Out -> F)
    (X : image_type F In) (q : bare_grid rows columns) (o : Out) : F :=
  \sum_h attend
    (softmax (fun k : bare_grid rows columns => w h (X q.1 q.2) (X k.1 k.2)
      (axis_distance q.1 k.1) (axis_distance q.2 k.2)))
    (fun k o => v h (X k.1 k.2) o) o.

Section Reflections.

Variables (F : fieldType) (In Head : finType) (Out : Type) (rows columns r1 r2 : nat).
Variables (w : Head -> (In -> F) -> (In -> F) -> nat -> nat -> F) (v : Head -> (In -> F) -> Out -> F).
Variables (W : nat -> nat -> In -> Out -> F).

(** Reflecting the image reflects what the layer computes. *)
Lemma pixel_layer_reflected (P : bare_grid rows columns -> bare_grid rows columns)
    (X X' : image_type F In) q o :
  involutive P -> (forall k : bare_grid rows columns, X' k.1 k.2 = X (P k).1 (P k).2) ->
  (forall k k' : bare_grid rows columns, axis_distance (P k).1 (P k').1 = axis_distance k.1 k'.1) ->
  (forall k k' : bare_grid rows columns, axis_distance (P k).2 (P k').2 = axis_distance k.2 k'.2) ->
  pixel_layer w v X' q o = pixel_layer w v X (P q) o.
Proof.
move=> PK eqX eq1 eq2; apply: eq_bigr => h _.
rewrite /attend [RHS](reindex_inj (inv_inj PK)) /=; apply: eq_bigr => k _.
rewrite /softmax -!eqX eq1 eq2; congr (_ / _ * _).
by rewrite [RHS](reindex_inj (inv_inj PK)) /=; apply: eq_bigr => k' _; rewrite -!eqX eq1 eq2.
Qed.

Lemma frame_inside (side r z : nat) : (r <= z < r + side)%N -> (z - r < side)%N.
Proof. by lia. Qed.

(** On an axis, a tap reads one place. *)
Lemma frame_tap (side a r y i i' : nat) : (a < side)%N -> (a + r = y + i)%N ->
  (r <= y + i' < r + side)%N && (y + i' - r == a)%N = (i' == i).
Proof. by move=> lta eqa; apply/andP/eqP => [[] | ->]; [lia | split; lia]. Qed.

(** On an image of one bright pixel a convolution shows one tap. *)
Lemma convolution_indicator (X : image_type F In) (a b : nat) (c : In) (y x i j : nat) (o : Out) :
  (forall y x c', (y < rows)%N -> (x < columns)%N ->
    X y x c' = [&& y == a, x == b & c' == c]%:R) ->
  (a < rows)%N -> (b < columns)%N -> (i <= r1.*2)%N -> (j <= r2.*2)%N ->
  (a + r1 = y + i)%N -> (b + r2 = x + j)%N ->
  convolution rows columns r1 r2 W X y x o = W i j c o.
Proof.
move=> indicator lta ltb lei lej eqa eqb.
have lti : (i < r1.*2.+1)%N by [].
have ltj : (j < r2.*2.+1)%N by [].
have tap (i' : 'I_r1.*2.+1) (j' : 'I_r2.*2.+1) c' :
    zero_framed rows columns r1 r2 X (y + i')%N (x + j')%N c' =
      [&& i' == Ordinal lti, j' == Ordinal ltj & c' == c]%:R.
  have -> : (i' == Ordinal lti) = (val i' == i) by [].
  have -> : (j' == Ordinal ltj) = (val j' == j) by [].
  rewrite -(frame_tap (val i') lta eqa) -(frame_tap (val j') ltb eqb) /zero_framed.
  case: (boolP (r1 <= y + i' < r1 + rows)%N) => //= in1.
  case: (boolP (r2 <= x + j' < r2 + columns)%N) => /= in2; last by rewrite andbF.
  by rewrite indicator //; [exact: frame_inside in1 | exact: frame_inside in2].
rewrite /convolution (bigD1 (Ordinal lti)) //= [X in _ + X]big1 ?addr0 => [|i' /negbTE ne]; last first.
  by rewrite big1 // => j' _; rewrite big1 // => c' _; rewrite tap ne mul0r.
rewrite (bigD1 (Ordinal ltj)) //= [X in _ + X]big1 ?addr0 => [|j' /negbTE ne]; last first.
  by rewrite big1 // => c' _; rewrite (tap (Ordinal lti)) ne andbF mul0r.
rewrite (bigD1 c) //= [X in _ + X]big1 ?addr0 => [|c' /negbTE ne]; last first.
  by rewrite (tap (Ordinal lti) (Ordinal ltj)) ne !andbF mul0r.
by rewrite (tap (Ordinal lti) (Ordinal ltj)) !eqxx mul1r.
Qed.

End Reflections.

Theorem sa2d_even (F : fieldType) (In Head : finType) (Out : Type) (rows columns r1 r2 : nat)
    (w : Head -> (In -> F) -> (In -> F) -> nat -> nat -> F) (v : Head -> (In -> F) -> Out -> F)
    (W : nat -> nat -> In -> Out -> F) :
  (forall (X : image_type F In) (q : bare_grid rows columns) o,
    pixel_layer w v X q o = convolution rows columns r1 r2 W X q.1 q.2 o) ->
  forall i j c o, (i <= r1.*2)%N -> (j <= r2.*2)%N ->
    (axis_distance r1 i < rows)%N -> (axis_distance r2 j < columns)%N ->
    W (r1.*2 - i)%N j c o = W i j c o /\ W i (r2.*2 - j)%N c o = W i j c o.
Proof.
move=> expresses i j c o lei lej lt1 lt2; rewrite /axis_distance in lt1 lt2.
have ltq1 : (r1 - i < rows)%N by lia.
have ltp1 : (i - r1 < rows)%N by lia.
have ltq2 : (r2 - j < columns)%N by lia.
have ltp2 : (j - r2 < columns)%N by lia.
pose q : bare_grid rows columns := (Ordinal ltq1, Ordinal ltq2).
pose X : image_type F In := fun y x c' => [&& y == (i - r1)%N, x == (j - r2)%N & c' == c]%:R.
have tapX : pixel_layer w v X q o = W i j c o.
  by rewrite expresses; apply: (@convolution_indicator _ _ _ _ _ _ _ _ _ (i - r1) (j - r2)) => //=; lia.
pose P1 (k : bare_grid rows columns) : bare_grid rows columns := (rev_ord k.1, k.2).
pose P2 (k : bare_grid rows columns) : bare_grid rows columns := (k.1, rev_ord k.2).
have P1K : involutive P1 by move=> [k1 k2]; rewrite /P1 rev_ordK.
have P2K : involutive P2 by move=> [k1 k2]; rewrite /P2 rev_ordK.
have distance_rev n (a b : 'I_n) : axis_distance (rev_ord a) (rev_ord b) = axis_distance a b.
  by rewrite /axis_distance /=; case: a b => [a lta] [b ltb] /=; lia.
pose X1 : image_type F In := fun y x => X (rows - y.+1)%N x.
pose X2 : image_type F In := fun y x => X y (columns - x.+1)%N.
have flip1 : pixel_layer w v X1 (P1 q) o = pixel_layer w v X q o.
  by rewrite -[q in RHS]P1K; apply: pixel_layer_reflected => // k k'; exact: distance_rev.
have flip2 : pixel_layer w v X2 (P2 q) o = pixel_layer w v X q o.
  by rewrite -[q in RHS]P2K; apply: pixel_layer_reflected => // k k'; exact: distance_rev.
rewrite -tapX -{1}flip1 -flip2 !expresses.
have mirrored n a b : (a < n)%N -> (b < n)%N -> (n - b.+1 == a)%N = (b == n - a.+1)%N.
  by move=> lta ltb; apply/eqP/eqP; lia.
split; apply/esym.
  apply: (@convolution_indicator _ _ _ _ _ _ _ _ _ (rows - (i - r1).+1) (j - r2)) => /= [y x c' lty _||||||].
  - by rewrite /X1 /X mirrored.
  - by lia.
  - by lia.
  - by lia.
  - by lia.
  - by lia.
  - by lia.
apply: (@convolution_indicator _ _ _ _ _ _ _ _ _ (i - r1) (columns - (j - r2).+1)) => /= [y x c' _ ltx||||||].
- by rewrite /X2 /X mirrored.
- by lia.
- by lia.
- by lia.
- by lia.
- by lia.
- by lia.
Qed.
