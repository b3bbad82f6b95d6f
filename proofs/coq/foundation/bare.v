(** The bare grid: the image's own tokens and no others, and the convolution of
    an image framed in anything, read off the tokens of that frame. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import zify.
From Convattn.foundation Require Import attention image heads grid patches.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Section Targets.

Variables (side m y i : nat).

Lemma axis_target_some (k : 'I_side) : (axis_target side m y i == Some k) = (k + m == y + i)%N.
Proof.
case: k => k ltk; rewrite /axis_target /=.
case: ifP => [lem|nlem]; last by apply/esym/negbTE; lia.
case: insubP => [u _ eu|nlt]; last by apply/esym/negbTE; lia.
by rewrite (inj_eq Some_inj) -val_eqE /= eu; lia.
Qed.

Lemma axis_target_exists : isSome (axis_target side m y i) = (m <= y + i < m + side)%N.
Proof. by rewrite /axis_target; case: ifP => //= lem; case: insubP => /=; lia. Qed.

End Targets.

Lemma image_bound (side a : nat) (y : 'I_side) : (y + a < side + a.*2)%N.
Proof. by case: y => y ltys /=; lia. Qed.

(** The key of the ringed grid at which a token of the image stands. *)
Definition image_key (rows columns a b : nat) (k : bare_grid rows columns) :
    ringed_grid rows columns a b :=
  (Ordinal (image_bound a k.1), Ordinal (image_bound b k.2)).

Arguments image_key {rows columns} a b k.

Section BareTargets.

Variables (rows columns m n : nat).
Implicit Types (q k : bare_grid rows columns) (d : token_offset m n).

Lemma bare_target_some q d k :
  (bare_target q d == Some k) = ((k.1 + m == q.1 + d.1) && (k.2 + n == q.2 + d.2))%N.
Proof.
rewrite -!axis_target_some /bare_target.
by case: (axis_target rows m _ _) (axis_target columns n _ _) => [y|] [x|] //; rewrite andbF.
Qed.

Lemma bare_target_exists q d :
  isSome (bare_target q d) = (m <= q.1 + d.1 < m + rows)%N && (n <= q.2 + d.2 < n + columns)%N.
Proof.
rewrite -!axis_target_exists /bare_target.
by case: (axis_target rows m _ _) (axis_target columns n _ _) => [y|] [x|].
Qed.

(** The offset of a token from itself. *)
Definition centre_offset : token_offset m n := (inord m, inord n).

Lemma bare_target_centre q : bare_target q centre_offset = Some q.
Proof. by apply/eqP; rewrite bare_target_some /= !inordK ?eqxx //; lia. Qed.

Lemma image_key_centre k : image_key m n k = ringed_key k centre_offset.
Proof. by congr (_, _); apply: val_inj; rewrite /= inordK //; lia. Qed.

Lemma image_key_eq k q d : (image_key m n k == ringed_key q d) = (bare_target q d == Some k).
Proof. by rewrite bare_target_some. Qed.

(** From one query to one key there is one offset. *)
Lemma bare_target_inj q k d d' : bare_target q d = Some k -> bare_target q d' = Some k -> d = d'.
Proof.
move=> /eqP; rewrite bare_target_some => /andP[/eqP e1 /eqP e2].
move=> /eqP; rewrite bare_target_some e1 e2 !eqn_add2l => /andP[/eqP f1 /eqP f2].
by case: d d' f1 f2 {e1 e2} => [i j] [i' j'] f1 f2; congr (_, _); apply: val_inj.
Qed.

Lemma sum_one_target (F : fieldType) (g : token_offset m n -> F) q d k : bare_target q d = Some k ->
  \sum_d' one_hot F (bare_target q d') k * g d' = g d.
Proof.
move=> target_d; rewrite (bigD1 d) //= /one_hot target_d eqxx mul1r big1 ?addr0 // => d' /eqP nd.
case: eqP => [/esym target_d'|]; last by rewrite mul0r.
by case: nd; apply: bare_target_inj target_d' target_d.
Qed.

(** On more than m × n tokens every offset leads from some token to some other. *)
Lemma offset_occurs d : (m < rows)%N -> (n < columns)%N -> exists q k, bare_target q d = Some k.
Proof.
case: d => -[i lti] [j ltj] lt1 lt2.
have [y1 k1] : (m - i < rows)%N /\ (i - m < rows)%N by lia.
have [y2 k2] : (n - j < columns)%N /\ (j - n < columns)%N by lia.
exists (Ordinal y1, Ordinal y2), (Ordinal k1, Ordinal k2).
by apply/eqP; rewrite bare_target_some /=; lia.
Qed.

(** With one token more on an axis, the last is out of reach from the first. *)
Lemma token_out_of_reach : (m < rows)%N -> (n < columns)%N ->
  (m.+1 < rows)%N || (n.+1 < columns)%N -> exists q k, forall d, bare_target q d != Some k.
Proof.
move=> lt1 lt2 wide; have [y1 k1] : (0 < rows)%N /\ (rows.-1 < rows)%N by lia.
have [y2 k2] : (0 < columns)%N /\ (columns.-1 < columns)%N by lia.
exists (Ordinal y1, Ordinal y2), (Ordinal k1, Ordinal k2) => -[[i lti] [j ltj]].
by rewrite bare_target_some /=; apply/negP; lia.
Qed.

End BareTargets.

Section Tokens.

Variables (F : fieldType) (Channel : finType) (rows columns p1 p2 : nat).

(** The token at a place of the bare grid: the pixels of its patch. *)
Definition bare_token (X : image_type F Channel)
    (k : bare_grid rows columns) (f : patch_feature p1 p2 Channel) : F :=
  X (p1 * k.1 + f.1.1)%N (p2 * k.2 + f.1.2)%N f.2.

(** The image whose tokens are given: every choice of tokens is an image's. *)
Definition image_of_tokens (X : bare_grid rows columns -> patch_feature p1 p2 Channel -> F)
    (y x : nat) (c : Channel) : F :=
  match insub (y %/ p1)%N, insub (x %/ p2)%N, insub (y %% p1)%N, insub (x %% p2)%N with
  | Some k1, Some k2, Some s1, Some s2 => X (k1, k2) (s1, s2, c)
  | _, _, _, _ => 0
  end.

Lemma insub_ord (k : nat) (u : 'I_k) : insub (val u) = Some u.
Proof. exact: valK. Qed.

Lemma divn_patch (p z s : nat) : (s < p)%N -> ((p * z + s) %/ p = z)%N.
Proof. by move=> lts; rewrite mulnC divnMDl ?divn_small ?addn0 //; lia. Qed.

Lemma modn_patch (p z s : nat) : (s < p)%N -> ((p * z + s) %% p = s)%N.
Proof. by move=> lts; rewrite mulnC modnMDl modn_small. Qed.

Lemma bare_token_image X k f : bare_token (image_of_tokens X) k f = X k f.
Proof.
case: k f => k1 k2 [[s1 s2] c]; rewrite /bare_token /image_of_tokens /=.
by rewrite !divn_patch // !modn_patch // !insub_ord.
Qed.

(** A patch lies in the frame of zeros, or not, as a whole. *)
Lemma patch_in_frame (p m side z s : nat) : (s < p)%N ->
  (p * m <= p * z + s < p * m + p * side)%N = (m <= z < m + side)%N.
Proof.
move=> lts; have lt0p : (0 < p)%N by lia.
have := leq_divRL m (p * z + s) lt0p; have := ltn_divLR (p * z + s) (m + side) lt0p.
by rewrite !divn_patch // ![(_ * p)%N]mulnC -mulnDr => -> ->.
Qed.

(** The tokens of the zero ring, and of the image in it. *)
Lemma patch_token_bare (m n : nat) (X : image_type F Channel) (q : bare_grid rows columns)
    (d : token_offset m n) f :
  patch_token X (ringed_key q d) f = if bare_target q d is Some k then bare_token X k f else 0.
Proof.
case: f => -[s1 s2] c; rewrite /patch_token /zero_framed /=.
rewrite !patch_in_frame // -bare_target_exists.
case e: (bare_target q d) => [k|] //=.
move/eqP: e; rewrite bare_target_some => /andP[/eqP e1 /eqP e2].
rewrite /bare_token /= -e1 -e2 !mulnDr.
by congr X; rewrite addnAC addnK.
Qed.

Lemma patch_token_image_key (m n : nat) (X : image_type F Channel) (k : bare_grid rows columns) f :
  patch_token X (image_key m n k) f = bare_token X k f.
Proof. by rewrite image_key_centre patch_token_bare bare_target_centre. Qed.

End Tokens.

Section Convolutions.

Variables (F : fieldType) (In Out : finType).

(** Σ_δ X_(q+δ) M_δ over the offsets whose token exists: zero padding. *)
Definition bare_convolution (rows columns m n : nat) (Feature : finType) (Output : Type)
    (M : token_offset m n -> Feature -> Output -> F)
    (X : bare_grid rows columns -> Feature -> F) (q : bare_grid rows columns) (o : Output) : F :=
  \sum_d feature_map (M d) (fun i => if bare_target q d is Some k then X k i else 0) o.

(** For the tokens of an image this is its zero-padded convolution. *)
Lemma convolution_of_bare_tokens (rows columns p1 p2 m n r1 r2 : nat)
    (W : nat -> nat -> In -> Out -> F) (X : image_type F In)
    (q : bare_grid rows columns) (t : patch_feature p1 p2 Out) :
  (r1 <= p1 * m)%N -> (r2 <= p2 * n)%N ->
  bare_convolution (fun d : token_offset m n => output_block m n r1 r2 W d.1 d.2)
      (bare_token X) q t =
    convolution (p1 * rows) (p2 * columns) r1 r2 W X
      (p1 * q.1 + t.1.1)%N (p2 * q.2 + t.1.2)%N t.2.
Proof.
move=> le1 le2; rewrite -(convolution_of_tokens _ _ _ _ le1 le2).
by apply: eq_bigr => d _; apply: eq_feature_map => // f; rewrite patch_token_bare.
Qed.

(** The convolution of an image that is framed already, by r₁ rows and r₂
    columns of whatever it is; [convolution] frames it with zeros. *)
Definition framed_convolution (r1 r2 : nat) (W : nat -> nat -> In -> Out -> F)
    (Z : image_type F In) (y x : nat) (o : Out) : F :=
  \sum_(i < r1.*2.+1) \sum_(j < r2.*2.+1) \sum_c Z (y + i)%N (x + j)%N c * W i j c o.

(** An image framed by m × n patches, without the rows and columns of them
    that the kernel does not reach. *)
Definition cropped_frame (p1 p2 m n r1 r2 : nat) (Z : image_type F In) : image_type F In :=
  fun y x => Z (y + (p1 * m - r1))%N (x + (p2 * n - r2))%N.

(** The same layer of blocks convolves an image in any frame. *)
Lemma framed_convolution_of_tokens (rows columns p1 p2 m n r1 r2 : nat)
    (W : nat -> nat -> In -> Out -> F) (Z : image_type F In)
    (q : bare_grid rows columns) (t : patch_feature p1 p2 Out) :
  (r1 <= p1 * m)%N -> (r2 <= p2 * n)%N ->
  \sum_(d : token_offset m n)
      feature_map (output_block m n r1 r2 W d.1 d.2)
        (fun f => Z (p1 * (q.1 + d.1) + f.1.1)%N (p2 * (q.2 + d.2) + f.1.2)%N f.2) t =
    framed_convolution r1 r2 W (cropped_frame p1 p2 m n r1 r2 Z)
      (p1 * q.1 + t.1.1)%N (p2 * q.2 + t.1.2)%N t.2.
Proof.
case: q => y x /= le1 le2.
have lty : (y + m < rows + m.*2)%N by case: y => y /=; lia.
have ltx : (x + n < columns + n.*2)%N by case: x => x /=; lia.
pose q' : bare_grid (rows + m.*2) (columns + n.*2) := (Ordinal lty, Ordinal ltx).
have := convolution_of_tokens W Z q' t le1 le2.
rewrite /convolution /framed_convolution /cropped_frame /= => conv.
transitivity (\sum_(d : token_offset m n) feature_map (output_block m n r1 r2 W d.1 d.2)
    (patch_token Z (ringed_key q' d)) t).
  apply: eq_bigr => d _; apply: eq_feature_map => // f.
  case: f d => -[s1 s2] c [i j]; rewrite /patch_token /zero_framed /= !patch_in_frame //.
  case: ifP => [_|]; last by case: y x i j {q' conv lty ltx} => [y ?] [x ?] [i ?] [j ?] /=; lia.
  rewrite ![(_ + m + _)%N]addnAC ![(_ + n + _)%N]addnAC ![(_ * (_ + _ + _))%N]mulnDr.
  by congr Z; lia.
rewrite conv; case: t {conv} => -[t1 t2] o /=.
apply: eq_bigr => i _; apply: eq_bigr => j _; apply: eq_bigr => c _; congr (_ * _).
have in_frame (p m0 r side z s u : nat) : (z < side)%N -> (s < p)%N -> (u < r.*2.+1)%N ->
    (r <= p * m0)%N ->
    (r <= p * (z + m0) + s + u < r + p * (side + m0.*2))%N.
  move=> ltz lts ltu ler; have lez : (z.+1 <= side)%N by [].
  have := leq_mul (leqnn p) lez; rewrite mulnS !mulnDr -addnn mulnDr; lia.
rewrite /zero_framed !in_frame //= !mulnDr.
by congr Z; lia.
Qed.

End Convolutions.
