(** S.sharpness: what an exact layer at finite scores pays in its value maps.

    Let a layer be the zero-padded convolution for all images, with attention that is a softmax whose
    weights before normalisation differ by the factor E > 1 at most (E = e^S for scores in an interval of
    length S), over N keys. Let some query see one token of the image at the offset d, and another
    outside its receptive field. Then, entry by entry,

        |M_d| (E + N - 1) <= (E - 1) Σ_h |W_h|.

    So for a bounded E the value maps grow like N, and for bounded maps E must grow like N.

    Not covered: that the heads of S.finite reach this up to the factor 1 + ε for a kernel of one tap,
    other norms, and layers that are the convolution approximately. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Convattn.foundation Require Import attention image grid bare rank.
From Convattn.foundation Require Import flattened_kernel lower_bound.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.Theory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** Two weights of one softmax differ by (E - 1)/(E + N - 1) at most. *)
Lemma softmax_gap (F : realFieldType) (Key : finType) (w : Key -> F) (least E : F) (k l : Key) :
  0 < least -> 1 < E -> (forall j, least <= w j <= E * least) ->
  (softmax w k - softmax w l) * (E + #|Key|%:R - 1) <= E - 1.
Proof.
move=> pos lt1E range; have [-> | ne] := eqVneq k l.
  by rewrite subrr mul0r subr_ge0 ltW.
pose N : F := #|Key|%:R; pose Z := \sum_j w j.
have low j : least <= w j by case/andP: (range j).
have high j : w j <= E * least by case/andP: (range j).
have Zpos : 0 < Z.
  rewrite /Z (bigD1 k) //= ltr_paddr ?(lt_le_trans pos) // sumr_ge0 // => j _.
  exact: le_trans (ltW pos) (low j).
have others : w k + w l + (N - 2%:R) * least <= Z.
  rewrite /Z (bigD1 k) //= (bigD1 l) 1?eq_sym //= addrA ler_add2l.
  have -> : (N - 2%:R) * least = \sum_(j | (j != k) && (j != l)) least.
    rewrite sumr_const -[RHS]mulr_natl; congr (_ * _).
    have : #|Key| = #|[pred j | (j != k) && (j != l)]|.+2.
      rewrite (cardD1 k) (cardD1 l) !inE eq_sym ne /= add1n; congr (_.+2).
      by apply: eq_card => j; rewrite !inE andbT andbC.
    by rewrite /N => ->; rewrite -addn2 natrD addrK.
  exact: ler_sum.
rewrite /softmax -/Z -mulrBl mulrAC ler_pdivr_mulr //.
apply: (@le_trans _ _ ((E - 1) * (w k + w l + (N - 2%:R) * least))); last first.
  by rewrite ler_wpmul2l // subr_ge0 ltW.
rewrite -subr_ge0 -/N.
have -> : (E - 1) * (w k + w l + (N - 2%:R) * least) - (w k - w l) * (E + N - 1) =
    N * (E * least - w k) + (w l - least) * (2%:R * E + N - 2%:R) by ring.
apply: addr_ge0; apply: mulr_ge0; rewrite ?ler0n ?subr_ge0 //.
have le2 : 2%:R <= 2%:R * E by rewrite ler_pmulr ?ltr0n // ltW.
by apply: (le_trans le2); rewrite ler_addl ler0n.
Qed.

Theorem sharpness (F : realFieldType) (In Out Head : finType)
    (rows columns p1 p2 a b m n r1 r2 : nat)
    (w : Head -> bare_grid rows columns -> ringed_grid rows columns a b -> F)
    (least : Head -> bare_grid rows columns -> F) (E : F)
    (M : Head -> patch_feature p1 p2 In -> patch_feature p1 p2 Out -> F)
    (bias : patch_feature p1 p2 Out -> F) (W : nat -> nat -> In -> Out -> F)
    (q k l : bare_grid rows columns) (d : token_offset m n) s t :
  (r1 <= p1 * m)%N -> (r2 <= p2 * n)%N -> 1 < E ->
  (forall h q, 0 < least h q) -> (forall h q j, least h q <= w h q j <= E * least h q) ->
  expresses r1 r2 (fun h q => softmax (w h q)) M bias W ->
  ringed_key q d = image_key m n k -> (forall d' : token_offset m n, ringed_key q d' != image_key m n l) ->
  `|flattened_kernel p1 p2 m n r1 r2 W (s, t) d| * (E + #|ringed_grid rows columns a b|%:R - 1) <=
    (E - 1) * \sum_h `|M h s t|.
Proof.
move=> reach1 reach2 lt1E pos range equal joined outside.
pose N : F := #|ringed_grid rows columns a b|%:R.
pose gap h := softmax (w h q) (image_key a b k) - softmax (w h q) (image_key a b l).
have only d' : (ringed_key q d' == image_key m n k) = (d' == d).
  rewrite -joined; apply/eqP/eqP => [[e1 e2] | -> //].
  by rewrite [d']surjective_pairing [RHS]surjective_pairing; congr (_, _);
    apply/val_inj; [apply/(@addnI q.1): e1 | apply/(@addnI q.2): e2].
have map : flattened_kernel p1 p2 m n r1 r2 W (s, t) d = \sum_h gap h * M h s t.
  rewrite /gap; under eq_bigr do rewrite mulrBl.
  rewrite sumrB (expresses_outside reach1 reach2 equal s t outside) subr0.
  by rewrite (expresses_map reach1 reach2 equal) (big_pred1 d only).
have lt0 : 0 < E + N - 1.
  by rewrite addrAC ltr_paddr ?ler0n // subr_gt0.
have small h : `|gap h| * (E + N - 1) <= E - 1.
  case: (lerP 0 (gap h)) => sign; last rewrite ltr0_norm // /gap opprB.
    by rewrite ger0_norm //; exact: (softmax_gap _ _ (pos h q) lt1E (range h q)).
  exact: (softmax_gap _ _ (pos h q) lt1E (range h q)).
rewrite map -/N; apply: (@le_trans _ _ ((\sum_h `|gap h| * `|M h s t|) * (E + N - 1))).
  apply: ler_wpmul2r; first exact: ltW.
  apply: (le_trans (ler_norm_sum _ _ _)).
  by apply: ler_sum => h _; rewrite normrM.
rewrite mulr_suml mulr_sumr; apply: ler_sum => h _.
by rewrite mulrAC ler_wpmul2r.
Qed.
