(** The heads of a certificate of equality as lists of integers, and the layer that they are.

    Head h has a row of integers, the numbers c of the T offsets and u0 and u1, all over one common
    divisor; for each offset the values of all heads are integers over a divisor of their own. The
    identity Σ_h c_hδ V_hδ' = [δ = δ'], Σ_h u_h V_hδ' = 0 is decided in integers. Then at every query
    the layer is Σ_δ X_(q+δ) F_δ, whatever the tokens are; and that is the convolution, both on an
    image in a ring of zero tokens and on one whose ring is filled in any way. *)

From Coq Require Import BinInt.
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ssrZ zify ring.
From Convattn.foundation Require Import attention image grid patches bare dilated certified_heads framed.
From Convattn.foundation Require Import listed_integers listed_offsets.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** Σ_h v_h · row_h; heads with v_h = 0 are left out. *)
Definition column_sums (width : nat) (rows : seq (seq Z)) (v : seq Z) : seq Z :=
  foldr (fun x s => if Z.eqb x.2 Z0 then s else add_rows [seq Z.mul x.2 e | e <- x.1] s)
    (nseq width Z0) (zip rows v).

Lemma column_sumsE width rows v :
  all (fun r => size r == width) rows -> size v = size rows ->
  size (column_sums width rows v) = width /\
  forall i, int_of_Z (nth Z0 (column_sums width rows v) i) =
    \sum_(h < size rows) int_of_Z (nth Z0 (nth [::] rows h) i) * int_of_Z (nth Z0 v h).
Proof.
elim: rows v => [|r rows IH] [|x v] //=.
  by rewrite size_nseq; split=> // i; rewrite big_ord0 nth_nseq if_same.
case/andP=> /eqP r_size rows_size [v_size].
have {IH} [size_sum sumE] := IH v rows_size v_size; rewrite /column_sums /= -/(column_sums _ _ _).
case: ifP => [/Z.eqb_spec ->|_].
  by split=> // i; rewrite big_ord_recl /= mulr0 add0r sumE.
split=> [|i]; first by rewrite size_map size_zip size_map r_size size_sum minnn.
rewrite nth_add_rows ?size_map ?size_sum // big_ord_recl /= sumE; congr (_ + _).
have [lti|lei] := ltnP i (size r); last by rewrite !nth_default ?size_map // mul0r.
by rewrite (nth_map Z0) // int_of_ZM mulrC.
Qed.

(** For each offset the numerators of the heads, and their divisor. *)
Definition value_column := (seq Z * Z)%type.

Definition column_accept (width : nat) (rows : seq (seq Z)) (divisor : Z) (x : nat * value_column) : bool :=
  [&& ~~ Z.eqb x.2.2 Z0, size x.2.1 == size rows &
      all2 Z.eqb (column_sums width rows x.2.1)
        [seq if i == x.1 then Z.mul divisor x.2.2 else Z0 | i <- iota 0 width]].

Definition identity_accept (offsets : nat) (rows : seq (seq Z)) (divisor : Z)
    (columns : seq value_column) : bool :=
  [&& ~~ Z.eqb divisor Z0, size columns == offsets, all (fun r => size r == offsets.+2) rows &
      all (column_accept offsets.+2 rows divisor) (zip (iota 0 offsets) columns)].

Definition in_field (F : ringType) (z : Z) : F := (int_of_Z z)%:~R.

Definition head_entry (F : fieldType) (rows : seq (seq Z)) (divisor : Z) (h i : nat) : F :=
  in_field F (nth Z0 (nth [::] rows h) i) / in_field F divisor.

Definition value_entry (F : fieldType) (columns : seq value_column) (h j : nat) : F :=
  in_field F (nth Z0 (nth ([::], Z0) columns j).1 h) / in_field F (nth ([::], Z0) columns j).2.

Lemma in_field_eq0 (F : numFieldType) z : (in_field F z == 0) = Z.eqb z Z0.
Proof. by rewrite /in_field intr_eq0 int_of_Z_eq0. Qed.

