(** The flattened kernel: the maps between tokens as the columns of one matrix.

    Its rows are pairs of a feature of the key's token and one of the query's,
    its columns are the offsets, and its rank is what the number of heads is
    measured by. Here are also the images of one pixel, which single out one
    map of a layer and of a convolution. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import zify.
From Convattn.foundation Require Import attention image grid patches bare.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

(** Entry (s, t), δ: what feature [s] of the token at the offset δ from the
    query adds to feature [t] of the query's token. *)
Definition flattened_kernel (F : fieldType) (In Out : finType) (p1 p2 m n r1 r2 : nat)
    (W : nat -> nat -> In -> Out -> F)
    (st : patch_feature p1 p2 In * patch_feature p1 p2 Out) (d : token_offset m n) : F :=
  output_block m n r1 r2 W d.1 d.2 st.1 st.2.

Arguments flattened_kernel {F In Out} p1 p2 m n r1 r2 W st d.

(** The image whose only pixel that is not zero is one in one channel. *)
Definition unit_image (F : fieldType) (Channel : finType) (rows columns p1 p2 : nat)
    (k : bare_grid rows columns) (s : patch_feature p1 p2 Channel) : image_type F Channel :=
  fun y x c =>
    ((y == p1 * k.1 + s.1.1)%N && (x == p2 * k.2 + s.1.2)%N && (c == s.2))%:R.

Arguments unit_image F {Channel rows columns p1 p2} k s.

(** Division with remainder has one result. *)
Lemma eq_block (p i j : nat) (s t : 'I_p) :
  (p * i + s == p * j + t)%N = (i == j) && (s == t).
Proof.
have lt0p : (0 < p)%N by case: s => s; case: p t.
apply/eqP/andP => [e | [/eqP -> /eqP ->] //].
have := congr1 (divn^~ p) e; rewrite !(mulnC p) !divnMDl // !divn_small // !addn0 => ->.
by split=> //; apply/eqP/val_inj; have := congr1 (modn^~ p) e; rewrite !(mulnC p) !modnMDl !modn_small.
Qed.

(** One axis: a pixel of a framed image is the given one iff patch and place are. *)
Lemma axis_unit (p a side key : nat) (k : 'I_side) (f s : 'I_p) :
  (p * a <= p * key + f < p * a + p * side)%N && (p * key + f - p * a == p * k + s)%N =
    (key == k + a)%N && (f == s).
Proof.
rewrite -eq_block; have : (p * k + s < p * side)%N.
  apply: (@leq_trans (p * k.+1)); first by rewrite mulnS addnC ltn_add2r.
  by rewrite leq_mul2l (ltn_ord k) orbT.
by rewrite mulnDr; lia.
Qed.

Section UnitImages.

Variables (F : fieldType) (In Out : finType) (rows columns p1 p2 : nat).
Variables (k : bare_grid rows columns) (s : patch_feature p1 p2 In).

(** Its only token that is not zero. *)
Lemma patch_token_unit (a b : nat) (k' : ringed_grid rows columns a b) f :
  patch_token (unit_image F k s) k' f = ((k' == image_key a b k) && (f == s))%:R.
Proof.
rewrite /patch_token /zero_framed /unit_image.
have -> : (k' == image_key a b k) = (k'.1 == k.1 + a :> nat)%N && (k'.2 == k.2 + b :> nat)%N by [].
have -> : (f == s) = [&& f.1.1 == s.1.1, f.1.2 == s.1.2 & f.2 == s.2].
  by case: f s => [[f1 f2] f3] [[s1 s2] s3]; rewrite -!pair_eqE /= andbA.
have regroup u v w x y : (u && v) && [&& w, x & y] = [&& u && w, v && x & y].
  by case: u v w x => [] [] [] [].
rewrite regroup -(axis_unit a k'.1 k.1) -(axis_unit b k'.2 k.2).
case: ifP => [/andP [-> ->] //= | /negbT]; first by rewrite andbA.
by rewrite negb_and => /orP [] /negbTE -> //; rewrite andbF.
Qed.

(** What a layer makes of it. *)
Lemma attention_unit (Head : finType) (a b : nat)
    (A : Head -> bare_grid rows columns -> ringed_grid rows columns a b -> F)
    (M : Head -> patch_feature p1 p2 In -> patch_feature p1 p2 Out -> F) q t :
  attention_layer A M (patch_token (unit_image F k s)) q t =
    \sum_h A h q (image_key a b k) * M h s t.
Proof.
apply: eq_bigr => h _; rewrite /feature_map (bigD1 s) //= [X in _ + X]big1 ?addr0; last first.
  move=> f /negbTE nf; rewrite /attend big1 ?mul0r // => k' _.
  by rewrite patch_token_unit nf andbF mulr0.
rewrite /attend (bigD1 (image_key a b k)) //= big1 ?addr0 => [|k' /negbTE nk].
  by rewrite patch_token_unit !eqxx mulr1.
by rewrite patch_token_unit nk mulr0.
Qed.

(** What a convolution makes of it. *)
Lemma convolution_unit (m n r1 r2 : nat) (W : nat -> nat -> In -> Out -> F)
    (q : bare_grid rows columns) (t : patch_feature p1 p2 Out) :
  (r1 <= p1 * m)%N -> (r2 <= p2 * n)%N ->
  convolution (p1 * rows) (p2 * columns) r1 r2 W (unit_image F k s)
      (p1 * q.1 + t.1.1)%N (p2 * q.2 + t.1.2)%N t.2 =
    \sum_(d | ringed_key q d == image_key m n k) flattened_kernel p1 p2 m n r1 r2 W (s, t) d.
Proof.
move=> le1 le2; rewrite -(convolution_of_tokens W _ q t le1 le2) [RHS]big_mkcond /=.
apply: eq_bigr => d _; rewrite /feature_map (bigD1 s) //= big1 ?addr0 => [|f /negbTE nf].
  by rewrite patch_token_unit eqxx andbT; case: ifP => _; rewrite ?mul1r ?mul0r.
by rewrite patch_token_unit nf andbF mul0r.
Qed.

End UnitImages.

(** Of the image that is zero both make nothing. *)
Lemma zero_framed_blank (F : fieldType) (Channel : Type) (height width top left y x : nat) :
  zero_framed height width top left (fun _ _ _ => 0 : F) y x =1 fun _ : Channel => 0.
Proof. by move=> c; rewrite /zero_framed; case: ifP. Qed.

Lemma attention_blank (F : fieldType) (In Out Head : finType) (rows columns p1 p2 a b : nat)
    (A : Head -> bare_grid rows columns -> ringed_grid rows columns a b -> F)
    (M : Head -> patch_feature p1 p2 In -> patch_feature p1 p2 Out -> F) q t :
  attention_layer A M (patch_token (fun _ _ _ => 0)) q t = 0.
Proof.
rewrite layer_as_coefficients big1 // => k _.
by rewrite /feature_map big1 // => s _; rewrite /patch_token zero_framed_blank mul0r.
Qed.

Lemma convolution_blank (F : fieldType) (In : finType) (Out : Type) (height width r1 r2 : nat)
    (W : nat -> nat -> In -> Out -> F) (y x : nat) (o : Out) :
  convolution height width r1 r2 W (fun _ _ _ => 0) y x o = 0.
Proof.
rewrite /convolution big1 // => i _; rewrite big1 // => j _; rewrite big1 // => c _.
by rewrite zero_framed_blank mul0r.
Qed.

(** Offset and key determine each other. *)
Lemma ringed_key_image (rows columns m n : nat) (q k : bare_grid rows columns)
    (d : token_offset m n) :
  (ringed_key q d == image_key m n k) = (q.1 + d.1 == k.1 + m)%N && (q.2 + d.2 == k.2 + n)%N.
Proof. by []. Qed.

(** It is linear in the kernel. *)
Lemma flattened_line (F : fieldType) (In Out : finType) (p1 p2 m n r1 r2 : nat)
    (V W : nat -> nat -> In -> Out -> F) (x : F) st (d : token_offset m n) :
  flattened_kernel p1 p2 m n r1 r2 (fun i j c o => V i j c o + x * W i j c o) st d =
    flattened_kernel p1 p2 m n r1 r2 V st d + x * flattened_kernel p1 p2 m n r1 r2 W st d.
Proof. by rewrite /flattened_kernel /output_block; case: joining_tap => [//|]; rewrite mulr0 addr0. Qed.
