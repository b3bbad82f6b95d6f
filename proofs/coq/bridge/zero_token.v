(** S.padding's zero token: the rows of the heads that see it, in a form that computes. *)

From Coq Require Import BinInt.
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ssrZ zify.
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

(** For e = 1/b: the weights of the quadratic heads times b^top, which are whole numbers. *)
Definition top (rows columns m n : nat) : nat := ((rows + m) ^ 2 + (columns + n) ^ 2).*2.

Definition squared_weight (rows columns m n : nat) (b : Z) (y x i j k l : nat) : Z :=
  b ^+ (top rows columns m n - (axis_square m y i k + axis_square n x j l).*2).

Definition squared_total (rows columns m n : nat) (b : Z) (y x i j : nat) : Z :=
  b ^+ (top rows columns m n).-1
    + listed_sum (fun kl => squared_weight rows columns m n b y x i j kl.1 kl.2) (places rows columns).

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

End Rows.

Lemma axis_square_top (side r : nat) (y k : 'I_side) (i : 'I_r.*2.+1) :
  (axis_square r y i k <= (side + r) ^ 2)%N.
Proof.
rewrite /axis_square leq_exp2r // /distance.
by have := ltn_ord y; have := ltn_ord k; have := ltn_ord i; lia.
Qed.

Lemma scaled_power (F : fieldType) (x : F) (a t : nat) :
  x != 0 -> (a <= t)%N -> x^-1 ^+ a * x ^+ t = x ^+ (t - a).
Proof. by move=> nz le; rewrite exprVn mulrC exprB ?unitfE. Qed.

Lemma squared_row_value (F : numFieldType) (rows columns m n : nat) (b : Z)
    (d : token_offset m n) (q : bare_grid rows columns) k : b != 0 ->
  softmax (zero_token_quadratic (number_in F b)^-1 d q) k =
    number_in F (if k is Some k then squared_weight rows columns m n b q.1 q.2 d.1 d.2 k.1 k.2
                else b ^+ (top rows columns m n).-1)
      / number_in F (squared_total rows columns m n b q.1 q.2 d.1 d.2).
Proof.
move=> nzb; set t := top rows columns m n.
have nz : number_in F b != 0 by rewrite -(rmorph0 (number_rmorphism F)) /= (inj_eq (@number_inj F)).
have t_gt0 : (0 < t)%N.
  by rewrite /t /top; case: q => y _; have := ltn_ord y; rewrite -!mulnn; nia.
have scaled k' : zero_token_quadratic (number_in F b)^-1 d q k' * number_in F b ^+ t =
    number_in F (if k' is Some k' then squared_weight rows columns m n b q.1 q.2 d.1 d.2 k'.1 k'.2
                else b ^+ t.-1).
  case: k' => [k'|]; rewrite rmorphX /=; last by rewrite -[_^-1]expr1 scaled_power // subn1.
  by rewrite scaled_power // leq_double leq_add // axis_square_top.
rewrite /softmax -scaled -[LHS]mulr1 -(divff (expf_neq0 t nz)) mulrACA -invfM; congr (_ / _).
rewrite big_distrl /=; under eq_bigr do rewrite scaled.
rewrite sum_option /squared_total rmorphD /=; congr (_ + _).
rewrite (listed_sum_places
  (fun k l => number_in F (squared_weight rows columns m n b q.1 q.2 d.1 d.2 k l))).
by rewrite number_sum.
Qed.
