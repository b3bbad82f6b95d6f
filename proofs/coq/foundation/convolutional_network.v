(** Convolutional networks as networks on tokens: hard attention by position, and a class token of zeros.

    Codes of a token at (row, column): 1 on the grid, 1 on the class token, row, column, row² + column².
    The position form of an offset is -2 |k - (q + offset)|² at tokens q, k of the grid and -1 at the class
    token, so that this is looked at where the offset leads out of the grid. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring zify.
From Convattn.foundation Require Import attention heads scores grid bare.
From Convattn.foundation Require Import token_network compiled_transformer.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** A zero-padded convolution and its bias, and which channels ReLU follows. *)
Record convolution_layer (R Channel : Type) (m n : nat) : Type := ConvolutionLayer {
  layer_kernel : token_offset m n -> Channel -> Channel -> R;
  layer_bias : Channel -> R;
  layer_rectifies : Channel -> bool
}.

(** First a linear map of the pixels of each place, last one of the mean over the grid. *)
Record convolutional_network (R Pixel Channel Label : Type) (m n : nat) : Type := ConvolutionalNetwork {
  stem : Pixel -> Channel -> R;
  convolution_layers : seq (convolution_layer R Channel m n);
  classifier : Channel -> Label -> R;
  classifier_bias : Label -> R
}.

