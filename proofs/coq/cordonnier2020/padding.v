(** C20.padding: a ring of zeros makes the layer the zero-padded convolution; without it it is not.

    K₁ = 2 r₁ + 1 and K₂ = 2 r₂ + 1 are odd, tokens are pixels, and the layer is Theorem 1's: one
    quadratic head for each shift δ, its weights the softmax of x^|k - (q + δ)|², x = exp(-α), with
    the kernel's taps as its maps. For every kernel and image:

    1. Pad the image with r₁ rows and r₂ columns of zeros on each side, apply the layer to all pixels
       of the padded image, and crop: as α → ∞ the result tends to the zero-padded convolution. (It
       is off by at most x times a number that does not depend on x.)
    2. Apply the layer to the image alone: the result tends to the convolution with the edge repeated.
    3. If K₁ ≥ 3 and the image has two rows, or K₂ ≥ 3 and it has two columns, there are a kernel and
       an image at which no layer on the image alone computes the zero-padded convolution, nor any
       limit of layers, so long as their rows sum to one: at some pixel it is off by 1/2 at least,
       whatever the heads, their number, their maps, the bias and their attention, which may depend
       on the image in any way.

    Against the text, 3: that the shapes agree ("SAME") does not make the values agree. On an image of
    one pixel every kernel can be zero-padded, so that 3 needs the second row or column. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import zify.
From Convattn.foundation Require Import attention image heads grid bare pixels.
From Convattn.sharpened Require Import padding boundary_clamped.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** The pixels of an image as tokens, without a ring. *)
Definition bare_pixel (F : fieldType) (Channel : Type) (rows columns : nat) (X : image_type F Channel)
    (k : bare_grid rows columns) : Channel -> F := X k.1 k.2.

Definition image_of_pixels (F : fieldType) (Channel : Type) (rows columns : nat)
    (X : bare_grid rows columns -> Channel -> F) : image_type F Channel :=
  fun y x c => if insub y is Some k1 then if insub x is Some k2 then X (k1, k2) c else 0 else 0.

Lemma bare_pixel_image (F : fieldType) (Channel : Type) (rows columns : nat)
    (X : bare_grid rows columns -> Channel -> F) k c : bare_pixel (image_of_pixels X) k c = X k c.
Proof. by case: k => k1 k2; rewrite /bare_pixel /image_of_pixels /= !insub_ord. Qed.

(** Within the padding a pixel of the image has all its targets. *)
Lemma clamped_key_padded (rows columns r1 r2 : nat) (q : bare_grid rows columns)
    (d : token_offset r1 r2) :
  clamped_key (image_key r1 r2 q : bare_grid (rows + r1.*2) (columns + r2.*2)) d = ringed_key q d.
Proof.
have inside (side r : nat) (y : 'I_side) (i : 'I_r.*2.+1) :
    clamped (side + r.*2) r (y + r + i) = (y + i)%N.
  by case: y i => y lty [i lti] /=; rewrite /clamped; lia.
by congr (_, _); apply: val_inj; rewrite /= inside.
Qed.

Lemma convolution_of_bare_pixels (F : fieldType) (In : finType) (Out : Type) (rows columns r1 r2 : nat)
    (W : nat -> nat -> In -> Out -> F) (X : image_type F In) (q : bare_grid rows columns) (o : Out) :
  bare_convolution (fun d : token_offset r1 r2 => W d.1 d.2) (bare_pixel X) q o =
    convolution rows columns r1 r2 W X q.1 q.2 o.
Proof.
rewrite -convolution_of_pixels; apply: eq_bigr => d _; apply: eq_feature_map => // c.
by rewrite pixel_token_bare.
Qed.

(** A kernel of one tap beside the centre. *)
Definition one_tap (F : fieldType) (In Out : Type) (u v : nat) (i j : nat) (_ : In) (_ : Out) : F :=
  ((i == u) && (j == v))%:R.

