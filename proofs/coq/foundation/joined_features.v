(** Which features of a 16 × 16 patch a 3 × 3 kernel joins at each token offset, and how many they are.

    At the offset (i, j), counted from the centre, these are the pixels on the rows and columns next to the
    neighbour: all of them at the centre, 16 of 256 at an edge, one at a corner, each in every channel. So the map
    of the offset has at most that rank; and the maps off the centre read the border alone. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import zify.
From Convattn.foundation Require Import attention image grid rank.
From Convattn.foundation Require Import flattened_kernel offset_heads.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
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
