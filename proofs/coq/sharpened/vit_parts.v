(** S.vit, parts: what layer normalisation, GELU and a head with finite scores do to paired channels.

    Over an ordered field with a square root:

    1. Let a token hold each of its channels v as v and as -v, once for each head, let a and d be ≥ 0 with
       a > 0 and Σ v² = a + d, and let the gain of a layer normalisation be √(a/n + ε) at every
       feature, n being the number of channels, ε ≥ 0, and its shift zero. Then it multiplies the
       token by one number ρ, and 1 - d/(2a) ≤ ρ ≤ 1. With the squares of a token's constants adding
       up to a = Λ², d is the square sum of the values.
    2. Let Φ(z) + Φ(-z) = 1. Then gelu(z) - gelu(-z) = z.
    3. Let z Φ(z) be within c of max(0, z) for every z. Then gelu(s z)/s is within c/s of it, s > 0.
    4. Let the weights of a head be equal on a set of keys, and at most x times as great elsewhere. Then
       what it reads, of size B at most, is within 2 x N B of the mean over the set, N being the number
       of keys.

    For the Gaussian Φ c = 0.17 will do, which is not covered. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Convattn.foundation Require Import attention square_root vision_transformer token_network.
From Convattn.foundation Require Import paired_stream row_bounds.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Gelu.

Variables (R : realFieldType) (Phi : R -> R).

Lemma gelu_pair z : Phi z + Phi (- z) = 1 -> gelu Phi z - gelu Phi (- z) = z.
Proof. by rewrite /gelu mulNr opprK -mulrDr => ->; rewrite mulr1. Qed.

Lemma rectified_scale (s z : R) : 0 < s -> rectified (s * z) = s * rectified z.
Proof.
move=> s_gt0; rewrite /rectified /Num.max -[in LHS](mulr0 s) ltr_pmul2l //.
by case: ifP; rewrite ?mulr0.
Qed.

Lemma gelu_near_rectified (c s z : R) : 0 < s -> (forall z, `|gelu Phi z - rectified z| <= c) ->
  `|gelu Phi (s * z) / s - rectified z| <= c / s.
Proof.
move=> s_gt0 /(_ (s * z)); rewrite rectified_scale // => le.
have -> : gelu Phi (s * z) / s - rectified z = (gelu Phi (s * z) - s * rectified z) / s.
  by field; rewrite gt_eqF.
by rewrite normrM [`|s^-1|]gtr0_norm ?invr_gt0 // ler_wpmul2r // invr_ge0 ltW.
Qed.

End Gelu.

Theorem vit_parts (R : realFieldType) (root Phi : R -> R) : is_square_root root ->
  [/\ forall (Head Channel : finType) (v : Channel -> R) (epsilon a d : R),
        (0 < #|Head|)%N -> 0 <= epsilon -> 0 < a -> 0 <= d -> \sum_c v c ^+ 2 = a + d ->
        exists2 rho, 1 - d / (2%:R * a) <= rho <= 1 &
          forall i : paired_feature Head Channel,
            layer_norm root epsilon (fun=> root (a / #|Channel|%:R + epsilon)) (fun=> 0) (paired v) i =
              rho * paired v i,
      forall z, Phi z + Phi (- z) = 1 -> gelu Phi z - gelu Phi (- z) = z,
      forall c s z, 0 < s -> (forall z, `|gelu Phi z - Num.max 0 z| <= c) ->
        `|gelu Phi (s * z) / s - Num.max 0 z| <= c / s
    & forall (Key : finType) (Out : Type) (w : Key -> R) (y : Key -> Out -> R) (o : Out)
        (seen : {set Key}) (t : Key) (x bound : R),
        (forall k, 0 < w k) -> t \in seen -> (forall k, k \in seen -> w k = w t) -> 0 <= x ->
        (forall k, k \notin seen -> w k <= x * w t) -> (forall k, `|y k o| <= bound) ->
        `|attend (softmax w) y o - attend (mean_row R seen) y o| <= x * (#|Key|%:R * (2%:R * bound))].
Proof.
move=> root_root; split.
- move=> Head Channel v epsilon a d some_head epsilon_ge0 a_gt0 d_ge0 sum_v.
  exists (root (a / #|Channel|%:R + epsilon) / root ((\sum_c v c ^+ 2) / #|Channel|%:R + epsilon)); last first.
    by move=> i; exact: paired_norm.
  have n_gt0 : 0 < #|Channel|%:R :> R.
    rewrite ltr0n lt0n; apply/negP => /eqP none; have : 0 < \sum_c v c ^+ 2 by rewrite sum_v ltr_paddr.
    by rewrite big1 ?ltxx // => c _; have := enum_rank c; rewrite none => -[].
  by rewrite sum_v; exact: variance_ratio.
- by move=> z; exact: gelu_pair.
- by move=> c s z; exact: gelu_near_rectified.
by move=> Key Out w y o seen t x bound; exact: attend_set_dominated.
Qed.
