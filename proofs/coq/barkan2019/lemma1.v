(** B19.lemma1 (amended): multiplying the tokens by a matrix is a 1 × 1 convolution.

    Definition 1 reads the pixel (i - [n/2] + k, j - [m/2] + l) for the tap (k, l) of an n × m filter,
    all counted from 1, with zeros outside the image. With the ceiling for [·], for every matrix W and
    all tokens X: (x ⋆ H)_1jf = (W X)_fj, where x is the image of one row whose pixel j is column j of
    X, and the filter H_f11 is row f of W. For every n all taps then stand at shifts between
    -⌊(n-1)/2⌋ and ⌊n/2⌋. With the floor, as it is printed, x ⋆ H is zero for all W and X, as it reads
    the row below. Over any field, for any number of tokens, input and output features. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import zify.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

(** The pixel at a row and a column counted from 1, zero outside an image of height × width. *)
Definition pixel (F : fieldType) (d height width : nat) (x : 'I_height -> 'I_width -> 'I_d -> F)
    (row column : int) (c : 'I_d) : F :=
  if row is Posz row'.+1 then
    if column is Posz column'.+1 then
      if insub row' is Some i then if insub column' is Some j then x i j c else 0 else 0
    else 0
  else 0.

(** Definition 1, with a choice of [·]: the convolution with one n × m filter. *)
Definition filtered_pixel (F : fieldType) (half : nat -> nat) (d height width n m : nat)
    (x : 'I_height -> 'I_width -> 'I_d -> F) (H : 'I_n -> 'I_m -> 'I_d -> F) (i j : nat) : F :=
  \sum_(k < n) \sum_(l < m) \sum_c
    pixel x (i%:Z - (half n)%:Z + k.+1%:Z) (j%:Z - (half m)%:Z + l.+1%:Z) c * H k l c.

(** The tokens, columns of a matrix, as an image of one row. *)
Definition tokens_as_image (F : fieldType) (d tokens : nat) (X : 'M[F]_(d, tokens))
    (_ : 'I_1) (j : 'I_tokens) (c : 'I_d) : F := X c j.

(** A row of a matrix as a 1 × 1 filter. *)
Definition row_as_filter (F : fieldType) (out d : nat) (W : 'M[F]_(out, d)) (f : 'I_out)
    (_ _ : 'I_1) (c : 'I_d) : F := W f c.

Theorem lemma1 (F : fieldType) (d out tokens : nat) (W : 'M[F]_(out, d)) (X : 'M[F]_(d, tokens)) :
  [/\ forall (f : 'I_out) (j : 'I_tokens),
        filtered_pixel uphalf (tokens_as_image X) (row_as_filter W f) 1 j.+1 = (W *m X) f j,
      forall n k : nat, (k < n)%N ->
        - (n.-1./2)%:Z <= - (uphalf n)%:Z + k.+1%:Z <= (n./2)%:Z
    & forall (f : 'I_out) (j : 'I_tokens),
        filtered_pixel half (tokens_as_image X) (row_as_filter W f) 1 j.+1 = 0].
Proof.
split=> [f j | n k lt | f j]; last 1 first.
- rewrite /filtered_pixel !big_ord1 big1 // => c _ /=.
  by rewrite /pixel /= insubF // mul0r.
- rewrite /filtered_pixel !big_ord1 mxE; apply: eq_bigr => c _.
  have -> : j.+1%:Z - (uphalf 1)%:Z + 1%N%:Z = j.+1%:Z by rewrite /=; lia.
  by rewrite /pixel /= !insubT //= => ltj; rewrite mulrC; congr (_ * X _ _); exact: val_inj.
by lia.
Qed.
