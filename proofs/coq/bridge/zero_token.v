(** S.padding's zero token: the rows of the heads that see it, in a form that computes. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import zify.
From Convattn.foundation Require Import attention image heads grid.
From Convattn.sharpened Require Import boundary_clamped padding_zero_token.
From Convattn.bridge Require Import values sums scores.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

(** A key's weight; the zero token's is e. *)
Definition biased_weight (rows columns m n : nat) (e : rat) (y x i j k l : nat) : rat :=
  if (place rows m y i == k) && (place columns n x j == l) then e ^+ 2 else 1.

Definition biased_row (rows columns m n : nat) (e : rat) (y x i j : nat) (at_key : rat) : rat :=
  at_key / (e + listed_sum (fun kl => biased_weight rows columns m n e y x i j kl.1 kl.2)
              (places rows columns)).

Definition squared_weight (m n : nat) (e : rat) (y x i j k l : nat) : rat :=
  e ^+ (axis_square m y i k + axis_square n x j l).*2.

Definition squared_row (rows columns m n : nat) (e : rat) (y x i j : nat) (at_key : rat) : rat :=
  at_key / (e + listed_sum (fun kl => squared_weight m n e y x i j kl.1 kl.2) (places rows columns)).

Section Rows.

Variables (rows columns m n : nat) (e : rat) (d : token_offset m n) (q : bare_grid rows columns).

Lemma axis_target_is (side r y i : nat) (k : 'I_side) :
  (axis_target side r y i == Some k) = (place side r y i == k).
Proof.
rewrite -axis_target_place; case: axis_target => [k'|] //=.
by rewrite (gtn_eqF (ltn_ord k)).
Qed.

Lemma biased_weight_value k :
  zero_token_bias e d q (Some k) = biased_weight rows columns m n e q.1 q.2 d.1 d.2 k.1 k.2.
Proof.
rewrite /zero_token_bias /biased_weight -!axis_target_is /bare_target; case: k => k l /=.
case: axis_target => [k'|] //=; case: axis_target => [l'|] /=; last by rewrite andbF.
by rewrite !(inj_eq Some_inj) -pair_eqE /= /pair_eq /= eq_sym [l == _]eq_sym.
Qed.

Lemma biased_row_value k :
  softmax (zero_token_bias e d q) k =
    biased_row rows columns m n e q.1 q.2 d.1 d.2
      (if k is Some k then biased_weight rows columns m n e q.1 q.2 d.1 d.2 k.1 k.2 else e).
Proof.
rewrite /softmax /biased_row sum_option; under eq_bigr do rewrite biased_weight_value.
rewrite (listed_sum_places (biased_weight rows columns m n e q.1 q.2 d.1 d.2)).
by case: k => [k|] //; rewrite biased_weight_value.
Qed.

Lemma squared_row_value k :
  softmax (zero_token_quadratic e d q) k =
    squared_row rows columns m n e q.1 q.2 d.1 d.2
      (if k is Some k then squared_weight m n e q.1 q.2 d.1 d.2 k.1 k.2 else e).
Proof.
rewrite /softmax /squared_row sum_option.
by rewrite -(listed_sum_places (squared_weight m n e q.1 q.2 d.1 d.2)); case: k.
Qed.

End Rows.
