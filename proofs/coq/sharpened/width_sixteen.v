(** S.width (1), with numbers: sixteen heads of width 64 for 3 × 3 kernels on 16 × 16 patches of three channels.

    For every 3 × 3 kernel W over an ordered field, of three channels in and any number out, and every ε > 0
    there are sixteen heads of width 64 at finite scores whose layer is off the zero-padded convolution by at most
    ε, at every output of every image whose pixels lie between -1 and 1, of any number of patches of 16 × 16
    pixels, with a ring of zero patches. What the heads are made of is as in width.

    At least twelve are needed where the middle map is regular (width_necessary). Not covered: exact layers. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import zify.
From Convattn.foundation Require Import attention image grid rank head_dimension.
From Convattn.foundation Require Import flattened_kernel offset_heads split_heads joined_features.
From Convattn.sharpened Require Import width.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory Num.Theory Order.Theory.
Local Open Scope ring_scope.

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