Lemma identityE (F : numFieldType) heads offsets rows divisor columns i j : size rows = heads ->
  identity_accept offsets rows divisor columns -> (i < offsets.+2)%N -> (j < offsets)%N ->
  \sum_(h < heads) head_entry F rows divisor h i * value_entry F columns h j = (i == j)%:R.
Proof.
move=> <- /and4P[nz /eqP columns_size rows_size /allP fits] lti ltj.
have in_zip : (j, nth ([::], Z0) columns j) \in zip (iota 0 offsets) columns.
  rewrite (_ : (j, _) = nth (0%N, ([::], Z0)) (zip (iota 0 offsets) columns) j).
    by rewrite mem_nth // size_zip size_iota columns_size minnn.
  by rewrite nth_zip ?size_iota ?columns_size // nth_iota // add0n.
case/and3P: (fits _ in_zip) => nz' /eqP v_size /(same_listed (fun x y => Z.eqb_spec x y)) sums.
have [_ /(_ i)] := column_sumsE rows_size v_size.
rewrite sums (nth_map 0%N) ?size_iota // nth_iota // add0n [_.1]/= => sumE.
set column := nth _ columns j in nz' sumE *.
have nzF : in_field F divisor * in_field F column.2 != 0 by rewrite mulf_neq0 ?in_field_eq0.
apply: (mulIf nzF); rewrite big_distrl /=.
transitivity (\sum_(h < size rows) in_field F (nth Z0 (nth [::] rows h) i) * in_field F (nth Z0 column.1 h)).
  apply: eq_bigr => h _; rewrite /head_entry /value_entry -/column.
  by move: nz nz'; rewrite -!(in_field_eq0 F) => nz nz'; field; rewrite nz nz'.
transitivity (in_field F (if i == j then Z.mul divisor column.2 else Z0)).
  by rewrite /in_field sumE rmorph_sum; apply: eq_bigr => h _; rewrite /= intrM.
by case: ifP => _; rewrite ?mul0r // mul1r /in_field int_of_ZM intrM.
Qed.

(** The layer. *)
Record layer_body := LayerBody {
  first_axis : axis_body; second_axis : axis_body;
  layer_offsets : seq (Z * Z);
  layer_columns : seq value_column }.

Definition same_pair (x y : Z * Z) : bool := Z.eqb x.1 y.1 && Z.eqb x.2 y.2.

(** All that is asked of a layer, whatever the family of its rows. *)
Definition layer_accept (b : layer_body) (rows : seq (seq Z)) (divisor : Z) : bool :=
  [&& axis_accept (first_axis b), axis_accept (second_axis b),
      all2 same_pair (layer_offsets b)
        [seq (x, y) | x <- axis_shifts (first_axis b), y <- axis_shifts (second_axis b)] &
      identity_accept (size (layer_offsets b)) rows divisor (layer_columns b)].

(** The row of a head with a value at its target, if it has one, and u0 = u. *)
Definition target_row (offsets : seq (Z * Z)) (target : option (Z * Z)) (v u : Z) : seq Z :=
  [seq if target is Some z then if same_pair z x then v else Z0 else Z0 | x <- offsets] ++ [:: u; Z0].

Section Layer.

Variables (b : layer_body).
Let a1 := first_axis b.
Let a2 := second_axis b.

Definition listed_offset : finType :=
  grid_offset (axis_patch a1) (axis_patch a2) (axis_kernel a1) (axis_kernel a2)
    (axis_dilation a1) (axis_dilation a2).

Definition listed_keys (n1 n2 : nat) : finType :=
  framed_grid (axis_low a1) n1 (axis_high a1) (axis_low a2) n2 (axis_high a2).

Definition listed_feature (Channel : finType) : finType :=
  patch_feature (axis_patch a1) (axis_patch a2) Channel.