(** A form in five codes, given by lists. *)
Lemma five_codes (R : fieldType) (W : seq (seq R)) (x y : seq R) :
  bilinear (fun i j : 'I_5 => (nth [::] W i)`_j) (fun i => x`_i) (fun j => y`_j) =
    let term i j := x`_i * (nth [::] W i)`_j * y`_j in
    let row i := term i 0%N + term i 1%N + term i 2%N + term i 3%N + term i 4%N in
    row 0%N + row 1%N + row 2%N + row 3%N + row 4%N.
Proof.
have sum_five (g : nat -> R) : \sum_(i < 5) g i = g 0%N + g 1%N + g 2%N + g 3%N + g 4%N.
  by rewrite !big_ord_recr big_ord0 /= add0r.
pose term i j := x`_i * (nth [::] W i)`_j * y`_j.
rewrite /bilinear (sum_five (fun i => \sum_(j < 5) term i j)).
by rewrite !(sum_five (term _)).
Qed.

Section Networks.

Variables (R : realFieldType) (rows columns m n : nat) (Pixel Channel : finType) (Label : Type).

Let Place := bare_grid rows columns.
Let Token := [finType of option Place].
Let Code := [finType of 'I_5].
Let Offset := token_offset m n.
Let Head := [finType of option Offset].
Implicit Types (L : convolution_layer R Channel m n) (x : Place -> Channel -> R).
Implicit Type C : convolutional_network R Pixel Channel Label m n.

Definition apply_layer L x (q : Place) (o : Channel) : R :=
  let z := bare_convolution (layer_kernel L) x q o + layer_bias L o in
  if layer_rectifies L o then rectified z else z.

Definition final_map C (X : Place -> Pixel -> R) : Place -> Channel -> R :=
  foldl (fun x L => apply_layer L x) (fun k => feature_map (stem C) (X k)) (convolution_layers C).

(** The logits: a linear map of the mean over all places. *)
Definition convolutional_logit C (X : Place -> Pixel -> R) (l : Label) : R :=
  feature_map (classifier C) (mean_token (final_map C X)) l + classifier_bias C l.

Definition grid_codes (t : Token) : seq R :=
  if t is Some k then [:: 1; 0; k.1%:R; k.2%:R; k.1%:R ^+ 2 + k.2%:R ^+ 2] else [:: 0; 1; 0; 0; 0].

Definition grid_code (t : Token) (c : Code) : R := (grid_codes t)`_c.

(** The head of an offset; the last one, [None], is for the mean. *)
Definition grid_looks (h : Head) (q : Token) : {set Token} :=
  match h, q with
  | Some d, Some k => [set bare_target k d]
  | None, None => [set t | t != None]
  | _, None | _, Some _ => [set None]
  end.

Definition grid_rows (h : Head) : seq (seq R) :=
  if h is Some d then
    let dy := d.1%:R - m%:R in let dx := d.2%:R - n%:R in
    [:: [:: - 2%:R * (dy ^+ 2 + dx ^+ 2); - 1; 4%:R * dy; 4%:R * dx; - 2%:R];
        [:: 0; 1; 0; 0; 0];
        [:: - 4%:R * dy; 0; 4%:R; 0; 0];
        [:: - 4%:R * dx; 0; 0; 4%:R; 0];
        [:: - 2%:R; 0; 0; 0; 0]]
  else [:: [:: 0; 1; 0; 0; 0]; [:: 0; - 1; 0; 0; 0]].

Definition grid_form (h : Head) (own key : Code) : R := (nth [::] (grid_rows h) own)`_key.

Definition convolution_block L : network_block R Token Code Channel Head Channel :=
  {| looked_at := grid_looks;
     code_form := grid_form;
     head_map := fun h c o => if h is Some d then
       match c with
       | inr i => layer_kernel L d i o - ((d == centre_offset m n) && (i == o))%:R
       | inl code => ((d == centre_offset m n) && (code == ord0))%:R * layer_bias L o
       end else 0;
     unit_map := fun c u => if c is inr i then - (layer_rectifies L u && (i == u))%:R else 0;
     unit_return := fun u o => (u == o)%:R |}.

Definition mean_block : network_block R Token Code Channel Head Channel :=
  {| looked_at := grid_looks;
     code_form := grid_form;
     head_map := fun h c o => if h is None then (c == inr o)%:R else 0;
     unit_map := fun _ _ => 0;
     unit_return := fun _ _ => 0 |}.

Definition network_of_convolutions C : token_network R Place Pixel Code Channel Head Channel Label :=
  {| position_code := grid_code;
     pixel_map := stem C;
     network_blocks := rcons (map convolution_block (convolution_layers C)) mean_block;
     readout := fun c l => match c with
       | inr i => classifier C i l
       | inl code => (code == inord 1)%:R * classifier_bias C l end |}.

(** The position forms. *)
Lemma grid_form_value h q k : bilinear (grid_form h) (grid_code q) (grid_code k) =
  match h, q, k with
  | Some d, Some q, Some k => - 2%:R * ((k.1%:R - (q.1%:R + (d.1%:R - m%:R))) ^+ 2
      + (k.2%:R - (q.2%:R + (d.2%:R - n%:R))) ^+ 2)
  | Some _, Some _, None | None, None, None => - 1
  | Some _, None, None | None, Some _, None => 1
  | _, _, _ => 0
  end.
Proof.
apply: (etrans (five_codes (grid_rows h) (grid_codes q) (grid_codes k))).
by case: h => [d|]; case: q => [q|]; case: k => [k|] /=; ring.
Qed.

(** Whole numbers that differ do so by at least one, in the square. *)
Lemma square_gap (a b : nat) : a != b -> 1 <= (a%:R - b%:R) ^+ 2 :> R.
Proof.
move=> neq; have -> : (a%:R - b%:R) ^+ 2 = ((a%:Z - b%:Z) ^+ 2)%:~R :> R.
  by rewrite rmorphX rmorphB /= !pmulrn.
by rewrite -[1]/(1%:~R) ler_int -gtz0_ge1 lt_neqAle eq_sym sqrf_eq0 subr_eq0 eqz_nat neq sqr_ge0.
Qed.

Lemma offset_form (d : Offset) (q k : Place) :
  bilinear (grid_form (Some d)) (grid_code (Some q)) (grid_code (Some k)) =
    - 2%:R * (((k.1 + m)%N%:R - (q.1 + d.1)%N%:R) ^+ 2 + ((k.2 + n)%N%:R - (q.2 + d.2)%N%:R) ^+ 2).
Proof. by rewrite grid_form_value !natrD; ring. Qed.

Lemma offset_form_target (d : Offset) (q k : Place) : bare_target q d = Some k ->
  bilinear (grid_form (Some d)) (grid_code (Some q)) (grid_code (Some k)) = 0.
Proof.
move/eqP; rewrite bare_target_some offset_form => /andP[/eqP -> /eqP ->].
by rewrite !subrr expr0n addr0 mulr0.
Qed.

Lemma offset_form_other (d : Offset) (q k : Place) : bare_target q d != Some k ->
  bilinear (grid_form (Some d)) (grid_code (Some q)) (grid_code (Some k)) <= - 2%:R.
Proof.
rewrite bare_target_some negb_and offset_form mulNr ler_opp2 => neq.
rewrite -[X in X <= _]mulr1 ler_wpmul2l ?ler0n //.
case/orP: neq => /square_gap le; first by rewrite ler_paddr ?sqr_ge0.
by rewrite ler_paddl ?sqr_ge0.
Qed.

(** Each head looks where its position form shows. *)
Lemma grid_shows (b : network_block R Token Code Channel Head Channel) : (0 < #|Place|)%N ->
  looked_at b = grid_looks -> code_form b = grid_form -> shows_targets grid_code b.
Proof.
move=> /card_gt0P[k0 _] looks forms h q; rewrite looks forms; split.
- case: h q => [d|] [q|]; try by exists None; rewrite inE.
    by exists (bare_target q d); rewrite inE.
  by exists (Some k0); rewrite inE.
- move=> t k; case: h q => [d|] [q|] /=; rewrite !inE.
  + move=> /eqP -> ; rewrite eq_sym; case: k => [k|] neq.
      case e: (bare_target q d) neq => [k'|] neq.
        by rewrite (offset_form_target e) -ler_subr_addr sub0r (le_trans (offset_form_other _)) ?e ?ler_opp2 ?ler1n.
      have := offset_form_other (d := d) (q := q) (k := k); rewrite e => /(_ neq) le.
      rewrite [leRHS]grid_form_value -ler_subr_addr; apply: le_trans le _.
      by rewrite -opprD ler_opp2 -(natrD _ 1 1).
    case e: (bare_target q d) neq => [k'|] // _.
    by rewrite (offset_form_target e) grid_form_value addNr.
  + by move=> /eqP -> ; case: k => [k|] // _; rewrite !grid_form_value add0r.
  + by move=> /eqP -> ; case: k => [k|] // _; rewrite !grid_form_value add0r.
  by case: t k => [t|] [k|] // _ _; rewrite !grid_form_value addNr.
move=> t t'; case: h q => [d|] [q|] /=; rewrite !inE; try by move=> /eqP -> /eqP ->; left.
by case: t => [t|] // _ _; right; rewrite grid_form_value.
Qed.

(** Means of one token, and of all places. *)
Lemma mean_of_one (In : Type) (X : Token -> In -> R) t i : attend (mean_row R [set t]) X i = X t i.
Proof.
rewrite /attend /mean_row (bigD1 t) //= in_set1 eqxx cards1 divr1 mul1r big1 ?addr0 // => k /negbTE nk.
by rewrite in_set1 nk mul0r mul0r.
Qed.

Lemma mean_of_places (In : Type) (X : Token -> In -> R) i :
  attend (mean_row R [set t | t != None]) X i = mean_token (fun k => X (Some k)) i.
Proof.
rewrite /attend /mean_row /mean_token sum_option inE eqxx !mul0r add0r big_distrl.
have -> : #|[set t : Token | t != None]| = #|Place|.
  have -> : [set t : Token | t != None] = [set~ None] by apply/setP => t; rewrite !inE.
  by rewrite cardsC1 card_option.
by apply: eq_bigr => k _; rewrite inE mulrC div1r.
Qed.

Lemma sum_at (T : finType) (g : T -> R) t : \sum_i g i * (i == t)%:R = g t.
Proof. by rewrite (bigD1 t) //= eqxx mulr1 big1 ?addr0 // => i /negbTE ->; rewrite mulr0. Qed.

(** What the head of an offset reads at a token. *)
Lemma offset_read L (f : Token -> Channel -> R) (d : Offset) t o :
  feature_map (head_map (convolution_block L) (Some d)) (with_codes grid_code f t) o =
    feature_map (layer_kernel L d) (f t) o
    + ((grid_codes t)`_0 * layer_bias L o - f t o) * (d == centre_offset m n)%:R.
Proof.
rewrite {1}/feature_map sum_of_both /= addrC.
under eq_bigr do rewrite mulrBr -mulnb natrM mulrCA mulrC.
rewrite sumrB -big_distrl /= sum_at /feature_map mulrBl -addrA; congr (_ + _); rewrite addrC; congr (_ - _).
rewrite (eq_bigr (fun code => grid_code t code * layer_bias L o * (d == centre_offset m n)%:R * (code == ord0)%:R)).
  by rewrite sum_at.
by move=> code _; rewrite -mulnb natrM; ring.
Qed.

Section Effect.

Variable f : Token -> Channel -> R.
Hypothesis class_zero : forall o, f None o = 0.

Let on_grid (k : Place) : Channel -> R := f (Some k).

Lemma convolution_heads L q o :
  after_heads grid_code (convolution_block L) f q o =
    if q is Some k then bare_convolution (layer_kernel L) on_grid k o + layer_bias L o else 0.
Proof.
rewrite /after_heads /attention_layer sum_option.
rewrite [feature_map _ _ _]big1 ?add0r => [|c _]; last by rewrite mulr0.
case: q => [k|] /=; last first.
  rewrite class_zero add0r big1 // => d _.
  rewrite (eq_feature_map (M' := head_map (convolution_block L) (Some d)) (fun _ => erefl)
    (mean_of_one (with_codes grid_code f) None)) offset_read /= mul0r class_zero subrr mul0r addr0.
  by rewrite /feature_map big1 // => i _; rewrite class_zero mul0r.
have read d : feature_map (head_map (convolution_block L) (Some d))
    (attend (mean_row R [set bare_target k d]) (with_codes grid_code f)) o =
    feature_map (layer_kernel L d) (f (bare_target k d)) o +
      ((grid_codes (bare_target k d))`_0 * layer_bias L o - f (bare_target k d) o) * (d == centre_offset m n)%:R.
  rewrite -offset_read; apply: eq_feature_map => // c; exact: mean_of_one.
rewrite (eq_bigr _ (fun d _ => read d)) big_split /= sum_at bare_target_centre /= mul1r addrC -addrA subrK.
congr (_ + _); apply: eq_bigr => d _; apply: eq_feature_map => // i.
by case: (bare_target k d) => [k'|]; rewrite ?class_zero.
Qed.

Lemma convolution_effect L q o :
  after_block grid_code (convolution_block L) f q o =
    if q is Some k then apply_layer L on_grid k o else 0.
Proof.
rewrite /after_block /after_units.
set g := after_heads _ _ _; have eg := convolution_heads L; rewrite -/g in eg.
have unit u : feature_map (unit_map (convolution_block L)) (with_codes grid_code g q) u =
    - ((layer_rectifies L u)%:R * g q u).
  rewrite /feature_map sum_of_both /= big1 ?add0r => [|c _]; last by rewrite mulr0.
  under eq_bigr do rewrite mulrN -mulnb natrM mulrCA mulrC.
  by rewrite sumrN -big_distrl /= sum_at mulrC.
rewrite /feature_map /= (eq_bigr _ (fun u _ => congr1 (fun z => rectified z * (u == o)%:R) (unit u))) sum_at.
rewrite eg; case: q {unit} => [k|]; last by rewrite mulr0 oppr0 /rectified /Num.max ltxx addr0.
rewrite /apply_layer; case: (layer_rectifies L o); last first.
  by rewrite mul0r oppr0 /rectified /Num.max ltxx addr0.
set z := _ + layer_bias L o; rewrite mul1r /rectified /Num.max oppr_gt0 [0 < z]lt_neqAle.
by case: (ltgtP z 0) => [| |->] /=; rewrite ?subrr ?addr0.
Qed.

(** The last block adds the mean over the grid to the class token. *)
Lemma mean_effect o :
  after_block grid_code mean_block f None o = mean_token on_grid o.
Proof.
rewrite /after_block /after_units [feature_map (unit_return _) _ _]big1 ?addr0 => [|u _]; last by rewrite mulr0.
rewrite /after_heads class_zero add0r /attention_layer sum_option [X in _ + X]big1 ?addr0 => [|d _].
  rewrite /feature_map /= sum_at; exact: mean_of_places.
by rewrite /feature_map big1 // => c _; rewrite mulr0.
Qed.

End Effect.

Lemma eq_layers (layers : seq (convolution_layer R Channel m n)) x y :
  (forall k o, x k o = y k o) ->
  forall k o, foldl (fun x L => apply_layer L x) x layers k o = foldl (fun x L => apply_layer L x) y layers k o.
Proof.
elim: layers x y => [|L layers IH] x y exy //=; apply: IH => k o; rewrite /apply_layer.
have -> // : bare_convolution (layer_kernel L) x k o = bare_convolution (layer_kernel L) y k o.
by apply: eq_bigr => d _; apply: eq_feature_map => // i; case: bare_target.
Qed.

(** All blocks but the last: the convolutions on the grid, zeros at the class token. *)
Lemma convolution_blocks (layers : seq (convolution_layer R Channel m n)) (f : Token -> Channel -> R) :
  (forall o, f None o = 0) ->
  forall t o, foldl (fun f b => after_block grid_code b f) f (map convolution_block layers) t o =
    if t is Some k then foldl (fun x L => apply_layer L x) (fun k => f (Some k)) layers k o else 0.
Proof.
elim: layers f => [|L layers IH] f class_zero t o /=; first by case: t.
rewrite IH => [|o']; last by rewrite (convolution_effect class_zero).
by case: t => // k; apply: eq_layers => k' o'; rewrite (convolution_effect class_zero).
Qed.

Lemma convolutional_network_logit C (X : Place -> Pixel -> R) l :
  network_logit (network_of_convolutions C) X l = convolutional_logit C X l.
Proof.
rewrite /network_logit /convolutional_logit {1}/feature_map sum_of_both addrC; congr (_ + _).
  apply: eq_bigr => o _; congr (_ * _); rewrite /= /last_values /= -cats1 foldl_cat /= mean_effect => [|o'].
    by congr (_ / _); apply: eq_bigr => k _; rewrite convolution_blocks.
  by rewrite convolution_blocks.
rewrite (eq_bigr (fun code => grid_code None code * classifier_bias C l * (code == inord 1)%:R)) => [|code _].
  by rewrite sum_at /grid_code inordK //= mul1r.
by rewrite /= mulrCA mulrC.
Qed.

Lemma convolutional_network_shows C : (0 < #|Place|)%N -> network_shows (network_of_convolutions C).
Proof.
move=> some_place; rewrite /network_shows /=; elim: (convolution_layers C) => [|L layers IH] /=.
  by split=> //; exact: grid_shows.
by split=> //; exact: grid_shows.
Qed.

End Networks.