(** It has not the same T_q everywhere, if some pixel lacks its target and another has it. *)
Lemma one_tap_sum (F : fieldType) (In Out : Type) (rows columns r1 r2 : nat)
    (d : token_offset r1 r2) (q : bare_grid rows columns) (i : In) (o : Out) :
  available_sum (fun d' : token_offset r1 r2 => one_tap F d.1 d.2 d'.1 d'.2) q i o =
    (isSome (bare_target q d))%:R.
Proof.
rewrite /available_sum big_mkcond (bigD1 d) //= /one_tap !eqxx big1 ?addr0; first by case: ifP.
move=> d' /negbTE ne; case: ifP => // _.
by case: d d' ne => u v [u' v']; rewrite -pair_eqE /= -!val_eqE /= => ->.
Qed.

Theorem padding (F : numFieldType) (In Out : finType) (rows columns r1 r2 : nat) :
  let quadratic x (side1 side2 : nat) (d : token_offset r1 r2) (q : bare_grid side1 side2) :=
    softmax (fun k => x ^+ squared_distance q d k) in
  let taps (W : nat -> nat -> In -> Out -> F) (d : token_offset r1 r2) := W d.1 d.2 in
  let approaches (layer : F -> F) limit :=
    exists bound, forall x, 0 < x -> x <= 1 -> `|layer x - limit| <= x * bound in
  [/\ forall W (X : image_type F In) (q : bare_grid rows columns) o,
        approaches
          (fun x =>
            attention_layer (quadratic x (rows + r1.*2)%N (columns + r2.*2)%N) (taps W)
              (pixel_token X) (image_key r1 r2 q) o)
          (convolution rows columns r1 r2 W X q.1 q.2 o),
      forall W (X : image_type F In) (q : bare_grid rows columns) o,
        approaches
          (fun x => attention_layer (quadratic x rows columns) (taps W) (bare_pixel X) q o)
          (framed_convolution r1 r2 W (fun y x => X (clamped rows r1 y) (clamped columns r2 x)) q.1 q.2 o)
    & (0 < r1)%N && (1 < rows)%N && (0 < columns)%N || (0 < r2)%N && (1 < columns)%N && (0 < rows)%N ->
      (0 < #|In|)%N -> (0 < #|Out|)%N ->
      exists (W : nat -> nat -> In -> Out -> F) (X : image_type F In),
      forall (Head : finType) (V : Head -> In -> Out -> F)
        (A : Head -> bare_grid rows columns -> bare_grid rows columns -> F)
        (b : Out -> F),
      (forall h q, \sum_k A h q k = 1) ->
      exists (q : bare_grid rows columns) (o : Out),
        2%:R^-1 <= `|attention_layer A V (bare_pixel X) q o + b o
                     - convolution rows columns r1 r2 W X q.1 q.2 o|].
Proof.
move=> quadratic taps approaches; split=> [W X q o|W X q o|large].
- have [bound near] := @quadratic_near_clamped F In Out (rows + r1.*2) (columns + r2.*2) r1 r2
    (taps W) (pixel_token X) (image_key r1 r2 q) o.
  exists bound => x gt0 le1; rewrite -convolution_of_pixels.
  suff <- : attention_layer (hard_attention F (fun q d => Some (clamped_key q d))) (taps W)
      (pixel_token X) (image_key r1 r2 q) o =
    \sum_(d : token_offset r1 r2) feature_map (W d.1 d.2) (pixel_token X (ringed_key q d)) o.
    exact: near.
  rewrite hard_heads; apply: eq_bigr => d _; apply: eq_feature_map => // c.
  by rewrite clamped_key_padded.
- have [bound near] := quadratic_near_clamped (taps W) (@bare_pixel F In rows columns X) q o.
  exists bound => x gt0 le1.
  suff <- : attention_layer (hard_attention F (fun q d => Some (clamped_key q d))) (taps W)
      (bare_pixel X) q o =
    framed_convolution r1 r2 W (fun y x => X (clamped rows r1 y) (clamped columns r2 x)) q.1 q.2 o.
    exact: near.
  by rewrite hard_heads /framed_convolution [RHS]pair_bigA.
move=> /card_gt0P[i _] /card_gt0P[o _].
suff [d [q [q' [absent present]]]] : exists (d : token_offset r1 r2) (q q' : bare_grid rows columns),
    isSome (bare_target q d) = false /\ isSome (bare_target q' d) = true.
  pose X : image_type F In := fun _ _ i' => (i' == i)%:R.
  exists (one_tap F d.1 d.2), X => Head V A b one; pose c := \sum_h V h i o + b o.
  have off p : attention_layer A V (bare_pixel X) p o + b o
      - convolution rows columns r1 r2 (one_tap F d.1 d.2) X p.1 p.2 o =
    c - (isSome (bare_target p d))%:R.
    rewrite -convolution_of_bare_pixels -(one_tap_sum F d p i o) -convolution_of_equal_tokens.
    by rewrite (@layer_of_equal_tokens _ _ _ _ _ _ A V p i o).
  have [far|near] := boolP (2%:R^-1 <= `|c|); first by exists q, o; rewrite off absent subr0.
  move: near; rewrite -real_ltNge ?realE ?normr_ge0 ?invr_ge0 ?ler0n // => near.
  exists q', o; rewrite off present -(ler_add2l 2%:R^-1) -[2%:R^-1]div1r -splitr.
  have := ler_norm_sub c (c - 1); rewrite subKr normr1 => /le_trans; apply.
  by rewrite ler_add2r div1r ltW.
have [lty ltx] : (0 < rows)%N /\ (0 < columns)%N by lia.
pose first : bare_grid rows columns := (Ordinal lty, Ordinal ltx).
case/orP: large => /andP[/andP[pos two] _].
  have lt : (r1.-1 < r1.*2.+1)%N by lia.
  exists (Ordinal lt, inord r2), first, (Ordinal two, Ordinal ltx).
  by rewrite !bare_target_exists /= inordK //; lia.
have lt : (r2.-1 < r2.*2.+1)%N by lia.
exists (inord r1, Ordinal lt), first, (Ordinal lty, Ordinal two).
by rewrite !bare_target_exists /= inordK //; lia.
Qed.
