(** A stream that holds each channel with both signs, so that its mean is zero, and what layer
    normalisation, linear maps and GELU make of it.

    A feature is a copy of a channel, and half of the copies are negated: each head has one of each. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Convattn.foundation Require Import attention heads square_root vision_transformer.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** A sign for each head; and a channel's copies. *)
Definition signed_copy (Head : finType) : finType := [finType of bool * Head].
Definition paired_feature (Head Channel : finType) : finType := [finType of signed_copy Head * Channel].

Definition copy_sign (R : ringType) (Head : finType) (s : signed_copy Head) : R := (-1) ^+ s.1.

(** Each channel as v and -v. *)
Definition paired (R : ringType) (Head Channel : finType) (v : Channel -> R)
    (i : paired_feature Head Channel) : R :=
  copy_sign R i.1 * v i.2.

(** A linear map of channels as one of features, with what it reads and with what it writes paired. *)
Definition paired_read (R : fieldType) (Head Channel : finType) (Out : Type) (M : Channel -> Out -> R)
    (i : paired_feature Head Channel) (o : Out) : R :=
  copy_sign R i.1 / #|signed_copy Head|%:R * M i.2 o.

Definition paired_write (R : ringType) (Head Channel : finType) (In : Type) (M : In -> Channel -> R)
    (j : In) (i : paired_feature Head Channel) : R :=
  copy_sign R i.1 * M j i.2.

Section Equal.

Variables (R : fieldType) (root : R -> R) (Feature : finType).
Implicit Types x y : Feature -> R.

Lemma eq_feature_mean x y : x =1 y -> feature_mean x = feature_mean y.
Proof. by move=> e; rewrite /feature_mean (eq_bigr _ (fun i _ => e i)). Qed.

Lemma eq_layer_norm epsilon gain shift x y : x =1 y ->
  layer_norm root epsilon gain shift x =1 layer_norm root epsilon gain shift y.
Proof.
move=> e i; have same : feature_variance x = feature_variance y.
  by apply: eq_feature_mean => j; rewrite e (eq_feature_mean e).
by rewrite /layer_norm same e (eq_feature_mean e).
Qed.

End Equal.

Section Paired.

Variables (R : realFieldType) (Head Channel : finType).
Hypothesis some_head : (0 < #|Head|)%N.
Implicit Type v : Channel -> R.

Lemma copies_positive : 0 < #|signed_copy Head|%:R :> R.
Proof. by rewrite ltr0n card_prod card_bool muln_gt0. Qed.

Lemma sign_squared (s : signed_copy Head) : copy_sign R s * copy_sign R s = 1.
Proof. by rewrite -expr2 sqrr_sign. Qed.

Lemma sum_signs : \sum_(s : signed_copy Head) copy_sign R s = 0.
Proof.
rewrite -(pair_bigA _ (fun (s : bool) (h : Head) => (-1) ^+ s)) /= big_bool /=.
by rewrite -big_split big1 //= => h _; rewrite expr0 expr1 addNr.
Qed.

(** Sums over features. *)
Lemma sum_features (g : signed_copy Head -> Channel -> R) :
  \sum_(i : paired_feature Head Channel) g i.1 i.2 = \sum_c \sum_s g s c.
Proof. by rewrite exchange_big pair_bigA. Qed.

Lemma paired_mean v : feature_mean (paired (Head := Head) v) = 0.
Proof.
rewrite /feature_mean (sum_features (fun s c => copy_sign R s * v c)).
by rewrite big1 ?mul0r // => c _; rewrite -big_distrl /= sum_signs mul0r.
Qed.

Lemma paired_variance v :
  feature_variance (paired (Head := Head) v) = (\sum_c v c ^+ 2) / #|Channel|%:R.
Proof.
rewrite /feature_variance paired_mean /feature_mean.
under eq_bigr do rewrite subr0.
rewrite (sum_features (fun s c => (copy_sign R s * v c) ^+ 2)) card_prod natrM invfM mulrA; congr (_ / _).
rewrite big_distrl; apply: eq_bigr => c _ /=.
under eq_bigr do rewrite exprMn expr2 sign_squared mul1r.
by rewrite sumr_const -[X in X / _]mulr_natr mulfK // gt_eqF // copies_positive.
Qed.

(** Layer normalisation multiplies a paired stream by one number. *)
Lemma paired_norm (root : R -> R) (epsilon gain : R) v (i : paired_feature Head Channel) :
  layer_norm root epsilon (fun=> gain) (fun=> 0) (paired v) i =
    gain / root ((\sum_c v c ^+ 2) / #|Channel|%:R + epsilon) * paired v i.
Proof. by rewrite /layer_norm paired_mean paired_variance subr0 addr0 mulrA mulrAC. Qed.

(** It reads what its channels hold. *)
Lemma paired_read_stream (Out : Type) (M : Channel -> Out -> R) (ratio : R) v o :
  feature_map (paired_read (Head := Head) M) (fun i => ratio * paired v i) o = ratio * feature_map M v o.
Proof.
rewrite /feature_map
  (sum_features (fun s c => ratio * (copy_sign R s * v c) * (copy_sign R s / #|signed_copy Head|%:R * M c o))).
rewrite big_distrr; apply: eq_bigr => c _ /=.
have same (s : signed_copy Head) : ratio * (copy_sign R s * v c) * (copy_sign R s / #|signed_copy Head|%:R * M c o) =
    ratio * (v c * M c o) / #|signed_copy Head|%:R.
  transitivity (copy_sign R s * copy_sign R s * (ratio * (v c * M c o) / #|signed_copy Head|%:R)); first by ring.
  by rewrite sign_squared mul1r.
by rewrite (eq_bigr _ (fun s _ => same s)) sumr_const -[LHS]mulr_natr divfK // gt_eqF // copies_positive.
Qed.

(** And writes to its channels. *)
Lemma paired_write_stream (In : finType) (M : In -> Channel -> R) (x : In -> R) i :
  feature_map (paired_write (Head := Head) M) x i = paired (fun c => feature_map M x c) i.
Proof. by rewrite /feature_map /paired big_distrr; apply: eq_bigr => j _; rewrite mulrCA. Qed.

End Paired.

Section Ratio.

Variables (R : realFieldType) (root : R -> R).
Hypothesis root_root : is_square_root root.

(** The ratio √(a / (a + d)) is at most 1 and at least 1 - d/(2a). *)
Lemma root_ratio (a d : R) : 0 < a -> 0 <= d ->
  1 - d / (2%:R * a) <= root a / root (a + d) <= 1.
Proof.
move=> a_gt0 d_ge0; have s_gt0 : 0 < a + d by rewrite ltr_paddr.
have [ra rs] := (root_positive root_root a_gt0, root_positive root_root s_gt0).
have [ea es] := (root_squared root_root (ltW a_gt0), root_squared root_root (ltW s_gt0)).
have le : root a <= root (a + d).
  by rewrite -(@ler_pexpn2r _ 2) ?nnegrE ?(ltW ra) ?(ltW rs) // ea es ler_addl.
rewrite ler_pdivr_mulr // mul1r le andbT ler_subl_addr -ler_subl_addl.
set u := root a in ra ea le *; set w := root (a + d) in rs es le *.
have -> : 1 - u / w = d / (w * (w + u)).
  have -> : d = w ^+ 2 - u ^+ 2 by rewrite es ea addrAC subrr add0r.
  by field; rewrite !gt_eqF ?addr_gt0.
apply: ler_wpmul2l => //; rewrite lef_pinv ?posrE ?mulr_gt0 ?ltr0n ?addr_gt0 //.
rewrite mulr_natl mulr2n -ea expr2.
by rewrite mulrDr ler_add // ler_pmul // ltW.
Qed.

(** The same for variances, with ε added. *)
Lemma variance_ratio (n epsilon a d : R) : 0 < n -> 0 <= epsilon -> 0 < a -> 0 <= d ->
  1 - d / (2%:R * a) <= root (a / n + epsilon) / root ((a + d) / n + epsilon) <= 1.
Proof.
move=> n_gt0 epsilon_ge0 a_gt0 d_ge0.
have part_gt0 : 0 < a / n + epsilon by rewrite ltr_paddr // divr_gt0.
have part_ge0 : 0 <= d / n by rewrite divr_ge0 // ltW.
have /andP[low high] := root_ratio part_gt0 part_ge0.
rewrite [(a + d) / n]mulrDl addrAC high andbT; apply: le_trans low; rewrite ler_add2l ler_opp2.
have -> : d / (2%:R * a) = d / n / (2%:R * (a / n)) by field; rewrite !gt_eqF.
apply: ler_wpmul2l => //; rewrite lef_pinv ?posrE ?mulr_gt0 ?ltr0n ?invr_gt0 //.
by rewrite ler_wpmul2l ?ler0n // ler_addl.
Qed.

End Ratio.
