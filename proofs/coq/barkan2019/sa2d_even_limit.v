(** B19.sa2d, in the limit: nor do 1 × 1 heads with the even bias come close to any such kernel.

    In the setting of sa2d_even (1 × 1 heads, no ring, weights that see the pixels of query and key and
    their distances |i - r| and |j - t| only), let there be, for every ε > 0, a layer of any number of
    heads that is within ε of the zero-padded convolution with a kernel W, at every query and output
    and for every image of zeros and ones. Then W_δ = W_Pδ for the reflection P of either axis and every
    shift δ that occurs between two pixels of the image. So no sequence of such layers tends to another
    convolution, whatever becomes of their number of heads, scores and values, on one size of image.
    Over every field that holds the absolute values of its numbers, such as the rationals, the reals
    and the complex numbers. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import zify.
From Convattn.foundation Require Import attention image grid even.
From Convattn.barkan2019 Require Import sa2d_even.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Theorem sa2d_even_limit (F : numFieldType) (In : finType) (Out : Type) (rows columns r1 r2 : nat)
    (W : nat -> nat -> In -> Out -> F) :
  (forall eps, 0 < eps -> exists (Head : finType)
      (w : Head -> (In -> F) -> (In -> F) -> nat -> nat -> F) (v : Head -> (In -> F) -> Out -> F),
    forall (X : image_type F In), (forall y x c, X y x c = 0 \/ X y x c = 1) ->
    forall (q : bare_grid rows columns) o,
    `|pixel_layer w v X q o - convolution rows columns r1 r2 W X q.1 q.2 o| <= eps) ->
  forall i j c o, (i <= r1.*2)%N -> (j <= r2.*2)%N ->
    (axis_distance r1 i < rows)%N -> (axis_distance r2 j < columns)%N ->
    W (r1.*2 - i)%N j c o = W i j c o /\ W i (r2.*2 - j)%N c o = W i j c o.
Proof.
move=> near i j c o lei lej lt1 lt2; rewrite /axis_distance in lt1 lt2.
have ltq1 : (r1 - i < rows)%N by lia.
have ltp1 : (i - r1 < rows)%N by lia.
have ltq2 : (r2 - j < columns)%N by lia.
have ltp2 : (j - r2 < columns)%N by lia.
pose q : bare_grid rows columns := (Ordinal ltq1, Ordinal ltq2).
pose X : image_type F In := fun y x c' => [&& y == (i - r1)%N, x == (j - r2)%N & c' == c]%:R.
have bin (b : bool) : b%:R = 0 \/ b%:R = 1 :> F by case: b; [right | left].
have binX y x c' : X y x c' = 0 \/ X y x c' = 1 by rewrite /X; exact: bin.
have tapX : convolution rows columns r1 r2 W X q.1 q.2 o = W i j c o.
  by apply: (@convolution_indicator _ _ _ _ _ _ _ _ _ (i - r1) (j - r2)) => //=; lia.
pose P1 (k : bare_grid rows columns) : bare_grid rows columns := (rev_ord k.1, k.2).
pose P2 (k : bare_grid rows columns) : bare_grid rows columns := (k.1, rev_ord k.2).
have P1K : involutive P1 by move=> [k1 k2]; rewrite /P1 rev_ordK.
have P2K : involutive P2 by move=> [k1 k2]; rewrite /P2 rev_ordK.
have distance_rev n (a b : 'I_n) : axis_distance (rev_ord a) (rev_ord b) = axis_distance a b.
  by rewrite /axis_distance /=; case: a b => [a lta] [b ltb] /=; lia.
pose X1 : image_type F In := fun y x => X (rows - y.+1)%N x.
pose X2 : image_type F In := fun y x => X y (columns - x.+1)%N.
have mirrored n a b : (a < n)%N -> (b < n)%N -> (n - b.+1 == a)%N = (b == n - a.+1)%N.
  by move=> lta ltb; apply/eqP/eqP; lia.
have tap1 : convolution rows columns r1 r2 W X1 (P1 q).1 (P1 q).2 o = W (r1.*2 - i)%N j c o.
  apply: (@convolution_indicator _ _ _ _ _ _ _ _ _ (rows - (i - r1).+1) (j - r2)) => /=
    [y x c' lty _||||||]; first [by rewrite /X1 /X mirrored | lia].
have tap2 : convolution rows columns r1 r2 W X2 (P2 q).1 (P2 q).2 o = W i (r2.*2 - j)%N c o.
  apply: (@convolution_indicator _ _ _ _ _ _ _ _ _ (i - r1) (columns - (j - r2).+1)) => /=
    [y x c' _ ltx||||||]; first [by rewrite /X2 /X mirrored | lia].
have close (X' : image_type F In) (P : bare_grid rows columns -> bare_grid rows columns) :
    (forall y x c', X' y x c' = 0 \/ X' y x c' = 1) ->
    (forall Head w v, @pixel_layer F In Head Out rows columns w v X' (P q) o = pixel_layer w v X q o) ->
    convolution rows columns r1 r2 W X' (P q).1 (P q).2 o = convolution rows columns r1 r2 W X q.1 q.2 o.
  move=> binX' same; apply/eqP; rewrite -subr_eq0 -normr_eq0; apply/negPn/negP => ne.
  set gap := `|_ - _| in ne; have gap_gt0 : 0 < gap by rewrite lt_def ne normr_ge0.
  have pos : 0 < gap / 4%:R by rewrite divr_gt0 ?ltr0n.
  have [Head [w [v all_near]]] := near _ pos.
  have n1 := all_near X' binX' (P q) o; have n2 := all_near X binX q o.
  rewrite same in n1; set l := pixel_layer _ _ _ _ _ in n1 n2.
  have : gap <= gap / 2%:R.
    rewrite {1}/gap -(subrKA l) (le_trans (ler_norm_add _ _)) //.
    rewrite distrC (le_trans (ler_add n1 n2)) // -mulrDl -mulr2n -mulr_natl.
    by rewrite -[4%N]/(2 * 2)%N natrM invfM mulrACA mulfV ?pnatr_eq0 ?mul1r.
  by rewrite ler_pdivl_mulr ?ltr0n // ger_pmulr // lern1.
split; rewrite -tapX -?tap1 -?tap2; apply: close => //.
- by move=> y x c'; exact: binX.
- by move=> Head w v; rewrite -[q in RHS]P1K; apply: pixel_layer_reflected => // k k'; exact: distance_rev.
- by move=> y x c'; exact: binX.
by move=> Head w v; rewrite -[q in RHS]P2K; apply: pixel_layer_reflected => // k k'; exact: distance_rev.
Qed.
