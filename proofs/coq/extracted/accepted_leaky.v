(** What the second checker accepts as leaky one-hot heads is the convolution, at finite scores.

    The body of a certificate of equality of the family leaky_one_hot: the axes, the leak as a
    quotient of integers, for each head a target or none, and the values. If it is accepted, then the
    leak is between 0 and 1, and for every number of patches, kernel and numbers of channels, over
    every ordered field: heads whose rows are softmaxes of the bias log(1 + N (1/leak - 1)) at their
    target, 0 elsewhere, N the number of keys, and of equal scores if they have none, with the values
    in the body, are the zero-padded convolution at every query; and on an image whose ring of
    tokens is filled in any way they are the convolution of that. The values do not depend on N. *)

From Coq Require Import BinInt.
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ssrZ.
From Convattn.foundation Require Import attention image grid dilated certified_heads framed leaky.
From Convattn.foundation Require Import listed_integers listed_offsets listed_heads.
From Convattn.checker Require Import leaky_one_hot.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Record leaky_body := LeakyBody {
  leaky_layer : layer_body;
  leak_numerator : Z; leak_denominator : Z;
  leaky_targets : seq (option (Z * Z)) }.

(** The rows over the leak's denominator: the uniform head has u0 = 1, another u0 = leak. *)
Definition leaky_row (b : leaky_body) (z : option (Z * Z)) : seq Z :=
  target_row (layer_offsets (leaky_layer b)) z (Z.sub (leak_denominator b) (leak_numerator b))
    (if z is Some _ then leak_numerator b else leak_denominator b).

Definition leaky_accept (b : leaky_body) : bool :=
  [&& Z.ltb Z0 (leak_numerator b), Z.ltb (leak_numerator b) (leak_denominator b),
      all (fun z => if z is Some y then has (same_pair y) (layer_offsets (leaky_layer b)) else true)
        (leaky_targets b) &
      layer_accept (leaky_layer b) [seq leaky_row b z | z <- leaky_targets b] (leak_denominator b)].

(** The exponentials of the scores. *)
Definition leaky_scores (F : fieldType) (b : layer_body) (leak : F) (target : option (Z * Z))
    (n1 n2 : nat) (q : bare_grid n1 n2) (k : listed_keys b n1 n2) : F :=
  if target is Some z then
    if at_shift q k (int_of_Z z.1) (int_of_Z z.2) then leaky_weight leak #|listed_keys b n1 n2| else 1
  else 1.

Theorem accepted_leaky (b : leaky_body) : leaky_accept b ->
  let l := leaky_layer b in
  forall (F : numFieldType) (In Out : finType) (W : nat -> nat -> In -> Out -> F)
    (n1 n2 : nat) (q : bare_grid n1 n2) (t : listed_feature l Out),
  let leak : F := in_field F (leak_numerator b) / in_field F (leak_denominator b) in
  0 < leak < 1 /\
  convolves W q t (fun Y v => attention_layer
    (fun h : 'I_(size (leaky_targets b)) => fun q =>
       softmax (@leaky_scores F l leak (nth None (leaky_targets b) h) n1 n2 q))
    (listed_values (fun=> 1) W) Y q t = v).
Proof.
case/and4P=> gt0 lt1 /allP targets accepted l F In Out W n1 n2 q t leak.
have num_gt0 : 0 < in_field F (leak_numerator b) by rewrite ltr0z -(int_of_Z_lt Z0).
have num_lt : in_field F (leak_numerator b) < in_field F (leak_denominator b).
  by rewrite ltr_int -int_of_Z_lt.
have den_gt0 := lt_trans num_gt0 num_lt.
have leak01 : 0 < leak < 1 by rewrite divr_gt0 //= ltr_pdivr_mulr // mul1r.
split=> //.
have heads : size [seq leaky_row b z | z <- leaky_targets b] = size (leaky_targets b) by rewrite size_map.
suff layer Y : attention_layer
    (fun h : 'I_(size (leaky_targets b)) => fun q =>
       softmax (@leaky_scores F l leak (nth None (leaky_targets b) h) n1 n2 q))
    (listed_values (fun=> 1) W) Y q t = \sum_d feature_map (listed_map W d) (Y (listed_key accepted q d)) t.
  by have [zero filled] := tokens_convolve accepted W q t; split=> X; rewrite layer.
have rowE (h : 'I_(size (leaky_targets b))) := target_rowE accepted F
  (nth_map None [::] (leaky_row b) (ltn_ord h)).
pose rows := [seq leaky_row b z | z <- leaky_targets b]; pose D := leak_denominator b.
have both (h : 'I_(size (leaky_targets b))) : listed_total l rows D F n1 n2 h = 1 /\
    softmax (@leaky_scores F l leak (nth None (leaky_targets b) h) n1 n2 q) =1
    shared_row (listed_key accepted q) (listed_c rows D F h) (listed_u l rows D F 0 h)
      (listed_u l rows D F 1 h).
  have : nth None (leaky_targets b) h \in leaky_targets b by rewrite mem_nth.
  move/targets; have [u0E u1E] := rowE h; rewrite /listed_total /leaky_scores.
  rewrite u1E u0E; move: (listed_c _ _ _ h) => c; case: (nth _ _ _) => [y cE /cE[d e {}cE]|c0 _].
    have cE' d' : c d' = (1 - leak) * (d' == d)%:R.
      by rewrite cE /leak /in_field int_of_ZB rmorphB /= mulrBl divff // gt_eqF.
    have sum_c (f : listed_offset l -> F) : \sum_d' c d' * f d' = (1 - leak) * f d.
      rewrite (bigD1 d) //= cE' eqxx mulr1 big1 ?addr0 // => d' /negbTE ne.
      by rewrite cE' ne mulr0 mul0r.
    have sum1 : \sum_d' c d' = 1 - leak.
      by rewrite -[RHS]mulr1 -(sum_c (fun=> 1)); apply: eq_bigr => d' _; rewrite mulr1.
    split=> [|k]; rewrite /shared_row /shared_weight /row_total sum1 mul0r addr0 -/leak subrK //.
    rewrite addr0 divr1 (sum_c (fun d' => (k == listed_key accepted q d')%:R)).
    have [_ <- _ _] := leaky_one_hot (listed_key accepted q d) k leak01.
    have weightE k' : (if at_shift q k' (int_of_Z y.1) (int_of_Z y.2)
        then leaky_weight leak #|listed_keys l n1 n2| else 1) =
        bias_weights (leaky_weight leak #|listed_keys l n1 n2|) (Some (listed_key accepted q d)) k'.
      by case: e => -> ->; rewrite (at_listed_key accepted) /bias_weights (inj_eq Some_inj).
    by rewrite /softmax weightE; congr (_ / _); apply: eq_bigr.
  rewrite divff ?gt_eqF //; split=> [|k]; last first.
    have [_ _ _ ->] := leaky_one_hot k k leak01.
    by rewrite /shared_row /shared_weight /row_total !big1 // => d _; rewrite ?c0 ?mul0r.
  by rewrite /row_total big1 // mul0r !addr0 add0r.
apply: (listed_layer W t heads) => [h|h|h]; have [totalE rowsE] := both h; rewrite ?totalE ?oner_eq0 //.
Qed.
