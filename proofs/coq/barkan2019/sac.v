(** B19.sac: a self-attentive convolution with two heads is any convolution, exactly.

    Let the keys be the N cells of a grid, and the value of a head at a cell the zero-padded
    convolution of the image with the head's own filters: of any size n × m, odd or even, with any
    stride and dilation d, the taps of an axis standing at the shifts from -d⌊(n-1)/2⌋ on in steps of
    d. The first head has the bias b_00 = log e at the distance (0, 0) and zero elsewhere, and the
    filters W / (1 - ε); the second has no bias, and the filters -ε / (1 - ε) W, where
    ε = N / (e + N - 1). Then the layer is the convolution with W, for every W and image. Each
    query stands at a cell of its own: queries on all cells, or on every s-th one, are special cases.
    Nothing is laid around the image. Over any field in which e ≠ 1 and N and e + N - 1 are not zero,
    as for real e > 0, e ≠ 1. These filters know N; for one set of filters see sac_sizes. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Convattn.foundation Require Import attention image heads filters.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

(** The filters of the head with the bias, and of the uniform one, [None]. *)
Definition self_attentive_filters (F : fieldType) (In Out : Type) (keys : nat) (e : F)
    (W : nat -> nat -> In -> Out -> F) (h : option unit) (i j : nat) (c : In) (o : Out) : F :=
  (if h is Some _ then (keys%:R + e - 1) / (e - 1) else - (keys%:R / (e - 1))) * W i j c o.

Theorem sac (F : fieldType) (In : finType) (Query Out : Type) (height width rows columns : nat)
    (l : layout) (e : F) (W : nat -> nat -> In -> Out -> F) (X : image_type F In)
    (cell : Query -> 'I_rows * 'I_columns) (q : Query) (o : Out) :
  let N := (rows * columns)%N in
  e != 1 -> N%:R != 0 :> F -> N%:R + e - 1 != 0 ->
  self_attentive_layer height width l
      (finite_attention (fun q (_ : unit) => Some (cell q)) e) (self_attentive_filters N e W) X q o =
    filtered height width l W X (cell q).1 (cell q).2 o.
Proof.
move=> N ne1 nzN nzZ; have nz1 : e - 1 != 0 by rewrite subr_eq0.
have keysN : #|[finType of 'I_rows * 'I_columns]| = N by rewrite card_prod !card_ord.
pose v (k : 'I_rows * 'I_columns) o := filtered height width l W X k.1 k.2 o.
have valueE h : attend (finite_attention (fun q (_ : unit) => Some (cell q)) e h q)
      (fun k o => filtered height width l (self_attentive_filters N e W h) X k.1 k.2 o) o =
    (if h is Some _ then (N%:R + e - 1) / (e - 1) else - (N%:R / (e - 1))) *
      attend (finite_attention (fun q (_ : unit) => Some (cell q)) e h q) v o.
  rewrite /attend big_distrr; apply: eq_bigr => k _ /=.
  by rewrite /self_attentive_filters filtered_scaled mulrCA.
rewrite /self_attentive_layer sum_option (big_pred1 tt) => [|[] //]; rewrite !valueE.
rewrite /finite_attention attend_flat // attend_bias ?keysN // -/(v _ _).
by field; apply/andP.
Qed.
