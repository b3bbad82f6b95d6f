(** The convolution of an image, read off its tokens: Σ_δ X_(q+δ) M_δ with the
    explicit blocks M_δ. This is the algebra of L21's Theorem 1. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import zify.
From Convattn.foundation Require Import attention image grid.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Section Axis.

Variable F : fieldType.

Lemma sum_from (a n : nat) (f : nat -> F) :
  \sum_(a <= i < a + n) f i = \sum_(j < n) f (j + a)%N.
Proof. by rewrite -{1}[a]add0n big_addn addKn big_mkord. Qed.

(** n blocks of p are n p in a row. *)
Lemma sum_blocks (n p : nat) (f : nat -> F) :
  \sum_(i < n) \sum_(s < p) f (p * i + s)%N = \sum_(a < p * n) f a.
Proof.
elim: n => [|n IH]; first by rewrite muln0 !big_ord0.
rewrite big_ord_recr /= IH -!(big_mkord xpredT f) mulnS addnC.
rewrite [RHS](@big_cat_nat _ _ _ (p * n)%N) ?leq_addr //=; congr (_ + _).
by rewrite sum_from; apply: eq_bigr => s _; rewrite addnC.
Qed.

(** The taps of one axis: each is met once, at its distance from the query. *)
Lemma axis_sum (p m r t : nat) (g : nat -> nat -> F) : (r <= p * m)%N -> (t < p)%N ->
  \sum_(i < m.*2.+1) \sum_(s < p)
      (if axis_tap p m r i s t is Some u then g (p * i + s)%N u else 0) =
    \sum_(u < r.*2.+1) g (u + (p * m - r) + t)%N u.
Proof.
move=> lerm lttp; set off := (p * m + t - r)%N.
pose f a := if (off <= a < off + r.*2.+1)%N then g a (a - off)%N else 0.
transitivity (\sum_(a < p * m.*2.+1) f a).
  rewrite -sum_blocks; apply: eq_bigr => i _; apply: eq_bigr => s _.
  rewrite /axis_tap /f /off.
  case: ifP => c1; case: ifP => c2 //; try (exfalso; lia).
  by congr g; lia.
rewrite -(big_mkord xpredT f).
have le1 : (off + r.*2.+1 <= p * m.*2.+1)%N by rewrite /off; lia.
rewrite (@big_cat_nat _ _ _ off) //=; last by lia.
rewrite (@big_cat_nat _ _ _ (off + r.*2.+1) off) ?leq_addr //=.
rewrite big_nat_cond big1 ?add0r => [|a]; last by rewrite /f; case: ifP => //; lia.
rewrite [X in _ + X]big_nat_cond [X in _ + X]big1 ?addr0 => [|a]; last first.
  by rewrite /f; case: ifP => //; lia.
rewrite sum_from; apply: eq_bigr => u _.
rewrite /f; case: ifP => [_|]; last by case: u => u ltu /=; lia.
by congr g; rewrite /off; lia.
Qed.

End Axis.

(** The offsets within reach cover the kernel. *)
Lemma patch_reach_suffices (p r : nat) : (0 < p)%N -> (r <= p * patch_reach p r)%N.
Proof.
rewrite /patch_reach => lt0p; have := divn_eq (r + p.-1) p.
by have := ltn_pmod (r + p.-1) lt0p; lia.
Qed.

Lemma zero_framed_shift (F : fieldType) (Channel : Type) (height width top left a b : nat)
    (X : image_type F Channel) (y x : nat) (c : Channel) :
  zero_framed height width (top + a) (left + b) X (y + a)%N (x + b)%N c =
    zero_framed height width top left X y x c.
Proof.
rewrite /zero_framed; case: ifP => c1; case: ifP => c2 //; try (exfalso; lia).
by congr X; lia.
Qed.

Section Patches.

Variables (F : fieldType) (In Out : finType).
Variables (rows columns p1 p2 m n r1 r2 : nat).

Lemma convolution_of_tokens (W : nat -> nat -> In -> Out -> F) (X : image_type F In)
    (q : bare_grid rows columns) (t : patch_feature p1 p2 Out) :
  (r1 <= p1 * m)%N -> (r2 <= p2 * n)%N ->
  \sum_(d : token_offset m n)
      feature_map (output_block m n r1 r2 W d.1 d.2)
        (patch_token X (ringed_key q d)) t =
    convolution (p1 * rows) (p2 * columns) r1 r2 W X
      (p1 * q.1 + t.1.1)%N (p2 * q.2 + t.1.2)%N t.2.
Proof.
case: t => -[t1 t2] o /= le1 le2.
pose Z y x c := zero_framed (p1 * rows) (p2 * columns) (p1 * m) (p2 * n) X
  (p1 * q.1 + y)%N (p2 * q.2 + x)%N c.
pose g y x u v := \sum_c Z y x c * W u v c o.
transitivity (\sum_(i < m.*2.+1) \sum_(s1 < p1)
    (if axis_tap p1 m r1 i s1 t1 is Some u then
       \sum_(j < n.*2.+1) \sum_(s2 < p2)
         (if axis_tap p2 n r2 j s2 t2 is Some v then g (p1 * i + s1)%N (p2 * j + s2)%N u v else 0)
     else 0)).
  rewrite -(pair_bigA _ (fun (i : 'I_m.*2.+1) (j : 'I_n.*2.+1) => feature_map (output_block m n r1 r2 W i j)
    (patch_token X (ringed_key q (i, j))) (t1, t2, o))) /=.
  apply: eq_bigr => i _; rewrite /feature_map.
  have split_feature (f : 'I_p1 -> 'I_p2 -> In -> F) :
      \sum_(s : 'I_p1 * 'I_p2 * In) f s.1.1 s.1.2 s.2 = \sum_s1 \sum_s2 \sum_c f s1 s2 c.
    by rewrite pair_bigA pair_bigA.
  transitivity (\sum_(s1 < p1) \sum_(j < n.*2.+1) \sum_(s2 < p2) \sum_c
      Z (p1 * i + s1)%N (p2 * j + s2)%N c *
        output_block m n r1 r2 W i j (s1, s2, c) (t1, t2, o)).
    rewrite [RHS]exchange_big /=; apply: eq_bigr => j _.
    rewrite -(split_feature (fun s1 s2 c => Z (p1 * i + s1)%N (p2 * j + s2)%N c *
        output_block m n r1 r2 W i j (s1, s2, c) (t1, t2, o))).
    apply: eq_bigr => -[[s1 s2] c] _ /=; congr (_ * _).
    by rewrite /patch_token /Z /=; congr zero_framed; rewrite mulnDr addnA.
  apply: eq_bigr => s1 _; rewrite /output_block /joining_tap /=.
  case: (axis_tap p1 m r1 i s1 t1) => [u|]; last first.
    by rewrite big1 // => j _; rewrite big1 // => s2 _; rewrite big1 // => c _; rewrite mulr0.
  apply: eq_bigr => j _; apply: eq_bigr => s2 _.
  case: (axis_tap p2 n r2 j s2 t2) => [v|] //.
  by rewrite big1 // => c _; rewrite mulr0.
rewrite (axis_sum (fun y u => \sum_(j < n.*2.+1) \sum_(s2 < p2)
  (if axis_tap p2 n r2 j s2 t2 is Some v then g y (p2 * j + s2)%N u v else 0)) le1 (ltn_ord t1)).
rewrite /convolution; apply: eq_bigr => u _.
rewrite (axis_sum (fun x v => g (u + (p1 * m - r1) + t1)%N x u v) le2 (ltn_ord t2)).
apply: eq_bigr => v _; apply: eq_bigr => c _; congr (_ * _).
rewrite /Z -[RHS](zero_framed_shift _ _ _ _ (p1 * m - r1) (p2 * n - r2)) !subnKC //.
by congr zero_framed; rewrite addnA addnAC addnA.
Qed.

End Patches.
