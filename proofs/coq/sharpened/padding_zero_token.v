(** S.padding, repair: one zero token more makes the layer the zero-padded convolution, in the limit.

    Let one key be added to the bare grid, whose value is zero (after any value bias), and whose score
    does not depend on the query. With one head for each offset δ in {-m..m} × {-n..n} and its map M_δ,
    for all maps and tokens: (1) relative biases, of weight e² = exp M at the target, e at the zero
    token and 1 elsewhere, give a layer that is off from the zero-padded convolution Σ_δ X_(q+δ) M_δ by
    at most 1/e times a number that does not depend on e; (2) the quadratic score, relative to its
    maximum, with the weight y^(2 |k - (q + δ)|²) at a key, y = exp(-α/2), and y at the zero token, is
    off from it by at most y times such a number. So both tend to it: the scores of the zero token are
    M/2 and -α/2. The field is any that holds the absolute values of its numbers, such as the
    rationals, the reals and the complex numbers. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import zify.
From Convattn.foundation Require Import attention heads grid bare dominated.
From Convattn.sharpened Require Import boundary_clamped.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** The tokens and one more, [None], that is zero. *)
Definition with_zero_token (F : fieldType) (Token : finType) (In : Type)
    (X : Token -> In -> F) (k : option Token) (i : In) : F :=
  if k is Some k' then X k' i else 0.

(** Relative biases M at the target, M/2 at the zero token; e = exp(M/2). *)
Definition zero_token_bias (F : fieldType) (rows columns m n : nat) (e : F)
    (d : token_offset m n) (q : bare_grid rows columns) (k : option (bare_grid rows columns)) : F :=
  if k is Some _ then if k == bare_target q d then e ^+ 2 else 1 else e.

(** Quadratic scores and -α/2 at the zero token; y = exp(-α/2). *)
Definition zero_token_quadratic (F : fieldType) (rows columns m n : nat) (y : F)
    (d : token_offset m n) (q : bare_grid rows columns) (k : option (bare_grid rows columns)) : F :=
  if k is Some k' then y ^+ (squared_distance q d k').*2 else y.

(** Hard heads, which look at the zero token where there is no target. *)
Lemma hard_zero_token (F : fieldType) (In : finType) (Out : Type) (rows columns m n : nat)
    (M : token_offset m n -> In -> Out -> F) (X : bare_grid rows columns -> In -> F) q o :
  attention_layer (hard_attention F (fun q d => Some (bare_target q d))) M (with_zero_token X) q o =
    bare_convolution M X q o.
Proof. by rewrite hard_heads. Qed.

Lemma squared_distance_eq0 (rows columns m n : nat) (q k : bare_grid rows columns)
    (d : token_offset m n) :
  (squared_distance q d k == 0%N) = (Some k == bare_target q d).
Proof.
rewrite [RHS]eq_sym bare_target_some /squared_distance addn_eq0 !expn_eq0 !andbT.
have same a b : (distance a b == 0%N) = (a == b) by rewrite /distance; lia.
by rewrite !same.
Qed.

Theorem padding_zero_token (F : numFieldType) (In : finType) (Out : Type) (rows columns m n : nat)
    (M : token_offset m n -> In -> Out -> F)
    (X : bare_grid rows columns -> In -> F) (q : bare_grid rows columns) (o : Out) :
  (exists bound, forall e, 1 <= e ->
    `|attention_layer (fun d q => softmax (zero_token_bias e d q)) M (with_zero_token X) q o
      - bare_convolution M X q o| <= e^-1 * bound) /\
  (exists bound, forall y, 0 < y -> y <= 1 ->
    `|attention_layer (fun d q => softmax (zero_token_quadratic y d q)) M (with_zero_token X) q o
      - bare_convolution M X q o| <= y * bound).
Proof.
pose off (d : token_offset m n) i :=
  \sum_k `|with_zero_token X k i - with_zero_token X (bare_target q d) i|.
split; exists (\sum_d \sum_i off d i * `|M d i o|).
  move=> e le1; rewrite -hard_zero_token; have gt0 : 0 < e by exact: lt_le_trans le1.
  apply: layer_dominated => [d [k|]|d|d [k|]] /=; rewrite /zero_token_bias.
  - by case: ifP; rewrite ?exprn_ge0 ?ler01 // ltW.
  - exact: ltW.
  - by case: (bare_target q d) => [k|]; rewrite ?eqxx ?exprn_gt0.
  - move=> /negbTE ->; case: (bare_target q d) => [k'|]; last by rewrite mulVf ?gt_eqF.
    by rewrite eqxx expr2 mulKf ?gt_eqF.
  by case: (bare_target q d) => [k|] // _; rewrite eqxx expr2 mulKf ?gt_eqF.
move=> y gt0 le1; rewrite -hard_zero_token.
have decrease a b : (b <= a)%N -> y ^+ a <= y ^+ b.
  by move=> leba; apply: ler_wiexpn2l => //; exact: ltW.
have at_target (d : token_offset m n) k : bare_target q d = Some k -> squared_distance q d k = 0%N.
  by move=> e; apply/eqP; rewrite squared_distance_eq0 e.
apply: layer_dominated => [d [k|]|d|d [k|]] /=; rewrite /zero_token_quadratic.
- by rewrite exprn_ge0 // ltW.
- exact: ltW.
- by case: (bare_target q d) => [k|]; rewrite ?exprn_gt0.
- rewrite -squared_distance_eq0 -lt0n => pos; case e: (bare_target q d) => [k'|].
    by rewrite (at_target d _ e) mulr1 -[leRHS]expr1; apply: decrease; rewrite double_gt0.
  by rewrite -expr2; apply: decrease; rewrite -[2%N]/(1.*2)%N leq_double.
by case e: (bare_target q d) => [k|] // _; rewrite (at_target d _ e) mulr1.
Qed.
