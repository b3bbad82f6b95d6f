(** S.registers, (b): with relative scores one head more than offsets is not enough.

    Let one key whose value is zero stand beside the tokens of the bare grid. Let each head have a
    positive weight for each shift from query to key and a weight of that key, the same at every
    query (any scores, which may know the size of the image), and let the layer be the zero-padded
    convolution by W at every query, for every image, with any maps. Let the blocks of W at the
    (2m+1)(2n+1) offsets be linearly independent, m > 0, and let the image have more than m + 2 rows
    and more than n columns of patches. Then the layer has at least two heads more than there are
    offsets. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import zify ring.
From Convattn.foundation Require Import attention image heads grid patches rank bare shared_map nonzero_heads.
From Convattn.sharpened Require Import padding_zero_token.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** Exponentials of relative scores, and of the score of the added key, [None]. *)
Definition relative_weights (F : fieldType) (rows columns : nat) (e : nat -> nat -> F) (s : F)
    (q : bare_grid rows columns) (k : option (bare_grid rows columns)) : F :=
  if k is Some k' then e (k'.1 + rows - q.1)%N (k'.2 + columns - q.2)%N else s.

Section Relations.

Variables (F : fieldType) (Row Inner Column : finType).
Variables (M : Row -> Column -> F) (L : Row -> Inner -> F) (R : Inner -> Column -> F).
Hypotheses (product : forall i j, M i j = \sum_h L i h * R h j) (full : family_rank M = #|Row|).

(** Independent rows have no relation. *)
Lemma no_relation (z : Row -> F) : (forall j, \sum_i z i * M i j = 0) -> forall i, z i = 0.
Proof.
move=> rel i; apply/eqP; apply: contraT => nz; suff: (#|Row| < #|Row|)%N by rewrite ltnn.
apply: (rank_of_related_rows (L := fun i h => (i == h)%:R) (R := M) _ full nz rel) => i' j.
by rewrite (bigD1 i') //= eqxx mul1r big1 ?addr0 // => h /negbTE; rewrite eq_sym => ->; rewrite mul0r.
Qed.

(** With two relations of the [R h] there are two of them more. *)
Lemma two_relations (y z : Inner -> F) (h0 h1 : Inner) :
  (forall j, \sum_h z h * R h j = 0) -> (forall j, \sum_h y h * R h j = 0) ->
  z h0 != 0 -> y h0 = 0 -> y h1 != 0 -> (#|Row|.+1 < #|Inner|)%N.
Proof.
move=> relz rely nz zero ny; pose K b := if b then z else y.
have rank2 : (#|{: bool}| <= family_rank K)%N.
  pose N (a i : bool) : F := if a then (if i then (z h0)^-1 else - (z h1 / (z h0 * y h1)))
    else (if i then 0 else (y h1)^-1).
  apply: (family_rank_left_inverse (L := N) (choose := fun b => if b then h0 else h1)) => a b.
  rewrite big_bool /N /K; case: a b => [] [] /=; rewrite ?zero ?mulr0 ?mul0r ?addr0 ?add0r.
  - by rewrite mulVf.
  - by field; rewrite nz ny.
  - by [].
  by rewrite mulVf.
have none : family_matrix K *m family_matrix R = 0.
  rewrite family_matrix_product; apply/matrixP => b j; rewrite !mxE /K.
  by case: (enum_val b); [exact: relz | exact: rely].
have := mulmx0_rank_max none; rewrite card_bool in rank2.
have : (#|Row| <= \rank (family_matrix R))%N.
  rewrite -full /family_rank (eq_family_matrix product) -family_matrix_product.
  exact: mxrankM_maxr.
rewrite /family_rank in rank2 *; lia.
Qed.

End Relations.

Lemma attend_zero_token (F : fieldType) (Key In : finType) (w : option Key -> F) (X : Key -> In -> F) i :
  attend (softmax w) (with_zero_token X) i = attend (fun k => softmax w (Some k)) X i.
Proof. by rewrite /attend sum_option /= mulr0 add0r. Qed.

Theorem registers_few (F : numFieldType) (In Out Head : finType)
    (rows columns p1 p2 m n r1 r2 : nat) (W : nat -> nat -> In -> Out -> F)
    (e : Head -> nat -> nat -> F) (s : Head -> F)
    (V : Head -> patch_feature p1 p2 In -> patch_feature p1 p2 Out -> F) :
  (r1 <= p1 * m)%N -> (r2 <= p2 * n)%N ->
  family_rank (fun (d : token_offset m n) (st : patch_feature p1 p2 In * patch_feature p1 p2 Out) =>
    output_block m n r1 r2 W d.1 d.2 st.1 st.2) = #|token_offset m n| ->
  (0 < m)%N -> (m.+2 < rows)%N -> (n < columns)%N ->
  (forall h i j, 0 < e h i j) -> (forall h, 0 <= s h) ->
  (forall X (q : bare_grid rows columns) t,
    attention_layer (fun h q => softmax (relative_weights (e h) (s h) q)) V
        (with_zero_token (bare_token X)) q t =
      convolution (p1 * rows) (p2 * columns) r1 r2 W X
        (p1 * q.1 + t.1.1)%N (p2 * q.2 + t.1.2)%N t.2) ->
  (#|token_offset m n|.+1 < #|Head|)%N.
Proof.
move=> le1 le2 full m0 ltm ltn epos spos computes.
pose B h (q k : bare_grid rows columns) := softmax (relative_weights (e h) (s h) q) (Some k).
pose C (d : token_offset m n) : patch_feature p1 p2 In -> patch_feature p1 p2 Out -> F :=
  output_block m n r1 r2 W d.1 d.2.
have {}computes q : forall X t, attention_layer B V X q t = bare_convolution C X q t.
  apply: computes_on_all_tokens => // X t; rewrite -computes.
  by apply: eq_bigr => h _; apply: eq_feature_map => // i; rewrite attend_zero_token.
pose Z h (q : bare_grid rows columns) := \sum_k relative_weights (e h) (s h) q k.
have Zpos h q : 0 < Z h q.
  rewrite /Z sum_option ltr_paddl //= (bigD1 q) //= ltr_paddr ?sumr_ge0 // => k _; exact: ltW.
have Bdef h (q k : bare_grid rows columns) :
    B h q k = e h (k.1 + rows - q.1)%N (k.2 + columns - q.2)%N / Z h q by [].
pose R h (st : patch_feature p1 p2 In * patch_feature p1 p2 Out) := V h st.1 st.2.
have lt1 : (m < rows)%N by lia.
have occurs (d : token_offset m n) : exists qk : bare_grid rows columns * bare_grid rows columns,
    bare_target qk.1 d = Some qk.2.
  by have [q [k ?]] := offset_occurs d lt1 ltn; exists (q, k).
have /fin_all_exists[qk target_qk] := occurs.
pose L (d : token_offset m n) h := B h (qk d).1 (qk d).2.
have product (d : token_offset m n) st : C d st.1 st.2 = \sum_h L d h * R h st.
  by rewrite /L /R (coefficient_at_offset (computes _) _ _ (target_qk d)).
have independent := no_relation full.
rewrite ltnNge; apply/negP => few.
have proportional (x z : Head -> F) h h0 :
    (forall st, \sum_h z h * R h st = 0) -> (forall st, \sum_h x h * R h st = 0) ->
    z h0 != 0 -> x h * z h0 = x h0 * z h.
  move=> relz relx nz; apply/eqP; rewrite -subr_eq0; apply: contraT => ny.
  suff : (#|token_offset m n|.+1 < #|Head|)%N by rewrite ltnNge few.
  apply: (two_relations (y := fun h => x h * z h0 - x h0 * z h) product full relz _ nz _ ny).
    move=> st.
    transitivity (\sum_h1 (z h0 * (x h1 * R h1 st) - x h0 * (z h1 * R h1 st))).
      by apply: eq_bigr => h1 _; ring.
    by rewrite sumrB -!big_distrr /= relx relz !mulr0 subrr.
  by rewrite subrr.
have [lq1 lp1 lk1 lk2] : [/\ (rows - 2 < rows)%N, (rows - 1 < rows)%N,
    (rows - m.+3 < rows)%N & (rows - m.+2 < rows)%N] by split; lia.
have l0 : (0 < columns)%N by lia.
pose q : bare_grid rows columns := (Ordinal lq1, Ordinal l0).
pose p : bare_grid rows columns := (Ordinal lp1, Ordinal l0).
pose kq : bare_grid rows columns := (Ordinal lk1, Ordinal l0).
pose kp : bare_grid rows columns := (Ordinal lk2, Ordinal l0).
have farq (d : token_offset m n) : bare_target q d != Some kq.
  by rewrite bare_target_some /=; case: d => -[i lti] j /=; apply/negP => /andP[/eqP]; lia.
have farp (d : token_offset m n) : bare_target p d != Some kp.
  by rewrite bare_target_some /=; case: d => -[i lti] j /=; apply/negP => /andP[/eqP]; lia.
have relq st : \sum_h B h q kq * R h st = 0 by exact: (coefficient_off_field (computes q)).
have relp st : \sum_h B h p kp * R h st = 0 by exact: (coefficient_off_field (computes p)).
have nz h (x : bare_grid rows columns) : Z h x != 0 by rewrite gt_eqF.
have same h h0 : Z h0 q * Z h p = Z h q * Z h0 p.
  have nzB : B h0 p kp != 0 by rewrite Bdef mulf_neq0 ?invr_eq0 ?nz // gt_eqF.
  have := proportional _ _ h h0 relp relq nzB; rewrite !Bdef /=.
  have -> : (rows - m.+3 + rows - (rows - 2) = rows - m.+1)%N by lia.
  have -> : (rows - m.+2 + rows - (rows - 1) = rows - m.+1)%N by lia.
  set a := e h _ _; set b := e h0 _ _ => eq.
  have nzab : a * b != 0 by rewrite mulf_neq0 // gt_eqF ?epos.
  apply: (mulfI nzab); transitivity (a / Z h q * (b / Z h0 p) * (Z h q * Z h0 q * Z h p * Z h0 p)).
    by field; rewrite !nz.
  by rewrite eq; field; rewrite !nz.
have centre x st : \sum_h B h x x * R h st = C (centre_offset m n) st.1 st.2.
  by rewrite (coefficient_at_offset (computes x) _ _ (bare_target_centre _ _ x)).
have equal h0 : Z h0 p = Z h0 q.
  pose l := Z h0 p / Z h0 q.
  have nzl : l != 0 by rewrite mulf_neq0 ?invr_eq0 ?nz.
  have scaled h : B h p p = l^-1 * B h q q.
    rewrite !Bdef /=; have -> : (rows - 2 + rows - (rows - 2) = rows)%N by lia.
    have -> : (rows - 1 + rows - (rows - 1) = rows)%N by lia.
    have -> : Z h p = l * Z h q by apply: (mulfI (nz h0 q)); rewrite same /l; field; rewrite !nz.
    by field; rewrite nz nzl.
  have vanish st : (1 - l^-1) * C (centre_offset m n) st.1 st.2 = 0.
    rewrite mulrBl mul1r -{1}(centre p st) -(centre q st) big_distrr /= -sumrB.
    by apply: big1 => h _; rewrite scaled -mulrA subrr.
  have := independent (fun d => (d == centre_offset m n)%:R * (1 - l^-1)) _ (centre_offset m n).
  rewrite eqxx mul1r => /(_ _)/eqP; rewrite subr_eq0 => one.
  have {one} : l = 1.
    apply/eqP; rewrite -invr_eq1 eq_sym; apply: one => st.
    rewrite (bigD1 (centre_offset m n)) //= eqxx mul1r vanish add0r big1 // => d /negbTE ->.
    by rewrite !mul0r.
  by rewrite /l => /(congr1 ( *%R^~ (Z h0 q))); rewrite mul1r divfK ?nz.
pose f h i := \sum_(k2 < columns) e h i (k2 + columns)%N.
have sumZ h (x : bare_grid rows columns) c : x.2 = 0%N :> nat -> (x.1 + c = rows)%N ->
    Z h x = s h + \sum_(k1 < rows) f h (k1 + c)%N.
  move=> x2 x1; rewrite /Z sum_option; congr (_ + _); rewrite /f pair_bigA; apply: eq_bigr => -[k1 k2] _ /=.
  have -> : (k1 + rows - x.1 = k1 + c)%N; last by rewrite x2 subn0.
  by move: x1; move: (nat_of_ord x.1) (nat_of_ord k1) => a b; lia.
have ends h : f h rows.+1 = f h 1%N.
  have := equal h; rewrite (sumZ h p 1%N) ?(sumZ h q 2%N) /=; [|lia|lia|lia|lia] => /addrI eq.
  apply: (addrI (\sum_(k1 < rows) f h (k1 + 1)%N)).
  transitivity (\sum_(k1 < rows.+1) f h k1.+1).
    by rewrite big_ord_recr; congr (_ + _); apply: eq_bigr => k1 _; rewrite addn1.
  rewrite big_ord_recl addrC eq; congr (_ + _).
  by apply: eq_bigr => k1 _; rewrite /= /bump add1n addn2.
pose last : 'I_rows := Ordinal lp1; have l1 : (0 < rows)%N by lia.
pose u (d : token_offset m n) : F := \sum_(k2 < columns) one_hot F (bare_target q d) (last, k2).
have relation st : \sum_d u d * C d st.1 st.2 = 0.
  transitivity (\sum_h \sum_(k2 < columns) B h q (last, k2) * R h st).
    rewrite exchange_big /=; under [RHS]eq_bigr do rewrite (bare_coefficients (computes q)).
    rewrite exchange_big; apply: eq_bigr => d _; by rewrite big_distrl.
  transitivity (\sum_h \sum_(k2 < columns) B h p (Ordinal l1, k2) * R h st).
    apply: eq_bigr => h _.
    have row (x : bare_grid rows columns) (k1 : 'I_rows) i : x.2 = 0%N :> nat ->
        (k1 + rows - x.1 = i)%N ->
        \sum_(k2 < columns) B h x (k1, k2) * R h st = f h i / Z h x * R h st.
      move=> x2 <-; rewrite /f !big_distrl; apply: eq_bigr => k2 _.
      by rewrite Bdef x2 subn0.
    rewrite (row q last rows.+1) ?(row p (Ordinal l1) 1%N) //=; [|lia|lia].
    by rewrite ends equal.
  rewrite exchange_big big1 // => k2 _.
  apply: (coefficient_off_field (computes p)) => d.
  by rewrite bare_target_some /=; case: d => -[i lti] j /=; apply/negP => /andP[/eqP]; lia.
have lt2 : (m.+1 < m.*2.+1)%N by lia.
pose d1 : token_offset m n := (Ordinal lt2, inord n).
have := independent u relation d1; apply/eqP; rewrite gt_eqF // /u (bigD1 (Ordinal l0)) //=.
rewrite ltr_paddr ?sumr_ge0 // => [k2 _|]; first by rewrite /one_hot ler0n.
rewrite /one_hot (_ : _ == _) ?ltr01 // eq_sym bare_target_some /= inordK; lia.
Qed.
