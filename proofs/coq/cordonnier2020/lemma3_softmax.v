(** C20.lemma3, with softmax: relative heads of finite scores refute it, too.

    Two pixels in a row, K = 1, two heads with the relative weights (exponentials of the biases)
    1 at the shift 0, and at the shifts +1, -1: for the first head 1 and w, for the second w and 1.
    Let w > 0 and w ≠ 1; the ledger's example is w = 1/9. Then the rows of both heads sum to one and
    are positive; at each pixel the two rows span everything, so that the condition of the printed
    Lemma 3 holds; and yet no value maps make the layer the convolution with W, unless W = 0. Over
    every ordered field and for every number of channels. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Convattn.foundation Require Import attention image heads grid bare pixels.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** The weight at a shift, key minus query, before normalisation. *)
Definition shift_weight (R : ringType) (w : R) (first : bool) (shift : int) : R :=
  if shift == 0 then 1 else if (shift == 1) == first then 1 else w.

Definition two_heads (R : realFieldType) (w : R) (first : bool) (q : bare_grid 1 2) :
    bare_grid 1 2 -> R :=
  softmax (fun k : bare_grid 1 2 => shift_weight w first (k.2%:Z - q.2%:Z)).

Lemma sum_two_pixels (R : ringType) (f : bare_grid 1 2 -> R) :
  \sum_k f k = f (ord0, ord0) + f (ord0, ord_max).
Proof.
rewrite (eq_bigr (fun k => f (k.1, k.2))) => [|[] //].
rewrite -(pair_bigA _ (fun i j => f (i, j))) /= big_ord1 !big_ord_recl big_ord0 addr0.
by congr (_ + f (_, _)); apply: val_inj.
Qed.

Lemma two_pixels (q : bare_grid 1 2) : q = (ord0, ord0) \/ q = (ord0, ord_max).
Proof.
case: q => y [[|[|//]] ltx]; [left | right]; congr pair; apply: val_inj => //=;
  by case: y => [[]].
Qed.

(** The four rows. *)
Lemma two_heads_value (R : realFieldType) (w : R) (first : bool) (q k : bare_grid 1 2) :
  two_heads w first q k =
    if first == (q.2 == ord0) then 1 / 2%:R else (if q.2 == k.2 then 1 else w) / (1 + w).
Proof.
rewrite /two_heads /softmax sum_two_pixels.
case: (two_pixels q) (two_pixels k) => -> [->|->]; case: first => //=.
all: by rewrite [in RHS]addrC.
Qed.

Theorem lemma3_softmax (R : realFieldType) (w : R) (In Out : finType)
    (W : nat -> nat -> In -> Out -> R) (c : In) (o : Out) :
  0 < w -> w != 1 -> W 0%N 0%N c o != 0 ->
  [/\ forall first q, \sum_k two_heads w first q k = 1,
      forall first q k, 0 < two_heads w first q k,
      forall q (d : token_offset 0 0), exists phi : bool -> R,
        forall k, one_hot R (bare_target q d) k = \sum_h phi h * two_heads w h q k
    & ~ (exists M : bool -> In -> Out -> R,
          forall (X : image_type R In) (q : bare_grid 1 2) (o : Out),
            attention_layer (two_heads w) M (fun k => X k.1 k.2) q o =
              convolution 1 2 0 0 W X q.1 q.2 o)].
Proof.
move=> w_gt0 w1 nzW.
have gt0 : 0 < 1 + w by rewrite addr_gt0 ?ltr01.
have nz : 1 + w != 0 by rewrite gt_eqF.
have nz2 : 2%:R != 0 :> R by rewrite pnatr_eq0.
have nz1 : 1 - w != 0 by rewrite subr_eq0 eq_sym.
split=> [h q|h q k|q d|[M eq_conv]].
- rewrite sum_two_pixels !two_heads_value; case: (two_pixels q) => ->; case: h => /=;
    by field; rewrite ?nz ?nz2.
- rewrite two_heads_value; case: ifP => _; first by rewrite divr_gt0 ?ltr0n ?ltr01.
  by rewrite divr_gt0 //; case: ifP; rewrite ?ltr01.
- have -> : bare_target q d = Some q.
    by apply/eqP; rewrite bare_target_some !ord1 /= !addn0 !eqxx.
  exists (fun h => if h == (q.2 == ord0) then - 2%:R * w / (1 - w) else (1 + w) / (1 - w)) => k.
  rewrite big_bool !two_heads_value.
  case: (two_pixels q) (two_pixels k) => -> [->|->]; rewrite /one_hot /=;
    by field; rewrite ?nz ?nz1.
have value q k : two_heads w true q k * M true c o + two_heads w false q k * M false c o =
    (k == q)%:R * W 0%N 0%N c o.
  pose X : image_type R In := fun y x c' => ((y == k.1) && (x == k.2) && (c' == c))%:R.
  have XE (k' : bare_grid 1 2) c' : X k'.1 k'.2 c' = (k' == k)%:R * (c' == c)%:R.
    by rewrite /X -natrM mulnb -pair_eqE /= -!val_eqE.
  have pick (f : In -> R) (k' : bare_grid 1 2) : \sum_c' X k'.1 k'.2 c' * f c' = (k' == k)%:R * f c.
    rewrite (bigD1 c) //= XE eqxx mulr1 big1 ?addr0 // => c' /negbTE nc.
    by rewrite XE nc mulr0 mul0r.
  have := eq_conv X q o; rewrite convolution_of_one_tap pick eq_sym => <-.
  rewrite layer_as_coefficients sum_two_pixels /feature_map !pick !big_bool.
  by case: (two_pixels k) => ->; rewrite /= mul1r mul0r ?addr0 ?add0r.
have := value (ord0, ord0) (ord0, ord0); have := value (ord0, ord0) (ord0, ord_max).
have := value (ord0, ord_max) (ord0, ord0); have := value (ord0, ord_max) (ord0, ord_max).
rewrite !two_heads_value /=. move: (M true c o) (M false c o) (W _ _ _ _) nzW => x y z nzz.
move=> e1 e2 e3 e4.
have nzr : (1 - w) / (1 + w) != 0 by rewrite mulf_neq0 ?invr_eq0.
have ex : x * ((1 - w) / (1 + w)) = z.
  have -> : x * ((1 - w) / (1 + w)) =
      1 / (1 + w) * x + 1 / 2%:R * y - (w / (1 + w) * x + 1 / 2%:R * y).
    by field; rewrite ?nz ?nz2.
  by rewrite e1 e2 mul1r mul0r subr0.
have ey : y * ((1 - w) / (1 + w)) = z.
  have -> : y * ((1 - w) / (1 + w)) =
      1 / 2%:R * x + 1 / (1 + w) * y - (1 / 2%:R * x + w / (1 + w) * y).
    by field; rewrite ?nz ?nz2.
  by rewrite e4 e3 mul1r mul0r subr0.
have exy : x = y := mulIf nzr (etrans ex (esym ey)).
have : x * ((1 + 3%:R * w) / (2%:R * (1 + w))) = 0.
  rewrite -[RHS](mul0r z) -e3 -exy.
  by field; rewrite ?nz ?nz2.
move/eqP; rewrite mulf_eq0 => /orP[/eqP x0|]; first by move: nzz; rewrite -ex x0 mul0r eqxx.
rewrite mulf_eq0 invr_eq0 mulf_eq0 (negbTE nz) (negbTE nz2) orbF gt_eqF //.
by rewrite addr_gt0 ?ltr01 // mulr_gt0 // ltr0n.
Qed.
