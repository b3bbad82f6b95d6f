(** What [expresses] means, on one pixel: one head that attends with weight one, whose value map is
    the number v, with bias b, expresses the kernel of the one number w if and only if v = w and
    b = 0. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention image grid lower_bound.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Lemma sum_of_one (F : fieldType) (T : finType) (x : T) (f : T -> F) :
  (forall y : T, y = x) -> \sum_y f y = f x.
Proof.
by move=> only; rewrite (bigD1 x) //= big1 ?addr0 // => y; rewrite (only y) eqxx.
Qed.

Theorem expresses_values (F : fieldType) (v b w : F) :
  expresses (rows := 1) (columns := 1) (p1 := 1) (p2 := 1) (a := 0) (b := 0) (In := [finType of unit])
    (Out := [finType of unit]) (Head := [finType of unit]) 0 0
    (fun _ _ _ => 1) (fun _ _ _ => v) (fun _ => b) (fun _ _ _ _ => w) <->
  v = w /\ b = 0.
Proof.
have one_key (k : ringed_grid 1 1 0 0) : k = (ord0, ord0) by case: k => i j; rewrite !ord1.
have one_feature (f : patch_feature 1 1 [finType of unit]) : f = (ord0, ord0, tt).
  by case: f => [[i j] []]; rewrite !ord1.
have one_unit (u : [finType of unit]) : u = tt by case: u.
have layer (X : image_type F [finType of unit]) q t :
    attention_layer (fun (_ : [finType of unit]) (_ : bare_grid 1 1) (_ : ringed_grid 1 1 0 0) => 1)
      (fun _ (_ _ : patch_feature 1 1 [finType of unit]) => v) (patch_token X) q t = X 0%N 0%N tt * v.
  apply: (etrans (sum_of_one _ one_unit)); apply: (etrans (sum_of_one _ one_feature)).
  by congr (_ * _); apply: (etrans (sum_of_one _ one_key)); rewrite mul1r.
have target (X : image_type F [finType of unit]) o :
    convolution 1 1 0 0 (fun _ _ _ _ => w) X 0 0 o = X 0%N 0%N tt * w.
  by rewrite /convolution !big_ord_recl !big_ord0 !addr0 (sum_of_one _ one_unit).
have one_query (q : bare_grid 1 1) : q = (ord0, ord0) by case: q => i j; rewrite !ord1.
split=> [equal | [eqv eqb] X q t]; last first.
  by rewrite layer eqb addr0 eqv (one_query q) (one_feature t) -(target _ X tt).
have value X : X 0%N 0%N tt * v + b = X 0%N 0%N tt * w.
  by have := equal X (ord0, ord0) (ord0, ord0, tt); rewrite layer -(target _ X tt) => ->.
have b0 : b = 0 by have := value (fun _ _ _ => 0); rewrite !mul0r add0r.
by split=> //; have := value (fun _ _ _ => 1); rewrite b0 addr0 !mul1r.
Qed.