(** The map of an offset. *)
Definition listed_map (F : fieldType) (In Out : finType) (W : nat -> nat -> In -> Out -> F)
    (d : listed_offset) : listed_feature In -> listed_feature Out -> F :=
  offset_map (axis_kernel a1) (axis_kernel a2) (axis_dilation a1) (axis_dilation a2) W
    (val d.1) (val d.2).

(** Where an offset stands in the list. *)
Definition offset_integers : seq (int * int) :=
  [seq (int_of_Z z.1, int_of_Z z.2) | z <- layer_offsets b].

Definition offset_number (d : listed_offset) : nat := index (val d.1, val d.2) offset_integers.

(** The value maps: for each head a sum of the maps of the offsets. *)
Definition listed_values (F : fieldType) (heads : nat) (In Out : finType)
    (scale : 'I_heads -> F) (W : nat -> nat -> In -> Out -> F) :
    'I_heads -> listed_feature In -> listed_feature Out -> F :=
  offset_values (fun (h : 'I_heads) d => scale h * value_entry F (layer_columns b) h (offset_number d))
    (listed_map W).

(** The output at pixel t of query q is the convolution: on an image in a ring of zero tokens, and on
    one of tokens, the ring among them, that hold anything. [holds Y v]: on tokens Y the output is v. *)
Definition convolves (F : fieldType) (In Out : finType) (W : nat -> nat -> In -> Out -> F)
    (n1 n2 : nat) (q : bare_grid n1 n2) (t : listed_feature Out)
    (holds : (listed_keys n1 n2 -> listed_feature In -> F) -> F -> Prop) : Prop :=
  let convolution n1 n2 q1 q2 (X : image_type F In) :=
    dilated_convolution (axis_patch a1 * n1) (axis_patch a2 * n2) (axis_kernel a1) (axis_kernel a2)
      (axis_dilation a1) (axis_dilation a2) W X
      (axis_patch a1 * q1 + t.1.1)%N (axis_patch a2 * q2 + t.1.2)%N t.2 in
  (forall X, holds (framed_token X) (convolution n1 n2 q.1 q.2 X)) /\
  (forall X, holds
    (@bare_token F In (axis_low a1 + n1 + axis_high a1) (axis_low a2 + n2 + axis_high a2) _ _ X)
    (convolution (axis_low a1 + n1 + axis_high a1)%N (axis_low a2 + n2 + axis_high a2)%N
      (axis_low a1 + q.1)%N (axis_low a2 + q.2)%N X)).

Variables (rows : seq (seq Z)) (divisor : Z).
Hypothesis accepted : layer_accept b rows divisor.

Lemma first_accepted : axis_accept a1. Proof. by case/and4P: accepted. Qed.
Lemma second_accepted : axis_accept a2. Proof. by case/and4P: accepted. Qed.

Lemma offset_integersE :
  offset_integers = [seq (x, y) | x <- axis_integers a1, y <- axis_integers a2].
Proof.
case/and4P: accepted => _ _ /same_listed same _; rewrite /offset_integers same; last first.
  by move=> [x1 x2] [y1 y2] /andP[/Z.eqb_spec /= -> /Z.eqb_spec /= ->].
by rewrite map_allpairs allpairs_mapl allpairs_mapr.
Qed.

Lemma offset_listed (d : listed_offset) : (val d.1, val d.2) \in offset_integers.
Proof.
rewrite offset_integersE; apply/allpairsP; exists (val d.1, val d.2) => /=.
by rewrite !(axis_integersE first_accepted, axis_integersE second_accepted) !ssvalP.
Qed.

Lemma offset_number_lt d : (offset_number d < size (layer_offsets b))%N.
Proof. by have := offset_listed d; rewrite -index_mem size_map. Qed.

Lemma offset_number_eq d d' : (offset_number d == offset_number d') = (d == d').
Proof.
apply/eqP/eqP => [same|-> //]; have := nth_index (0, 0) (offset_listed d).
rewrite -/(offset_number d) same nth_index ?offset_listed // => -[e1 e2].
by case: d d' {same} e1 e2 => [x y] [x' y'] /= /val_inj -> /val_inj ->.
Qed.

Variables (heads : nat) (F : numFieldType) (In Out : finType) (W : nat -> nat -> In -> Out -> F).
Variables (n1 n2 : nat).
Variables (q : bare_grid n1 n2) (t : listed_feature Out).
Hypothesis rows_heads : size rows = heads.

Definition listed_key (d : listed_offset) : listed_keys n1 n2 :=
  framed_key (axis_ring first_accepted) (axis_ring second_accepted) q d.

Lemma listed_key_inj : injective listed_key.
Proof. exact: framed_key_inj. Qed.

Lemma at_listed_key k d : at_shift q k (val d.1) (val d.2) = (k == listed_key d).
Proof. exact: at_shiftE. Qed.

Definition listed_c (h : 'I_heads) (d : listed_offset) : F :=
  head_entry F rows divisor h (offset_number d).

Definition listed_u (extra : nat) (h : 'I_heads) : F :=
  head_entry F rows divisor h (size (layer_offsets b) + extra).

Definition listed_total (h : 'I_heads) : F :=
  row_total (listed_c h) (listed_u 0 h) (listed_u 1 h) #|listed_keys n1 n2|.

(** The layer of the rows and values in the lists, on any tokens. *)
Lemma listed_layer (A : 'I_heads -> bare_grid n1 n2 -> listed_keys n1 n2 -> F)
    (scale : 'I_heads -> F) Y :
  (forall h, listed_total h != 0) -> (forall h, scale h = listed_total h) ->
  (forall h, A h q =1 shared_row listed_key (listed_c h) (listed_u 0 h) (listed_u 1 h)) ->
  attention_layer A (listed_values scale W) Y q t = \sum_d feature_map (listed_map W d) (Y (listed_key d)) t.
Proof.
move=> nz scaleE AE; apply: layer_of_identity => k d.
have [_ _ _ identity] := and4P accepted.
have lt_extra extra : (extra < 2)%N ->
    (size (layer_offsets b) + extra < (size (layer_offsets b)).+2)%N by move=> lt; lia.
have lt_d d' := offset_number_lt d'.
pose V (h : 'I_heads) d := value_entry F (layer_columns b) h (offset_number d).
rewrite -(identity_at_keys listed_key (V := V) nz).
- by apply: eq_bigr => h _; rewrite AE scaleE.
- move=> d1 d2; rewrite -offset_number_eq -(identityE F rows_heads identity _ (lt_d d2)) //.
  exact: leq_trans (lt_d d1) (leq_trans (leqnSn _) (leqnSn _)).
- by move=> d1; rewrite (identityE F rows_heads identity (lt_extra 0%N isT) (lt_d d1)) gtn_eqF // addn0.
- move=> d1; rewrite (identityE F rows_heads identity (lt_extra 1%N isT) (lt_d d1)) gtn_eqF // addn1 ltnS.
  exact: ltnW.
Qed.

(** The entries of a row that is listed along the offsets, with u0 and u1 behind it. *)
Lemma nth_at_extra T (s : seq T) f (u0 u1 : Z) e : size s = size (layer_offsets b) ->
  nth Z0 ([seq f x | x <- s] ++ [:: u0; u1]) (size (layer_offsets b) + e) = nth Z0 [:: u0; u1] e.
Proof. by move=> <-; rewrite nth_cat size_map ltnNge leq_addr /= addKn. Qed.

Lemma nth_at_offset T (x0 : T) s f (u : seq Z) d : size s = size (layer_offsets b) ->
  nth Z0 ([seq f x | x <- s] ++ u) (offset_number d) = f (nth x0 s (offset_number d)).
Proof.
move=> s_size; have lt : (offset_number d < size s)%N by rewrite s_size offset_number_lt.
by rewrite nth_cat size_map lt (nth_map x0).
Qed.

(** A row with one value at a target, or at none. *)
Lemma target_rowE (h : 'I_heads) (z : option (Z * Z)) (v u : Z) :
  nth [::] rows h = target_row (layer_offsets b) z v u ->
  [/\ listed_u 0 h = in_field F u / in_field F divisor, listed_u 1 h = 0 &
    if z is Some y then has (same_pair y) (layer_offsets b) ->
      exists2 d, (int_of_Z y.1, int_of_Z y.2) = (val d.1, val d.2) &
        forall d', listed_c h d' = in_field F v / in_field F divisor * (d' == d)%:R
    else forall d, listed_c h d = 0].
Proof.
rewrite /listed_u /listed_c /head_entry => ->; rewrite /target_row.
have listed d : let x := nth (Z0, Z0) (layer_offsets b) (offset_number d) in
    (int_of_Z x.1, int_of_Z x.2) = (val d.1, val d.2).
  rewrite /= -[RHS](nth_index (0, 0) (offset_listed d)) -/(offset_number d).
  by rewrite (nth_map (Z0, Z0)) ?offset_number_lt.
rewrite !nth_at_extra //; split=> //; first by rewrite /in_field mul0r.
case: z => [y|d]; last by rewrite (nth_at_offset (Z0, Z0)) // /in_field mul0r.
move=> /hasP[x in_x /andP[/Z.eqb_spec e1 /Z.eqb_spec e2]].
have : (int_of_Z y.1, int_of_Z y.2) \in offset_integers.
  by apply/mapP; exists x; rewrite // e1 e2.
rewrite offset_integersE => /allpairsP[[z1 z2] /= [in1 in2 [ez1 ez2]]].
rewrite (axis_integersE first_accepted) in in1; rewrite (axis_integersE second_accepted) in in2.
exists (SeqSub in1, SeqSub in2) => [|d'] /=; first by rewrite ez1 ez2.
rewrite (nth_at_offset (Z0, Z0)) // /same_pair !int_of_Z_eq.
have [-> ->] := listed d'; rewrite ez1 ez2 ![z1 == _]eq_sym ![z2 == _]eq_sym.
rewrite (_ : (d' == _) = (val d'.1 == z1) && (val d'.2 == z2)); last first.
  by case: d' => d1 d2; rewrite -pair_eqE.
by case: (_ && _); rewrite ?mulr1 // /in_field !mul0r mulr0.
Qed.

(** The tokens at the offsets make up the convolution. *)
Lemma tokens_convolve : convolves W q t
  (fun Y v => \sum_d feature_map (listed_map W d) (Y (listed_key d)) t = v).
Proof.
split=> X; first exact: convolution_of_framed.
rewrite -(convolution_by_tokens _ _ _
  (@offsets_hold_reads F (axis_patch a1) (axis_kernel a1) (axis_dilation a1) (axis_low a1 + q.1))
  (@offsets_hold_reads F (axis_patch a2) (axis_kernel a2) (axis_dilation a2) (axis_low a2 + q.2))) //.
apply: eq_bigr => d _; apply: eq_feature_map => // -[[s1 s2] c].
set k := listed_key d.
have e1 : (k.1 : nat)%:Z = (axis_low a1 + q.1)%N%:Z + val d.1.
  exact: (axis_key (axis_ring first_accepted) (axis_ring second_accepted) _ _ (axis_ring first_accepted)).
have e2 : (k.2 : nat)%:Z = (axis_low a2 + q.2)%N%:Z + val d.2.
  exact: (axis_key (axis_ring first_accepted) (axis_ring second_accepted) _ _ (axis_ring second_accepted)).
move: k e1 e2 => k <- <-; rewrite /token_at /bare_token /zero_outside /= !ltz_nat.
have inside (n p : nat) (z : 'I_n) (s : 'I_p) : (p * z + s < p * n)%N.
  case: z s => z ltz [s lts] /=; apply: (leq_trans (n := p * z + p)); first by rewrite ltn_add2l.
  by rewrite -mulnSr leq_mul2l ltz orbT.
by rewrite !inside.
Qed.

End Layer.
