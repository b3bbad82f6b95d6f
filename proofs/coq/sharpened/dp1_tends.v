(** S.dp1, the limit of layers: with one positional feature as many heads as offsets tend to the convolution.

    In the setting of S.dp1 let r_δ be a number for each offset, E an exponential that is not bounded, and let the
    t_δ = E(r_δ) be distinct. The only feature of a key is M + r_δ at the offset δ and zero elsewhere, head
    h = 1, ..., T multiplies it with v = h, and attends by the softmax of these scores. With the maps of dp1_limit,
    which depend neither on M nor on the size, the layer tends to the zero-padded convolution as M → ∞: at every
    output of every image, for every kernel, patches of p₁ × p₂ and any number of them. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Convattn.foundation Require Import attention image grid common_factor exponential sharp_limits.
From Convattn.foundation Require Import total_variation scalar_heads.
From Convattn.sharpened Require Import dp1_limit.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** The score of the head v at a key: v times the feature. *)
Definition feature_score (R : ringType) (rows columns m n : nat) (r : token_offset m n -> R) (M : R) (v : nat)
    (q : bare_grid rows columns) (k : ringed_grid rows columns m n) : R :=
  v%:R * (if ringed_offset q k is Some d then M + r d else 0).

Section Vanishing.

Variables (R : realFieldType) (E : R -> R) (Key : finType).
Hypotheses (E_exp : is_exponential E) (E_unbounded : unbounded E).

Lemma exponential_power (v : nat) x : E (v%:R * x) = E x ^+ v.
Proof.
elim: v => [|v IH]; first by rewrite mul0r expr0 exponential_zero.
by rewrite -addn1 natrD mulrDl mul1r exponential_add // IH addn1 exprSr.
Qed.

(** Weights off by at most E(-M) from weights with a positive sum have a softmax that tends to theirs. *)
Lemma softmax_tends (w : R -> Key -> R) (w0 : Key -> R) (k : Key) :
  (forall k, 0 <= w0 k) -> 0 < \sum_k w0 k ->
  (forall M k, 0 <= M -> w0 k <= w M k <= w0 k + E (- M)) ->
  tends_to (fun M => softmax (w M) k) (softmax w0 k).
Proof.
move=> ge0 pos near; set Z := \sum_k w0 k in pos *.
pose C := (1 + #|Key|%:R) / Z.
move=> eps eps_gt0; have [a0 small] := exponential_vanishes E_exp E_unbounded C eps_gt0.
exists (Num.max a0 0) => M; rewrite le_maxl => /andP[/small le_eps M_ge0].
apply: le_trans (le_trans (ler_norm _) le_eps); rewrite subr0.
have e_gt0 : 0 < E (- M) by exact: exponential_positive.
have low k' : w0 k' <= w M k' by have /andP[] := near M k' M_ge0.
have up k' : w M k' <= w0 k' + E (- M) by have /andP[] := near M k' M_ge0.
set S := \sum_k' w M k'.
have leZS : Z <= S by apply: ler_sum => k' _.
have leSZ : S <= Z + #|Key|%:R * E (- M).
  apply: le_trans (ler_sum _ (fun k' _ => up k')) _.
  by rewrite big_split /= sumr_const mulr_natl.
have S_gt0 : 0 < S := lt_le_trans pos leZS.
have le1 : softmax w0 k <= 1.
  by rewrite /softmax ler_pdivr_mulr // mul1r (bigD1 k) //= ler_addl sumr_ge0.
have ge0s : 0 <= softmax w0 k by rewrite divr_ge0 // ltW.
have -> : softmax (w M) k - softmax w0 k = ((w M k - w0 k) - softmax w0 k * (S - Z)) / S.
  by rewrite /softmax -/S -/Z; field; rewrite !gt_eqF.
rewrite normrM normfV (gtr0_norm S_gt0) ler_pdivr_mulr //.
apply: (@le_trans _ _ (E (- M) * (1 + #|Key|%:R))); last first.
  rewrite -mulrA ler_pmul2l // /C -mulrA ler_pmulr ?ltr_paddr ?ltr01 ?ler0n //.
  by rewrite mulrC ler_pdivl_mulr // mul1r.
apply: le_trans (ler_norm_sub _ _) _; rewrite mulrDr mulr1; apply: ler_add.
  by rewrite ger0_norm ?subr_ge0 // ler_subl_addl.
rewrite normrM !ger0_norm ?subr_ge0 //.
apply: le_trans (_ : 1 * (S - Z) <= _); first by rewrite ler_wpmul2r ?subr_ge0.
by rewrite mul1r ler_subl_addl [_ * #|Key|%:R]mulrC.
Qed.

End Vanishing.

Theorem dp1_tends (R : realFieldType) (E : R -> R) (In Out : finType)
    (rows columns p1 p2 m n r1 r2 : nat) (r : token_offset m n -> R)
    (W : nat -> nat -> In -> Out -> R) (X : image_type R In)
    (q : bare_grid rows columns) (f : patch_feature p1 p2 Out) :
  let T := #|token_offset m n| in
  let t d := E (r d) in
  is_exponential E -> unbounded E -> (r1 <= p1 * m)%N -> (r2 <= p2 * n)%N -> injective t ->
  tends_to
    (fun M => attention_layer
      (fun (h : 'I_T) (q : bare_grid rows columns) => softmax (fun k => E (feature_score r M h.+1 q k)))
      (fun h : 'I_T => scalar_maps t 0 (limit_normaliser t)
        (fun d : token_offset m n => output_block m n r1 r2 W d.1 d.2) h.+1)
      (patch_token X) q f)
    (convolution (p1 * rows) (p2 * columns) r1 r2 W X
      (p1 * q.1 + f.1.1)%N (p2 * q.2 + f.1.2)%N f.2).
Proof.
move=> T t E_exp E_unbounded le1 le2 t_inj.
have t_gt0 d : 0 < t d by exact: exponential_positive.
rewrite -(dp1_limit W X q f le1 le2 t_inj t_gt0); apply: layer_tends_to => h k.
pose w M (k : ringed_grid rows columns m n) := E (- M) ^+ h.+1 * E (feature_score r M h.+1 q k).
apply: (eq_tends_to (f := fun M => softmax (w M) k)) => [M|].
  by apply: softmax_common_factor; rewrite expf_neq0 // exponential_nonzero.
pose d0 : token_offset m n := (ord0, ord0).
have at_offset : ringed_offset q (ringed_key q d0) = Some d0 by apply/eqP; rewrite ringed_offsetE.
apply: (softmax_tends E_exp E_unbounded) => [k'||M k' M_ge0].
- by rewrite exprn_ge0 // /key_number; case: ringed_offset => // d; exact: ltW.
- rewrite (bigD1 (ringed_key q d0)) //= ltr_paddr //; last by rewrite exprn_gt0 // /key_number at_offset.
  by apply: sumr_ge0 => k' _; rewrite exprn_ge0 // /key_number; case: ringed_offset => // d; exact: ltW.
rewrite /w /feature_score exponential_power // -exprMn /key_number.
case: ringed_offset => [d|].
  rewrite -exponential_add // addrA addNr add0r lexx /= ler_addl ltW //; exact: exponential_positive.
rewrite exponential_zero // mulr1 expr0n /= add0r; have e_gt0 := exponential_positive E_exp (- M).
apply/andP; split; first exact/exprn_ge0/ltW.
rewrite exprS; apply: ler_pimulr; [exact: ltW | apply: exprn_ile1; first exact: ltW].
by rewrite -(exponential_zero E_exp) exponential_monotone // oppr_le0.
Qed.
