(** L21.variants: stride and dilation through patches (amended: "we only use the linearity").

    The image has p₁ · rows by p₂ · columns pixels in patches of p₁ × p₂, in a ring of m × n zero
    patches; K₁ = 2 r₁ + 1, K₂ = 2 r₂ + 1. For every field, size, kernel and number of channels:

    1. Dilation D ≥ 1, with D₁ r₁ ≤ p₁ m and D₂ r₂ ≤ p₂ n: hard heads with the W^O of the kernel that
       has D - 1 zeros between its taps are the zero-padded convolution of that dilation.
    2. Stride s, at full resolution: every output (y, x) of the zero-padded convolution of stride s is
       read off the layer of Theorem 1, at the patch and pixel that hold the pixel (s₁ y, s₂ x).
    3. Stride s, straight into patches of (p₁/s₁) × (p₂/s₂) outputs: if s divides p on both axes,
       hard heads whose W^O has the columns of the kept pixels alone give it.
    4. On an axis of two patches or more, all patches keep the same pixels only if s divides p: a
       stride that does not is no translation invariant map of patches to patches, which is what
       heads with shared maps give. So linearity is not all that the theorem uses. Not stated: that
       no layer gives such a stride. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import zify.
From Convattn.foundation Require Import attention image heads grid patches pixels.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

(** The kernel with D - 1 zeros between its taps. *)
Definition dilated_kernel (F : fieldType) (In Out : Type) (D1 D2 : nat)
    (W : nat -> nat -> In -> Out -> F) (i j : nat) (c : In) (o : Out) : F :=
  if (D1 %| i)%N then if (D2 %| j)%N then W (i %/ D1)%N (j %/ D2)%N c o else 0 else 0.

(** On one axis only the multiples of D count. *)
Lemma sum_multiples (F : fieldType) (D r : nat) (g : nat -> nat -> F) : (0 < D)%N ->
  \sum_(a < (D * r).*2.+1) (if (D %| a)%N then g a (a %/ D)%N else 0) =
    \sum_(i < r.*2.+1) g (D * i)%N i.
Proof.
move=> lt0D; rewrite -big_mkcond /=.
have bound (i : 'I_r.*2.+1) : (D * i < (D * r).*2.+1)%N.
  by rewrite ltnS doubleMr leq_mul2l -ltnS ltn_ord orbT.
rewrite (reindex_onto (fun i => Ordinal (bound i)) (fun a => inord (a %/ D))) /= => [|a /dvdnP[k ea]].
  apply: eq_big => [i|i _]; last by rewrite mulKn.
  by rewrite dvdn_mulr //= mulKn // -val_eqE /= inordK ?eqxx.
apply: val_inj; rewrite /= ea mulnK // inordK; first by rewrite mulnC.
rewrite -(ltn_pmul2l lt0D) [(D * k)%N]mulnC -ea.
by have := ltn_ord a; rewrite mulnS -doubleMr; lia.
Qed.

Lemma convolution_of_dilated_kernel (F : fieldType) (In : finType) (Out : Type)
    (height width D1 D2 r1 r2 : nat) (W : nat -> nat -> In -> Out -> F) (X : image_type F In) y x o :
  (0 < D1)%N -> (0 < D2)%N ->
  convolution height width (D1 * r1) (D2 * r2) (dilated_kernel D1 D2 W) X y x o =
    convolution_of_dilation height width D1 D2 r1 r2 W X y x o.
Proof.
move=> lt0D1 lt0D2; rewrite /convolution /convolution_of_dilation.
pose z a b c := zero_framed height width (D1 * r1) (D2 * r2) X (y + a)%N (x + b)%N c.
pose columns a i := \sum_(j < r2.*2.+1) \sum_c z a (D2 * j)%N c * W i j c o.
rewrite -(sum_multiples r1 (fun a i => columns a i)) //.
apply: eq_bigr => a _; rewrite /dilated_kernel; case: ifP => _; last first.
  by rewrite big1 // => b _; rewrite big1 // => c _; rewrite mulr0.
rewrite /columns -(sum_multiples r2 (fun b j => \sum_c z a b c * W (a %/ D1)%N j c o)) //.
apply: eq_bigr => b _; case: ifP => _ //.
by rewrite big1 // => c _; rewrite mulr0.
Qed.

(** The pixel of a patch that is kept as its output [u]. *)
Lemma kept_in_patch (p s : nat) (u : 'I_(p %/ s)) : (s * u < p)%N.
Proof.
case: u => u; case: s => [|s] ltu /=; first by rewrite divn0 in ltu.
have := leq_trunc_div p s.+1.
have : (s.+1 * u.+1 <= p %/ s.+1 * s.+1)%N by rewrite mulnC leq_mul2r ltu orbT.
by rewrite mulnS; lia.
Qed.

Definition kept_feature (p1 p2 s1 s2 : nat) (Out : finType)
    (u : patch_feature (p1 %/ s1) (p2 %/ s2) Out) : patch_feature p1 p2 Out :=
  (Ordinal (kept_in_patch u.1.1), Ordinal (kept_in_patch u.1.2), u.2).

(** Every pixel is some pixel of some patch. *)
Lemma pixel_of_patch (p rows y : nat) : (y < p * rows)%N ->
  exists (q : 'I_rows) (t : 'I_p), (p * q + t)%N = y.
Proof.
move=> lty; have lt0p : (0 < p)%N by case: p lty.
have ltq : (y %/ p < rows)%N by rewrite ltn_divLR // mulnC.
by exists (Ordinal ltq), (Ordinal (ltn_pmod y lt0p)); rewrite /= mulnC -divn_eq.
Qed.

Theorem variants (F : fieldType) (In Out : finType) (rows columns p1 p2 m n r1 r2 : nat)
    (W : nat -> nat -> In -> Out -> F) :
  let layer (Feature : Type) (B : token_offset m n -> patch_feature p1 p2 In -> Feature -> F)
      (X : image_type F In) (q : bare_grid rows columns) :=
    attention_layer (hard_attention F (@ringed_target rows columns m n)) B (patch_token X) q in
  let block r1 r2 W (d : token_offset m n) :=
    output_block (p1 := p1) (p2 := p2) (In := In) (Out := Out) (F := F) m n r1 r2 W d.1 d.2 in
  [/\ forall D1 D2, (0 < D1)%N -> (0 < D2)%N -> (D1 * r1 <= p1 * m)%N -> (D2 * r2 <= p2 * n)%N ->
        forall X q t,
        layer _ (block (D1 * r1)%N (D2 * r2)%N (dilated_kernel D1 D2 W)) X q t =
          convolution_of_dilation (p1 * rows) (p2 * columns) D1 D2 r1 r2 W X
            (p1 * q.1 + t.1.1)%N (p2 * q.2 + t.1.2)%N t.2,
      forall s1 s2, (r1 <= p1 * m)%N -> (r2 <= p2 * n)%N ->
        forall y x o, (s1 * y < p1 * rows)%N -> (s2 * x < p2 * columns)%N ->
        exists (q : bare_grid rows columns) (t : patch_feature p1 p2 Out), forall X,
          [/\ (p1 * q.1 + t.1.1 = s1 * y)%N, (p2 * q.2 + t.1.2 = s2 * x)%N &
            layer _ (block r1 r2 W) X q t =
              strided_convolution (p1 * rows) (p2 * columns) s1 s2 r1 r2 W X y x o],
      forall s1 s2, (r1 <= p1 * m)%N -> (r2 <= p2 * n)%N -> (s1 %| p1)%N -> (s2 %| p2)%N ->
        forall X q (u : patch_feature (p1 %/ s1) (p2 %/ s2) Out),
        layer _ (fun d s u => block r1 r2 W d s (kept_feature u)) X q u =
          strided_convolution (p1 * rows) (p2 * columns) s1 s2 r1 r2 W X
            (p1 %/ s1 * q.1 + u.1.1)%N (p2 %/ s2 * q.2 + u.1.2)%N u.2
    & forall s p patches, (0 < p)%N -> (1 < patches)%N ->
        (forall q t, (q < patches)%N -> (t < p)%N -> (s %| p * q + t)%N = (s %| t)%N) ->
        (s %| p)%N].
Proof.
move=> layer block; split.
- move=> D1 D2 lt0D1 lt0D2 le1 le2 X q t.
  by rewrite /layer hard_heads /ringed_target convolution_of_tokens // convolution_of_dilated_kernel.
- move=> s1 s2 le1 le2 y x o lty ltx.
  have [q1 [t1 e1]] := pixel_of_patch lty; have [q2 [t2 e2]] := pixel_of_patch ltx.
  exists (q1, q2), (t1, t2, o) => X; split=> //.
  by rewrite /layer hard_heads /ringed_target convolution_of_tokens // /convolution /= e1 e2.
- move=> s1 s2 le1 le2 div1 div2 X q u.
  rewrite -[LHS]/(layer _ (block r1 r2 W) X q (kept_feature u)).
  rewrite /layer hard_heads /ringed_target convolution_of_tokens // /convolution /strided_convolution /=.
  by rewrite !mulnDr !mulnA ![(_ * (_ %/ _))%N]mulnC !divnK.
move=> s p patches lt0p two same; have := same 1%N 0%N two lt0p.
by rewrite muln1 addn0 dvdn0.
Qed.
