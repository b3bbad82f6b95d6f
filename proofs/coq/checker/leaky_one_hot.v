(** The rows of a leaky head are softmaxes: of one bias, 0 elsewhere, for every number of keys.

    With a leak 0 < ε < 1, over N keys and an ordered field: the softmax of the weights
    e = 1 + N (1/ε - 1) at the target and 1 at every other key is (1 - ε) [k = target] + ε/N, and the
    softmax of equal weights is 1/N: what [attention.py] writes down as c = 1 - ε and u0 = ε, and as
    u0 = 1 for the uniform head. So with ε fixed and the bias log e set when N is known, one set of
    rows serves every image size; for value maps see finite_sizes. And e is greater than 1: the bias is a
    positive number. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Convattn.foundation Require Import attention certified_heads leaky.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Theorem leaky_one_hot (F : numFieldType) (Key : finType) (leak : F) (target k : Key) :
  0 < leak < 1 ->
  [/\ 1 < leaky_weight leak #|Key|,
      softmax (bias_weights (leaky_weight leak #|Key|) (Some target)) k =
        (1 - leak) * (k == target)%:R + leak / #|Key|%:R,
      shared_row (fun _ : unit => target) (fun=> 1 - leak) leak 0 k =
        (1 - leak) * (k == target)%:R + leak / #|Key|%:R &
      softmax (fun _ : Key => 1) k = shared_row (fun _ : unit => target) (fun=> 0) 1 0 k :> F].
Proof.
case/andP=> leak_gt0 leak_lt1.
have nzN : #|Key|%:R != 0 :> F by rewrite pnatr_eq0 -lt0n; apply/card_gt0P; exists k.
have nz : leak != 0 by rewrite gt_eqF.
have single c : \sum_(d : unit) c * (k == target)%:R = c * (k == target)%:R :> F.
  by rewrite (big_pred1 tt) // => -[].
have total c u : row_total (fun _ : unit => c) u 0 #|Key| = c + u :> F.
  by rewrite /row_total (big_pred1 tt) ?mul0r ?addr0 // => -[].
split.
- by apply: leaky_weight_gt1; rewrite ?leak_gt0.
- rewrite /softmax sum_bias_weights /bias_weights (inj_eq Some_inj) /leaky_weight.
  have -> : #|Key|%:R + (1 + #|Key|%:R * (leak^-1 - 1)) - 1 = #|Key|%:R / leak by field.
  by case: (k == target); rewrite /= ?mulr1 ?mulr0 ?add0r; field; rewrite nzN nz.
- by rewrite /shared_row total subrK divr1 /shared_weight single mul0r addr0.
- by rewrite /softmax sum_one /shared_row total add0r divr1 /shared_weight single mul0r add0r mul0r addr0.
Qed.
