(** What the second checker accepts as heads of scalar powers is the convolution, at finite scores.

    The body of a certificate of equality of the family scalar_power: the axes, a base above zero for
    each offset, an exponent for each head, and the values. Bases are integers here. If it is
    accepted, then for every number of patches, kernel and numbers of channels, over every ordered
    field: the heads whose rows are softmaxes of the score exponent · log(base) at the offsets, 0
    elsewhere, and whose values are those in the body times the sum Σ (base^exponent - 1) + N of their
    weights, N the number of keys, are the zero-padded convolution at every query; and on an image
    whose ring of tokens is filled in any way they are the convolution of that. *)

From Coq Require Import BinInt.
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ssrZ.
From Convattn.foundation Require Import attention image grid dilated certified_heads framed.
From Convattn.foundation Require Import listed_integers listed_offsets listed_heads.
From Convattn.checker Require Import equality scalar_power.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Record powers_body := PowersBody {
  powers_layer : layer_body;
  power_bases : seq Z;
  power_exponents : seq nat }.

Definition integer_power (x : Z) (e : nat) : Z := iter e (Z.mul x) (Zpos xH).

Definition powers_row (b : powers_body) (e : nat) : seq Z :=
  [seq Z.sub (integer_power x e) (Zpos xH) | x <- power_bases b] ++ [:: Z0; Zpos xH].

Definition powers_accept (b : powers_body) : bool :=
  [&& size (power_bases b) == size (layer_offsets (powers_layer b)),
      all (fun x => Z.ltb Z0 x) (power_bases b) &
      layer_accept (powers_layer b) [seq powers_row b e | e <- power_exponents b] (Zpos xH)].

Section Weights.

Variables (b : powers_body) (F : fieldType).
Let l := powers_layer b.

Definition offset_base (d : listed_offset l) : F := in_field F (nth Z0 (power_bases b) (offset_number d)).

(** The exponentials of the scores: 1 at a key that no offset reaches. *)
Definition powers_scores (e n1 n2 : nat) (q : bare_grid n1 n2) (k : listed_keys l n1 n2) : F :=
  \prod_d (if at_shift q k (val d.1) (val d.2) then offset_base d ^+ e else 1).

Definition powers_total (e n1 n2 : nat) : F :=
  \sum_d (offset_base d ^+ e - 1) + #|listed_keys l n1 n2|%:R.

End Weights.

Lemma axis_own (low high n : nat) (q : 'I_n) : (low + q < low + n + high)%N.
Proof. by rewrite -addnA ltn_add2l ltn_addr. Qed.

Theorem accepted_powers (b : powers_body) : powers_accept b ->
  let l := powers_layer b in
  forall (F : numFieldType) (In Out : finType) (W : nat -> nat -> In -> Out -> F)
    (n1 n2 : nat) (q : bare_grid n1 n2) (t : listed_feature l Out),
  let exponent (h : 'I_(size (power_exponents b))) := nth 0%N (power_exponents b) h in
  (forall d : listed_offset l, 0 < offset_base F d) /\
  convolves W q t (fun Y v => attention_layer
    (fun h q => softmax (@powers_scores b F (exponent h) n1 n2 q))
    (listed_values (fun h => powers_total b F (exponent h) n1 n2) W) Y q t = v).
Proof.
case/and3P=> /eqP bases_size /allP positive accepted l F In Out W n1 n2 q t exponent.
have base_gt0 (d : listed_offset l) : 0 < @offset_base b F d.
  have := positive (nth Z0 (power_bases b) (offset_number d)); rewrite mem_nth; last first.
    by rewrite bases_size (offset_number_lt accepted).
  by rewrite /offset_base /in_field ltr0z -(int_of_Z_lt Z0) => ->.
split=> //.
have heads : size [seq powers_row b e | e <- power_exponents b] = size (power_exponents b).
  by rewrite size_map.
pose rows := [seq powers_row b e | e <- power_exponents b]; pose H := 'I_(size (power_exponents b)).
have powerE x e : in_field F (integer_power x e) = in_field F x ^+ e.
  by elim: e => //= e IH; rewrite exprS -IH /in_field int_of_ZM intrM.
have rowE (h : H) : nth [::] rows h = powers_row b (exponent h).
  by rewrite (nth_map 0%N).
have u0E (h : H) : listed_u l rows (Zpos xH) F 0 h = 0.
  by rewrite /listed_u /head_entry rowE /powers_row (nth_at_extra _ _ _ _ bases_size) /in_field mul0r.
have u1E (h : H) : listed_u l rows (Zpos xH) F 1 h = 1.
  by rewrite /listed_u /head_entry rowE /powers_row (nth_at_extra _ _ _ _ bases_size) divff ?oner_eq0.
have cE (h : H) d :
    listed_c rows (Zpos xH) F h d = @offset_base b F d ^+ exponent h - 1.
  rewrite /listed_c /head_entry rowE /powers_row (nth_at_offset accepted Z0 _ _ _ bases_size) divr1.
  by rewrite /offset_base -powerE /in_field int_of_ZB rmorphB.
pose own : listed_keys l n1 n2 :=
  (Ordinal (axis_own (axis_low (first_axis l)) (axis_high (first_axis l)) q.1),
   Ordinal (axis_own (axis_low (second_axis l)) (axis_high (second_axis l)) q.2)).
have inj := @listed_key_inj _ _ _ accepted n1 n2 q.
have softmaxE (h : H) :
    finite_row (fun d => @offset_base b F d ^+ exponent h - 1) 0 1 /\
    forall k, softmax (@powers_scores b F (exponent h) n1 n2 q) k =
      shared_row (listed_key accepted q) (fun d => @offset_base b F d ^+ exponent h - 1) 0 1 k.
  apply: (scalar_power inj base_gt0) => [d|k none]; last first.
    by rewrite /powers_scores big1 // => d _; rewrite (at_listed_key accepted) (negbTE (none d)).
  rewrite /powers_scores (bigD1 d) //= (at_listed_key accepted) eqxx big1 ?mulr1 // => d' ne.
  by rewrite (at_listed_key accepted) (inj_eq inj) eq_sym (negbTE ne).
have totalE (h : H) :
    powers_total b F (exponent h) n1 n2 = listed_total l rows (Zpos xH) F n1 n2 h.
  rewrite /listed_total /row_total u0E u1E addr0 mul1r; congr (_ + _).
  by apply: eq_bigr => d _; rewrite cE.
suff layer Y : attention_layer
    (fun h q => softmax (@powers_scores b F (exponent h) n1 n2 q))
    (listed_values (fun h => powers_total b F (exponent h) n1 n2) W) Y q t =
    \sum_d feature_map (listed_map W d) (Y (listed_key accepted q d)) t.
  by have [zero filled] := tokens_convolve accepted W q t; split=> X; rewrite layer.
apply: (listed_layer W t heads) => [h|h|h k]; [|exact: totalE|]; have [fin softE] := softmaxE h.
  have := finite_total_gt0 inj own fin; rewrite -totalE /row_total addr0 mul1r -/(powers_total _ _ _ _ _).
  by move=> gt0; rewrite gt_eqF.
rewrite softE /shared_row /shared_weight /row_total u0E u1E.
by congr ((_ + _) / (_ + _ + _)); apply: eq_bigr => d _; rewrite cE.
Qed.
