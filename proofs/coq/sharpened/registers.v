(** S.registers: one key of value zero in place of the ring, and two heads for each offset.

    Let one key be added to the bare grid, whose value is zero. Fix a leak 0 < ε < 1 and two positive
    numbers s_0 ≠ s_1, and let N be the number of tokens. The head of an offset δ and of a number s
    gives, before normalisation, the weight 1 + N (1 + s) (1/ε - 1) to the token at its target, if
    there is one, 1 to every other token and s N to the added key. All of these are positive. Then
    maps exist in which N does not occur, with which these two heads for each offset are the
    zero-padded convolution at every query: for every kernel, every number of patches and every
    image. The scores alone know the size of the image. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Convattn.foundation Require Import attention image heads grid patches bare.
From Convattn.sharpened Require Import padding_zero_token.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** Exponentials of the scores of the tokens, and of the added key, [None]. *)
Definition register_weights (F : fieldType) (rows columns m n : nat) (leak s : F)
    (d : token_offset m n) (q : bare_grid rows columns) (k : option (bare_grid rows columns)) : F :=
  let N := #|bare_grid rows columns|%:R in
  if k is Some _ then
    if k == bare_target q d then 1 + N * (1 + s) * (leak^-1 - 1) else 1
  else s * N.

(** The maps of the two heads of an offset, s_0's first. *)
Definition register_maps (F : fieldType) (Offset In : finType) (Out : Type) (leak s0 s1 : F)
    (M : Offset -> In -> Out -> F) (h : bool * Offset) (i : In) (o : Out) : F :=
  (if h.1 then (1 + s1) / (s1 - s0) else - ((1 + s0) / (s1 - s0))) / (1 - leak) * M h.2 i o.

Lemma register_mapsE (F : fieldType) (Offset In : finType) (Out : Type) (leak s0 s1 : F)
    (M : Offset -> In -> Out -> F) j d x o :
  feature_map (register_maps leak s0 s1 M (j, d)) x o =
    feature_map (M d)
      (fun i => (if j then (1 + s1) / (s1 - s0) else - ((1 + s0) / (s1 - s0))) / (1 - leak) * x i) o.
Proof. by rewrite feature_map_scale -feature_map_scaled. Qed.

Lemma tokens_neq0 (F : numFieldType) (rows columns : nat) (q : bare_grid rows columns) :
  #|bare_grid rows columns|%:R != 0 :> F.
Proof. by rewrite pnatr_eq0 -lt0n; apply/card_gt0P; exists q. Qed.

Section Attend.

Variables (F : numFieldType) (rows columns m n : nat) (leak s : F).
Variables (d : token_offset m n) (q : bare_grid rows columns).
Hypotheses (range : 0 < leak < 1) (positive : 0 < s).

Lemma register_weights_gt0 k : 0 < register_weights leak s d q k.
Proof.
case/andP: range => gt0 lt1; rewrite /register_weights.
have N0 : 0 < #|bare_grid rows columns|%:R :> F by rewrite lt0r (tokens_neq0 F q) ler0n.
case: k => [k|]; last exact: mulr_gt0.
have one : 0 < 1 :> F by exact: ltr01.
case: ifP => _ //; apply: (addr_gt0 one); apply: mulr_gt0; last by rewrite subr_gt0 invf_gt1.
by apply: mulr_gt0 => //; exact: addr_gt0.
Qed.

(** Σ_k w_k g_k over the tokens. *)
Lemma sum_register_weights (g : bare_grid rows columns -> F) :
  \sum_k register_weights leak s d q (Some k) * g k =
    \sum_k g k + #|bare_grid rows columns|%:R * (1 + s) * (leak^-1 - 1) *
      (if bare_target q d is Some t then g t else 0).
Proof.
rewrite /register_weights; set c := _ * _ * _; case: (bare_target q d) => [t|]; last first.
  by rewrite mulr0 addr0; apply: eq_bigr => k _; rewrite mul1r.
rewrite (bigD1 t) //= eqxx [\sum_k g k](bigD1 t) //= mulrDl mul1r addrAC; congr (_ + _ + _).
by apply: eq_bigr => k /negbTE nk; rewrite (inj_eq Some_inj) nk mul1r.
Qed.

Lemma attend_register (In : Type) (X : bare_grid rows columns -> In -> F) i :
  attend (softmax (register_weights leak s d q)) (with_zero_token X) i =
    (if bare_target q d is Some t then (1 - leak) * X t i + leak * (mean_token X i / (1 + s))
     else mean_token X i / (1 + s)).
Proof.
case/andP: range => gt0 lt1; have nzl : leak != 0 by rewrite gt_eqF.
have nzs : 1 + s != 0 by rewrite gt_eqF // (addr_gt0 ltr01 positive).
have total : \sum_k register_weights leak s d q k = #|bare_grid rows columns|%:R *
    (1 + s + (1 + s) * (leak^-1 - 1) * (if bare_target q d is Some t then 1 else 0)).
  rewrite sum_option; have := sum_register_weights (fun=> 1); rewrite sum_one => sums.
  transitivity (s * #|bare_grid rows columns|%:R +
      \sum_k register_weights leak s d q (Some k) * 1); last by rewrite sums; ring.
  by congr (_ + _); apply: eq_bigr => k _; rewrite mulr1.
rewrite /attend /softmax total sum_option /= mulr0 add0r.
under eq_bigr do rewrite mulrAC.
rewrite -big_distrl sum_register_weights /=.
have -> : mean_token X i = (\sum_k X k i) / #|bare_grid rows columns|%:R by [].
set N : F := #|_|%:R; set sum := \sum_k X k i.
have nzN : N != 0 := tokens_neq0 F q.
case: (bare_target q d) => [t|]; field; rewrite ?nzs ?nzN ?nzl //=.
Qed.

End Attend.

Theorem registers (F : numFieldType) (In Out : finType) (p1 p2 m n r1 r2 : nat) (leak s0 s1 : F)
    (W : nat -> nat -> In -> Out -> F) :
  (r1 <= p1 * m)%N -> (r2 <= p2 * n)%N -> 0 < leak < 1 -> 0 < s0 -> 0 < s1 -> s0 != s1 ->
  exists M : bool * token_offset m n -> patch_feature p1 p2 In -> patch_feature p1 p2 Out -> F,
  forall (rows columns : nat) (q : bare_grid rows columns),
    let w (h : bool * token_offset m n) := register_weights leak (if h.1 then s1 else s0) h.2 in
    (forall h k, 0 < w h q k) /\
    forall (X : image_type F In) (t : patch_feature p1 p2 Out),
    attention_layer (fun h q => softmax (w h q)) M (with_zero_token (bare_token X)) q t =
      convolution (p1 * rows) (p2 * columns) r1 r2 W X
        (p1 * q.1 + t.1.1)%N (p2 * q.2 + t.1.2)%N t.2.
Proof.
move=> le1 le2 range gt0 gt1 differ.
exists (register_maps leak s0 s1 (fun d : token_offset m n => output_block m n r1 r2 W d.1 d.2)).
move=> rows columns q w; split=> [[j d] k|X t]; first by apply: register_weights_gt0; case: j.
rewrite -(convolution_of_bare_tokens W X q t le1 le2) /attention_layer /bare_convolution.
rewrite -(pair_bigA _ (fun j d => feature_map (register_maps leak s0 s1 _ (j, d))
  (attend (softmax (w (j, d) q)) (with_zero_token (bare_token X))) t)) /= big_bool /=.
rewrite -big_split; apply: eq_bigr => d _ /=; rewrite !register_mapsE.
rewrite -feature_map_add; apply: eq_feature_map => // i; rewrite !attend_register //.
have [ne0 ne1] : 1 + s0 != 0 /\ 1 + s1 != 0.
  by split; rewrite gt_eqF // (addr_gt0 ltr01).
have nel : 1 - leak != 0 by case/andP: range => _ lt1; rewrite subr_eq0 gt_eqF.
have ned : s1 - s0 != 0 by rewrite subr_eq0 eq_sym.
by case: (bare_target q d) => [k|]; field; rewrite ?ne0 ?ne1 ?nel ?ned.
Qed.
