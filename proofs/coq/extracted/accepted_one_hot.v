(** What the second checker accepts as one-hot heads tends to the convolution.

    The body of a certificate of equality in the limit, of the family one_hot_limit: the axes, a
    target among the offsets for each head, the values, and what the score needs. If it is accepted,
    then for every number of patches, kernel and numbers of channels: hard heads, which attend with
    weight one to the key at their target, with the values in the body, are the zero-padded
    convolution at every query, and on an image whose ring of tokens is filled in any way the
    convolution of that. And with any exponential that is not bounded, over any ordered field, softmax
    heads with α times one of the following scores tend to it as α → ∞, s the shift to the key:
    - bias: 1 at the target, 0 elsewhere; quadratic: -|s - target|²;
    - enumerated: -(n(s) - n(target))², n the codes of the offsets, all others sharing a spare one;
    - polygon: cos(2π(n(s) - n(target))/corners) at the offsets, 0 elsewhere: any function in its place
      that is 1 at the multiples of the corners and less than 1 elsewhere;
    - absolute: f(q) B f(k)ᵀ with the head's form B and f(p) = (p₁, p₂, |p|², 1) of absolute positions. *)

From Coq Require Import BinInt.
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ssrZ zify.
From Convattn.foundation Require Import attention image grid dilated certified_heads framed exponential.
From Convattn.foundation Require Import sharp_limits listed_integers listed_offsets listed_heads.
From Convattn.checker Require Import absolute.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Record one_hot_body := OneHotBody {
  one_hot_layer : layer_body;
  one_hot_targets : seq (Z * Z) }.

Definition one_hot_row (b : one_hot_body) (z : Z * Z) : seq Z :=
  target_row (layer_offsets (one_hot_layer b)) (Some z) (Zpos xH) Z0.

Definition one_hot_accept (b : one_hot_body) : bool :=
  all (fun z => has (same_pair z) (layer_offsets (one_hot_layer b))) (one_hot_targets b) &&
  layer_accept (one_hot_layer b) [seq one_hot_row b z | z <- one_hot_targets b] (Zpos xH).

Fixpoint all_differ (s : seq Z) : bool :=
  if s is x :: s' then ~~ has (Z.eqb x) s' && all_differ s' else true.

Definition codes_accept (b : one_hot_body) (codes : seq Z) : bool :=
  (size codes == size (layer_offsets (one_hot_layer b))) && all_differ codes.

Definition enumerated_accept (b : one_hot_body) (codes : seq Z) (spare : Z) : bool :=
  codes_accept b codes && ~~ has (Z.eqb spare) codes.

Definition polygon_accept (b : one_hot_body) (corners : Z) (codes : seq Z) : bool :=
  Z.ltb Z0 corners && codes_accept b [seq Z.modulo c corners | c <- codes].

(** A head's form, its last column free. *)
Definition form_accept (x : seq (seq Z) * (Z * Z)) : bool :=
  let two := Zpos (xO xH) in
  all (fun r => size r == 4%N) x.1 &&
  all2 (all2 Z.eqb) [seq take 3 r | r <- x.1]
    [:: [:: two; Z0; Z0]; [:: Z0; two; Z0]; [:: Z0; Z0; Z0];
        [:: Z.mul two x.2.1; Z.mul two x.2.2; Zneg xH]].

Definition absolute_accept (b : one_hot_body) (forms : seq (seq (seq Z))) : bool :=
  (size forms == size (one_hot_targets b)) && all form_accept (zip forms (one_hot_targets b)).

Lemma all_differE s : all_differ s -> uniq s.
Proof.
elim: s => //= x s IH /andP[none /IH ->]; rewrite andbT.
by apply: contra none => in_x; apply/hasP; exists x; rewrite // Z.eqb_refl.
Qed.

(** Softmax of α times a score with one greatest value tends to one-hot there. *)
Lemma greatest_tends (R : realFieldType) (E : R -> R) (Key : finType) (s : Key -> R) (t k : Key) :
  is_exponential E -> unbounded E -> (forall k, k != t -> s k < s t) ->
  tends_to (fun alpha => softmax (fun k => E (alpha * s k)) k) (one_hot R (Some t) k).
Proof.
move=> E_exp E_unb greatest; pose G := 1 + \sum_(k | k != t) (s t - s k)^-1.
have inv_gt0 k' : k' != t -> 0 < (s t - s k')^-1 by move=> ne; rewrite invr_gt0 subr_gt0 greatest.
have sum_ge0 : 0 <= \sum_(k | k != t) (s t - s k)^-1 by apply: sumr_ge0 => k' /inv_gt0/ltW.
have G_gt0 : 0 < G by rewrite ltr_paddr ?ltr01.
have gap k' : k' != t -> 1 <= G * (s t - s k').
  move=> ne; have lt := greatest k' ne; rewrite -ler_pdivr_mulr ?subr_gt0 // mul1r /G (bigD1 k') //=.
  rewrite addrCA ler_addl addr_ge0 ?ler01 //; apply: sumr_ge0 => k'' /andP[ne' _].
  exact: ltW (inv_gt0 _ ne').
have lim : tends_to (fun a => softmax (fun k => E (a * G * s k)) k) (one_hot R (Some t) k).
  apply: (softmax_tends_to_one_hot E_exp E_unb) => [a k'|a k' ge0 ne]; first exact: exponential_positive.
  rewrite -exponential_add //; apply: exponential_monotone => //.
  have /(ler_wpmul2l ge0) := gap _ ne.
  by rewrite mulr1 mulrA mulrBr ler_subr_addr -ler_subr_addl [- a + _]addrC.
move=> eps eps_gt0; have [a0 near] := lim eps eps_gt0.
exists (a0 * G) => a le_a; have := near (a / G); rewrite ler_pdivl_mulr // => /(_ le_a).
by rewrite divfK ?gt_eqF.
Qed.

Section Scores.

Variables (b : one_hot_body) (R : realFieldType).
Let l := one_hot_layer b.
Variables (n1 n2 : nat).

(** The shift from a query to a key, and a head's target. *)
Definition listed_shift (q : bare_grid n1 n2) (k : listed_keys l n1 n2) : int * int :=
  ((k.1 : nat)%:Z - (axis_low (first_axis l) + q.1)%N%:Z,
   (k.2 : nat)%:Z - (axis_low (second_axis l) + q.2)%N%:Z).

Definition head_target (h : nat) : int * int :=
  let z := nth (Z0, Z0) (one_hot_targets b) h in (int_of_Z z.1, int_of_Z z.2).

Definition score_type := 'I_(size (one_hot_targets b)) -> bare_grid n1 n2 -> listed_keys l n1 n2 -> R.

Definition hard_score : score_type := fun h q k => (listed_shift q k == head_target h)%:R.

Definition squared_distance_score : score_type := fun h q k =>
  let s := listed_shift q k in let z := head_target h in
  (- ((s.1 - z.1) ^+ 2 + (s.2 - z.2) ^+ 2))%:~R.

(** The code of a shift: that of the offset, or the spare one. *)
Definition shift_code (codes : seq Z) (spare : Z) (s : int * int) : int :=
  int_of_Z (nth spare codes (index s (offset_integers l))).

Definition code_score (codes : seq Z) (spare : Z) : score_type := fun h q k =>
  (- (shift_code codes spare (listed_shift q k) - shift_code codes spare (head_target h)) ^+ 2)%:~R.

Definition wave_score (wave : int -> R) (codes : seq Z) : score_type := fun h q k =>
  if listed_shift q k \in offset_integers l
  then wave (shift_code codes Z0 (listed_shift q k) - shift_code codes Z0 (head_target h)) else 0.

(** Positions count from the image's first token. *)
Definition form_score (forms : seq (seq (seq Z))) : score_type := fun h q k =>
  let position (low y : nat) : R := (y%:Z - low%:Z)%:~R in
  \sum_(i < 4) \sum_(j < 4)
    absolute_encoding (position 0%N q.1) (position 0%N q.2) i *
    in_field R (nth Z0 (nth [::] (nth [::] forms h) i) j) *
    absolute_encoding (position (axis_low (first_axis l)) k.1) (position (axis_low (second_axis l)) k.2) j.

End Scores.

Lemma squares_gt0 (x y : int * int) : x != y -> 0 < (x.1 - y.1) ^+ 2 + (x.2 - y.2) ^+ 2.
Proof.
case: x y => [x1 x2] [y1 y2] /=; rewrite xpair_eqE => ne.
by rewrite lt0r addr_ge0 ?sqr_ge0 // andbT paddr_eq0 ?sqr_ge0 // !expf_eq0 /= !subr_eq0.
Qed.

Section Codes.

Variables (b : one_hot_body) (z s : int * int).
Let offsets := offset_integers (one_hot_layer b).

(** Two offsets with the same code are the same, and so is an offset with the code of any shift. *)
Lemma shift_code_inj codes spare : codes_accept b codes -> ~~ has (Z.eqb spare) codes ->
  z \in offsets -> shift_code b codes spare s = shift_code b codes spare z -> s = z.
Proof.
case/andP=> /eqP codes_size /all_differE codes_uniq spare_ok in_z /int_of_Z_inj same.
have lt x : x \in offsets -> (index x offsets < size codes)%N.
  by rewrite -index_mem codes_size [size offsets]size_map.
have [in_s|out] := boolP (s \in offsets).
  move/eqP: same; rewrite nth_uniq ?lt // => /eqP same.
  by rewrite -(nth_index s in_s) same nth_index.
move: same; rewrite (nth_default _ (n := index s _)); last first.
  by rewrite memNindex // size_map codes_size.
move=> e; case/hasP: spare_ok; exists spare; last by rewrite Z.eqb_refl.
by rewrite e mem_nth ?lt.
Qed.

Lemma shift_code_modulo corners codes m : Z.ltb Z0 corners ->
  codes_accept b [seq Z.modulo c corners | c <- codes] -> s \in offsets -> z \in offsets ->
  shift_code b codes Z0 s - shift_code b codes Z0 z = m * int_of_Z corners -> s = z.
Proof.
move=> gt0 /andP[/eqP codes_size /all_differE codes_uniq] in_s in_z /eqP; rewrite subr_eq => /eqP e.
have lt x : x \in offsets -> (index x offsets < size codes)%N.
  by rewrite -index_mem [size offsets]size_map -codes_size size_map.
have : Z.modulo (nth Z0 codes (index s offsets)) corners = Z.modulo (nth Z0 codes (index z offsets)) corners.
  rewrite -[RHS](Z.mod_add _ (Z_of_int m)); last by move=> c0; rewrite c0 in gt0.
  congr Z.modulo; apply: int_of_Z_inj; rewrite int_of_ZD int_of_ZM Z_of_intK.
  by move: e; rewrite /shift_code => ->; rewrite addrC.
rewrite -!(nth_map _ Z0 (fun c => Z.modulo c corners)) ?lt // => /eqP.
rewrite nth_uniq ?size_map ?lt // => /eqP same.
by rewrite -(nth_index s in_s) same nth_index.
Qed.

End Codes.

Section Form.

Variables (b : one_hot_body) (R : realFieldType) (forms : seq (seq (seq Z))).
Hypothesis fits : absolute_accept b forms.

Lemma form_entryE (h : 'I_(size (one_hot_targets b))) : exists free : 'I_4 -> R,
  forall i j : 'I_4, in_field R (nth Z0 (nth [::] (nth [::] forms h) i) j) =
    absolute_form (head_target b h).1%:~R (head_target b h).2%:~R free i j.
Proof.
case/andP: fits => /eqP forms_size /allP each.
have : form_accept (nth [::] forms h, nth (Z0, Z0) (one_hot_targets b) h).
  by apply: each; rewrite -nth_zip // mem_nth // size_zip forms_size minnn.
rewrite /head_target; move: (nth (Z0, Z0) _ _) (nth [::] forms h) => [t1 t2] form /andP[/= sizes same].
exists (fun i => in_field R (nth Z0 (nth [::] form i) 3)) => i j.
have {same} := same_listed (same_listed (fun x y => elimT (Z.eqb_spec x y))) same.
rewrite /absolute_form; case: ifP => [/eqP -> //|j3].
have -> : nth Z0 (nth [::] form i) j = nth Z0 (nth [::] [seq take 3 r | r <- form] i) j.
  have [lt|le] := ltnP i (size form); last by rewrite !(nth_default [::]) ?size_map.
  by rewrite (nth_map [::]) // nth_take //; case: j j3 => [[|[|[|[|]]]]].
move=> ->; case: i j j3 => [[|[|[|[|]]]] //= _] [[|[|[|[|]]]] //= _] _.
- exact: (etrans (congr1 (fun n => n%:~R) (int_of_ZM (Zpos (xO xH)) t1)) (intrM _ _ _)).
- exact: (etrans (congr1 (fun n => n%:~R) (int_of_ZM (Zpos (xO xH)) t2)) (intrM _ _ _)).
Qed.

Lemma form_scoreE (h : 'I_(size (one_hot_targets b))) n1 n2 (q : bare_grid n1 n2) :
  exists g : R, forall k, @form_score b R n1 n2 forms h q k =
    (- (((listed_shift q k).1 - (head_target b h).1) ^+ 2 +
        ((listed_shift q k).2 - (head_target b h).2) ^+ 2))%:~R + g.
Proof.
have [free formE] := form_entryE h.
have [g scoreE] := absolute ((head_target b h).1%:~R : R) (head_target b h).2%:~R free.
exists (g (q.1%:Z - 0%N%:Z)%:~R (q.2%:Z - 0%N%:Z)%:~R) => k; rewrite /form_score.
under eq_bigr do under eq_bigr do rewrite formE.
have shiftE (low y x : nat) (z : int) : y%:Z - low%:Z - (x%:Z - 0%N%:Z) - z = y%:Z - (low + x)%N%:Z - z.
  by rewrite subr0 PoszD opprD addrA.
by rewrite scoreE rmorphN rmorphD !rmorphX /= -!rmorphB /= !shiftE.
Qed.

End Form.

Theorem accepted_one_hot (b : one_hot_body) : one_hot_accept b ->
  let l := one_hot_layer b in
  forall (R : realFieldType) (E : R -> R) (In Out : finType) (W : nat -> nat -> In -> Out -> R)
    (n1 n2 : nat) (q : bare_grid n1 n2) (t : listed_feature l Out),
  is_exponential E -> unbounded E ->
  let limit (score : score_type b R n1 n2) := convolves W q t (fun Y v =>
    tends_to (fun alpha => attention_layer (fun h q => softmax (fun k => E (alpha * score h q k)))
      (listed_values (fun=> 1) W) Y q t) v) in
  [/\ convolves W q t (fun Y v =>
        attention_layer (@hard_score b R n1 n2) (listed_values (fun=> 1) W) Y q t = v),
      limit (@hard_score b R n1 n2), limit (@squared_distance_score b R n1 n2) &
  [/\ forall codes spare, enumerated_accept b codes spare -> limit (@code_score b R n1 n2 codes spare),
      forall corners codes (wave : int -> R), polygon_accept b corners codes ->
        (forall n, (int_of_Z corners %| n)%Z -> wave n = 1) ->
        (forall n, ~~ (int_of_Z corners %| n)%Z -> wave n < 1) ->
        limit (@wave_score b R n1 n2 wave codes) &
      forall forms, absolute_accept b forms -> limit (@form_score b R n1 n2 forms)]].
Proof.
case/andP=> /allP targets accepted l R E In Out W n1 n2 q t E_exp E_unb limit.
pose rows := [seq one_hot_row b z | z <- one_hot_targets b]; pose H := 'I_(size (one_hot_targets b)).
have heads : size rows = size (one_hot_targets b) by rewrite size_map.
have in_offsets (h : H) :
    has (same_pair (nth (Z0, Z0) (one_hot_targets b) h)) (layer_offsets l).
  by apply: targets; rewrite mem_nth.
have rowE (h : H) : exists d : listed_offset l,
    [/\ head_target b h = (val d.1, val d.2), listed_u l rows (Zpos xH) R 0 h = 0,
        listed_u l rows (Zpos xH) R 1 h = 0 &
        forall d', listed_c rows (Zpos xH) R h d' = (d' == d)%:R].
  have listed : nth [::] rows h = target_row (layer_offsets l)
      (Some (nth (Z0, Z0) (one_hot_targets b) h)) (Zpos xH) Z0 by rewrite (nth_map (Z0, Z0)).
  have [u0E u1E /(_ (in_offsets h))[d e cE]] := target_rowE accepted R listed.
  exists d; split=> // [|d']; first by rewrite u0E /in_field mul0r.
  by rewrite cE divff ?mul1r ?oner_eq0.
have {rowE} /fin_all_exists [target rowE] := rowE.
have atE (h : H) k :
    (listed_shift q k == head_target b h) = (k == listed_key accepted q (target h)).
  have [-> _ _ _] := rowE h; rewrite -(at_listed_key accepted) /listed_shift /at_shift.
  by rewrite xpair_eqE !subr_eq !PoszD ![val _ + _]addrC.
have hard Y : attention_layer (@hard_score b R n1 n2) (listed_values (fun=> 1) W) Y q t =
    \sum_d feature_map (listed_map W d) (Y (listed_key accepted q d)) t.
  have sum_c (h : H) (f : listed_offset l -> R) :
      \sum_d listed_c rows (Zpos xH) R h d * f d = f (target h).
    have [_ _ _ cE] := rowE h; rewrite (bigD1 (target h)) //= cE eqxx mul1r big1 ?addr0 // => d /negbTE ne.
    by rewrite cE ne mul0r.
  have totalE (h : H) : listed_total l rows (Zpos xH) R n1 n2 h = 1.
    have [_ u0E u1E _] := rowE h; rewrite /listed_total /row_total u0E u1E mul0r !addr0.
    by rewrite -[RHS](sum_c h (fun=> 1)); apply: eq_bigr => d _; rewrite mulr1.
  apply: (listed_layer W t heads) => [h|h|h k]; rewrite ?totalE ?oner_eq0 //.
  have [_ u0E u1E _] := rowE h; rewrite /shared_row -/(listed_total _ _ _ _ _ _ _) totalE divr1.
  rewrite /shared_weight u0E u1E mul0r addr0 mul0r addr0.
  by rewrite (sum_c h (fun d => (k == listed_key accepted q d)%:R)) /hard_score atE.
have [zero filled] := tokens_convolve accepted W q t.
have greatest (score : score_type b R n1 n2) : (forall (h : H) k,
    listed_shift q k != head_target b h ->
    score h q k < score h q (listed_key accepted q (target h))) -> limit score.
  move=> great.
  suff lim Y : tends_to (fun alpha => attention_layer (fun h q => softmax (fun k => E (alpha * score h q k)))
      (listed_values (fun=> 1) W) Y q t)
      (\sum_d feature_map (listed_map W d) (Y (listed_key accepted q d)) t).
    by split=> X; [rewrite -(zero X)|rewrite -(filled X)]; exact: lim.
  rewrite -hard; apply: layer_tends_to => h k.
  have -> : hard_score R h q k = one_hot R (Some (listed_key accepted q (target h))) k.
    by rewrite /hard_score atE /one_hot (inj_eq Some_inj).
  apply: greatest_tends => // k' ne; apply: great.
  by rewrite atE.
have at_target (h : H) :
    listed_shift q (listed_key accepted q (target h)) = head_target b h.
  by apply/eqP; rewrite atE.
have listed_target (h : H) : head_target b h \in offset_integers l.
  by have [-> _ _ _] := rowE h; apply: offset_listed accepted _.
split; [| | |split].
- by split=> X; rewrite hard.
- by apply: greatest => h k /negbTE ne; rewrite /hard_score at_target eqxx ne ltr01.
- apply: greatest => h k ne; rewrite /squared_distance_score ltr_int at_target /= !subrr ltr_opp2.
  exact: squares_gt0 ne.
- move=> codes spare /andP[codes_ok spare_ok]; apply: greatest => h k ne.
  rewrite /code_score at_target subrr expr0n oppr0 ltr_int oppr_lt0 exprn_even_gt0 //= subr_eq0.
  by apply: contra ne => /eqP/(shift_code_inj codes_ok spare_ok (listed_target h))/eqP.
- move=> corners codes wave /andP[gt0 codes_ok] one less; apply: greatest => h k ne.
  rewrite /wave_score at_target listed_target subrr (one 0) ?dvdz0 //.
  case: ifP => [in_k|_]; last exact: ltr01.
  apply: less; apply: contra ne => /dvdzP[m e]; apply/eqP.
  apply: (shift_code_modulo gt0 codes_ok in_k (listed_target h)) e.
- move=> forms fits; apply: greatest => h k ne.
  have [g scoreE] := form_scoreE R fits h q; rewrite !scoreE at_target ltr_add2r.
  by rewrite ltr_int !subrr ltr_opp2; exact: squares_gt0 ne.
Qed.
