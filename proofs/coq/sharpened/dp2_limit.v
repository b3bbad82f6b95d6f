(** S.dp2, the layer: with two positional features the heads of all offsets tend to the convolution.

    In the setting of L21's Theorem 1 (patches of p₁ × p₂, a ring of m × n zero patches, r₁ ≤ p₁ m and r₂ ≤ p₂ n)
    let the offsets in {-m..m} × {-n..n} stand in a list, in any order and among any others, and let the scores
    of an offset's head be those of S.dp2: v·r with the features r = (n, n²) of the number n of the shift in the list
    and v = α (2 n_Δ, -1). With the kernel's maps as value maps the layer tends to the zero-padded convolution as
    α → ∞, at every output of every image, for every kernel, number of patches and exponential that is not
    bounded. One list of features serves all sizes, and the maps depend on neither α nor the size. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import zify.
From Convattn.foundation Require Import attention image heads grid patches exponential sharp_limits.
From Convattn.sharpened Require Import dp2.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** The shift from a query to a key, in coordinates that count the ring, and the shift of an offset. *)
Definition key_shift (rows columns m n : nat) (q : bare_grid rows columns)
    (k : ringed_grid rows columns m n) : int * int :=
  (k.1%:Z - (q.1 + m)%:Z, k.2%:Z - (q.2 + n)%:Z).

Definition shift_of_offset (m n : nat) (d : token_offset m n) : int * int :=
  (d.1%:Z - m%:Z, d.2%:Z - n%:Z).

Lemma key_shiftE (rows columns m n : nat) (q : bare_grid rows columns) (k : ringed_grid rows columns m n)
    (d : token_offset m n) : (key_shift q k == shift_of_offset d) = (k == ringed_key q d).
Proof.
rewrite /key_shift /shift_of_offset -!pair_eqE /pair_eq /= -!val_eqE /=.
by apply/andP/andP => -[/eqP e1 /eqP e2]; split; apply/eqP; lia.
Qed.

Theorem dp2_limit (R : realFieldType) (E : R -> R) (In Out : finType) (p1 p2 m n r1 r2 : nat)
    (offsets : seq (int * int)) (W : nat -> nat -> In -> Out -> R)
    (rows columns : nat) (X : image_type R In) (q : bare_grid rows columns) (t : patch_feature p1 p2 Out) :
  is_exponential E -> unbounded E -> (r1 <= p1 * m)%N -> (r2 <= p2 * n)%N ->
  (forall d : token_offset m n, shift_of_offset d \in offsets) ->
  tends_to
    (fun alpha => attention_layer
      (fun (d : token_offset m n) q => softmax (fun k : ringed_grid rows columns m n =>
        E (enumerated_score alpha offsets (shift_of_offset d) (key_shift q k))))
      (fun d => output_block m n r1 r2 W d.1 d.2) (patch_token X) q t)
    (convolution (p1 * rows) (p2 * columns) r1 r2 W X
      (p1 * q.1 + t.1.1)%N (p2 * q.2 + t.1.2)%N t.2).
Proof.
move=> E_exp E_unbounded le1 le2 listed.
have <- : attention_layer (hard_attention R (@ringed_target rows columns m n))
    (fun d => output_block m n r1 r2 W d.1 d.2) (patch_token X) q t =
  convolution (p1 * rows) (p2 * columns) r1 r2 W X
    (p1 * q.1 + t.1.1)%N (p2 * q.2 + t.1.2)%N t.2.
  by rewrite hard_heads /ringed_target convolution_of_tokens.
apply: layer_tends_to => d k; apply: (softmax_tends_to_one_hot E_exp E_unbounded) => [a k'|a k' ge0 ne].
  exact: exponential_positive.
rewrite -exponential_add //; apply: exponential_monotone => //; rewrite addrC ler_subr_addr.
have -> : key_shift q (ringed_key q d) = shift_of_offset d by apply/eqP; rewrite key_shiftE.
have [gt0|le0] := ltP 0 a; last first.
  have -> : a = 0 by apply/le_anti/andP.
  by rewrite addr0 !enumerated_scoreE !mul0r.
by apply: enumerated_gap => //; rewrite key_shiftE.
Qed.
