(** S.width (1), with numbers: sixteen heads of width 64 for 3 × 3 kernels on 16 × 16 patches of three channels.

    For every 3 × 3 kernel W over an ordered field, of three channels in and any number out, and every ε > 0
    there are sixteen heads of width 64 at finite scores whose layer is off the zero-padded convolution by at most
    ε, at every output of every image whose pixels lie between -1 and 1, of any number of patches of 16 × 16
    pixels, with a ring of zero patches. What the heads are made of is as in width; their maps grow as ε vanishes.

    At least twelve are needed where the middle map is regular (width_necessary). Not covered: exact layers. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import zify.
From Convattn.foundation Require Import attention image grid rank head_dimension.
From Convattn.foundation Require Import flattened_kernel offset_heads split_heads.
From Convattn.sharpened Require Import width.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory Num.Theory Order.Theory.
Local Open Scope ring_scope.

(** The rank is at most the number of rows that are not zero. *)
Lemma rank_rows (F : fieldType) (Row Column : finType) (M : Row -> Column -> F) (S : {set Row}) :
  (forall i j, i \notin S -> M i j = 0) -> (family_rank M <= #|S|)%N.
Proof.
move=> zero; rewrite -card_sig.
apply: (family_rank_product (L := fun i h => (i == val h)%:R) (R := fun h j => M (val h) j)) => i j.
case: (boolP (i \in S)) => [inS|out].
  rewrite (bigD1 (Sub i inS)) //= eqxx mul1r big1 ?addr0 // => h ne.
  by case: eqP => [e|]; rewrite ?mul0r //; case/eqP: ne; apply: val_inj.
rewrite zero // big1 // => -[h inS] _ /=; case: eqP => [e|]; rewrite ?mul0r //.
by case/negP: out; rewrite e.
Qed.

(** The pixels of one axis that a tap joins to the query's patch. *)
Definition joined_pixels (i : 'I_3) : {set 'I_16} :=
  [set s : 'I_16 | [|| i == 1%N :> nat, (i == 0%N :> nat) && (s == 15%N :> nat) | (i == 2%N :> nat) && (s == 0%N :> nat)]].

Lemma joined_pixelsP (i : 'I_3) (s t : 'I_16) u : axis_tap 16 1 1 i s t = Some u -> s \in joined_pixels i.
Proof.
rewrite inE /axis_tap; case: i s t => [i lti] [s lts] [t ltt] /=; case: ifP => // cond _.
by rewrite -?val_eqE /=; lia.
Qed.

Lemma card_joined_pixels (i : 'I_3) : #|joined_pixels i| = if i == 1%N :> nat then 16%N else 1%N.
Proof.
have only (k : 'I_16) (S : {set 'I_16}) : S =i [set k] -> #|S| = 1%N.
  by move=> /setP ->; rewrite cards1.
case: i => [[|[|[|//]]] lt] /=.
- by apply: (only ord_max) => s; rewrite !inE -val_eqE /= ?orbF.
- by rewrite (_ : joined_pixels _ = setT) ?cardsT ?card_ord //; apply/setP => s; rewrite !inE.
- by apply: (only ord0) => s; rewrite !inE.
Qed.

Section Ranks.

Variables (F : fieldType) (In Out : finType) (W : nat -> nat -> In -> Out -> F).

Definition joined_features (d : token_offset 1 1) : {set patch_feature 16 16 In} :=
  setX (setX (joined_pixels d.1) (joined_pixels d.2)) setT.

Lemma joined_featuresP (d : token_offset 1 1) s t :
  s \notin joined_features d -> flattened_kernel 16 16 1 1 1 1 W (s, t) d = 0.
Proof.
rewrite !inE andbT /flattened_kernel /output_block /joining_tap /= => out.
case e1: axis_tap => [u|] //; case e2: axis_tap => [v|] //; move: out.
by have := joined_pixelsP e1; have := joined_pixelsP e2; rewrite !inE => -> ->.
Qed.

Lemma card_joined_features (d : token_offset 1 1) :
  #|joined_features d| =
    ((if d.1 == 1%N :> nat then 16 else 1) * (if d.2 == 1%N :> nat then 16 else 1) * #|In|)%N.
Proof. by rewrite !cardsX !card_joined_pixels cardsT. Qed.

(** The features at the border of a patch, and some more. *)
Definition border_features : {set patch_feature 16 16 In} :=
  setX (setX (joined_pixels ord0 :|: joined_pixels ord_max) setT
    :|: setX setT (joined_pixels ord0 :|: joined_pixels ord_max)) setT.

Lemma card_border_features : (#|border_features| <= 64 * #|In|)%N.
Proof.
rewrite cardsX cardsT leq_mul2r; apply/orP; right.
apply: leq_trans (leq_card_setU _ _).1 _; rewrite !cardsX cardsT card_ord.
have : (#|joined_pixels ord0 :|: joined_pixels ord_max| <= 2)%N.
  by apply: leq_trans (leq_card_setU _ _).1 _; rewrite !card_joined_pixels.
lia.
Qed.

Lemma joined_at_border (d : token_offset 1 1) s :
  d != (inord 1, inord 1) -> s \in joined_features d -> s \in border_features.
Proof.
case: d => -[i lti] [j ltj]; rewrite !inE !andbT -pair_eqE /pair_eq /= -!val_eqE /= !inordK //.
by case: s => -[[s1 lt1] [s2 lt2]] c /=; lia.
Qed.

End Ranks.

Theorem width_sixteen (F : realFieldType) (In Out : finType) (W : nat -> nat -> In -> Out -> F) (eps : F) :
  #|In| = 3%N -> 0 < eps ->
  exists (Head : finType) (w : Head -> token_offset 1 1 -> F)
      (V : Head -> patch_feature 16 16 In -> 'I_64 -> F)
      (U : Head -> 'I_64 -> patch_feature 16 16 Out -> F),
    [/\ #|Head| = 16%N,
        forall h d, 0 <= w h d,
        forall (rows columns : nat) h (q : bare_grid rows columns) k, 0 < offset_weights (w h) q k
      & forall (rows columns : nat) (X : image_type F In) (q : bare_grid rows columns)
            (t : patch_feature 16 16 Out),
          (forall y x c, `|X y x c| <= 1) ->
          `|attention_layer
              (fun h (q : bare_grid rows columns) => softmax (offset_weights (w h) q))
              (fun h => through (V h) (U h)) (patch_token X) q t -
            convolution (16 * rows)%N (16 * columns)%N 1 1 W X
              (16 * q.1 + t.1.1)%N (16 * q.2 + t.1.2)%N t.2| <= eps].
Proof.
move=> three pos; pose base : token_offset 1 1 := (inord 1, inord 1).
have is_base (d : token_offset 1 1) : (d == base) = (d.1 == 1%N :> nat) && (d.2 == 1%N :> nat).
  by case: d => i j; rewrite -pair_eqE /pair_eq /= -!val_eqE /= !inordK.
pose side (i : 'I_3) := (i == 1%N :> nat).
pose count d := if d == base then 8%N else 1%N.
pose extra (d : token_offset 1 1) := if d == base then 0%N else if side d.1 || side d.2 then 16%N else 61%N.
have sum_grid (f : token_offset 1 1 -> nat) : (\sum_d f d)%N =
    (\sum_(i < 3) \sum_(j < 3) f (i, j))%N by rewrite pair_bigA; apply: eq_bigr => -[].
have total : (\sum_d extra d = 308)%N.
  by rewrite sum_grid !big_ord_recl !big_ord0 /extra !is_base.
have := @width_layer F In Out 16 16 1 1 1 1 64 W base eps count extra isT isT pos.
case=> [d ne||||w [V [U layer]]].
- have := @rank_rows F _ _ (fun s t => flattened_kernel 16 16 1 1 1 1 W (s, t) d) (joined_features In d)
    (@joined_featuresP F In Out W d).
  rewrite card_joined_features three /count /extra (negbTE ne); move: ne; rewrite is_base /side.
  by move: (family_rank _) => r; case: (_ == 1%N :> nat); case: (_ == 1%N :> nat) => //=; lia.
- by rewrite /extra eqxx.
- rewrite total !card_prod !card_ord three.
  have few : (family_rank (fun s (dt : token_offset 1 1 * patch_feature 16 16 Out) => other_maps base
      (fun d s t => flattened_kernel 16 16 1 1 1 1 W (s, t) d) dt.1 s dt.2) <= 64 * 3)%N.
    have border := card_border_features In; rewrite three in border.
    apply: leq_trans border; apply: rank_rows => s [d t] out.
    rewrite /other_maps /=; case: (eqVneq d base) => [//|ne].
    by apply: joined_featuresP; apply: contra out; exact: joined_at_border.
  by rewrite leq_subRL; [apply: leq_trans (leq_add few (leqnn _)) _ | apply: leq_trans few _].
- by rewrite total !card_prod !card_ord three /count eqxx.
exists (split_head count), w, V, U; case: layer => w_ge0 w_gt0 near; split=> //.
by rewrite card_split_head sum_grid !big_ord_recl !big_ord0 /count !is_base.
Qed.
