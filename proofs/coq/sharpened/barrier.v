(** S.barrier: the quadratic encoding of one sharpness cannot be made exact by a fixed number of heads.

    A quadratic head with the finite sharpness α and the centre Δ gives the key in row k₁ and column k₂ the
    score - α|k - q - Δ|². Of its weight, whatever normalises it, the column's share is e^(- α (k₂ - q₂)²),
    which is the same for all heads, times x^k₂ with x = e^(2αΔ₂), times what depends on the head, the query
    and the key's row. Let all heads be of this form, with any shares ≠ 0 and any x ≠ 0, and let the layer be,
    for all images of one size, of more than m rows and n columns of patches, the zero-padded convolution with
    a kernel that is not zero and reaches m and n patches to each side. Then it has at least (columns - n)
    heads. So no fixed number of heads serves all image sizes, even for a kernel of one pixel.

    Weights may have any sign, and sum to anything; with a ring of zero patches or with none. Not
    covered: heads of different sharpness. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring zify.
From Convattn.foundation Require Import attention image grid bare rank.
From Convattn.foundation Require Import flattened_kernel lower_bound.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

(** A sum of n exponentials that vanishes at n consecutive places vanishes everywhere: it obeys the
    linear recursion whose characteristic polynomial has their bases as roots. *)
Section Recursion.

Variables (F : fieldType) (Head : finType) (x c : Head -> F).

Definition exponentials (j : nat) : F := \sum_h c h * x h ^+ j.

Definition annihilator : {poly F} := \prod_h ('X - (x h)%:P).

Lemma size_annihilator : size annihilator = #|Head|.+1.
Proof. by rewrite /annihilator size_prod_XsubC /index_enum -enumT -cardT. Qed.

Lemma annihilated j : \sum_(i < #|Head|.+1) annihilator`_i * exponentials (j + i) = 0.
Proof.
transitivity (\sum_h c h * x h ^+ j * annihilator.[x h]).
  rewrite (eq_bigr (fun i : 'I_#|Head|.+1 => \sum_h annihilator`_i * (c h * x h ^+ (j + i)))); last first.
    by move=> i _; rewrite /exponentials big_distrr.
  rewrite exchange_big; apply: eq_bigr => h _ /=.
  rewrite horner_coef size_annihilator big_distrr /=; apply: eq_bigr => i _.
  by rewrite exprD; ring.
apply: big1 => h _; suff -> : annihilator.[x h] = 0 by rewrite mulr0.
by rewrite /annihilator (bigD1 h) //= hornerM hornerXsubC subrr mul0r.
Qed.

Lemma annihilator_last : annihilator`_#|Head| = 1.
Proof.
have /monicP : annihilator \is monic by apply: monic_prod => h _; exact: monicXsubC.
by rewrite /lead_coef size_annihilator.
Qed.

Lemma annihilator_first : (forall h, x h != 0) -> annihilator`_0 != 0.
Proof.
move=> nz; rewrite -horner_coef0 /annihilator horner_prod; apply/prodf_neq0 => h _.
by rewrite hornerXsubC sub0r oppr_eq0.
Qed.

Lemma vanishing_up s : (forall i, (i < #|Head|)%N -> exponentials (s + i) = 0) ->
  exponentials (s + #|Head|) = 0.
Proof.
move=> zero; have := annihilated s.
rewrite big_ord_recr /= annihilator_last mul1r big1 ?add0r // => i _.
by rewrite zero ?mulr0.
Qed.

Lemma vanishing_down s : (forall h, x h != 0) ->
  (forall i, (i < #|Head|)%N -> exponentials (s.+1 + i) = 0) -> exponentials s = 0.
Proof.
move=> nz zero; have := annihilated s.
rewrite big_ord_recl /= addn0 big1 ?addr0 => [|i _]; last first.
  by rewrite /bump /= addnA addn1 zero ?mulr0.
by move/eqP; rewrite mulf_eq0 (negbTE (annihilator_first nz)) => /eqP.
Qed.

Lemma vanishing s j : (forall h, x h != 0) ->
  (forall i, (i < #|Head|)%N -> exponentials (s + i) = 0) -> exponentials j = 0.
Proof.
move=> nz zero.
have up t : forall i, (i < #|Head| + t)%N -> exponentials (s + i) = 0.
  elim: t => [|t IH] i; first by rewrite addn0; exact: zero.
  rewrite addnS ltnS leq_eqVlt => /orP [/eqP -> |]; last exact: IH.
  have -> : (s + (#|Head| + t) = s + t + #|Head|)%N by lia.
  by apply: vanishing_up => e lt; rewrite -addnA; apply: IH; lia.
have down t : (t <= s)%N -> forall i, (i < #|Head|)%N -> exponentials (s - t + i) = 0.
  elim: t => [|t IH] le i lt; first by rewrite subn0 zero.
  case: i lt => [|i] lt; last first.
    have -> : (s - t.+1 + i.+1 = s - t + i)%N by lia.
    by apply: IH; [exact: ltnW | exact: ltnW].
  rewrite addn0; apply: vanishing_down => // e lte.
  have -> : ((s - t.+1).+1 + e = s - t + e)%N by lia.
  by apply: IH => //; exact: ltnW.
case: (leqP s j) => [le | lt].
  by rewrite -(subnKC le); apply: (up (j - s).+1); rewrite addnS ltnS leq_addl.
case: (posnP #|Head|) => [none | some].
  by rewrite /exponentials big_pred0 // => h; have := fintype0 h none.
have -> : j = (s - (s - j) + 0)%N by lia.
by apply: down => //; lia.
Qed.

End Recursion.

Theorem barrier (F : fieldType) (In Out Head : finType)
    (rows columns p1 p2 a b m n r1 r2 : nat)
    (A : Head -> bare_grid rows columns -> ringed_grid rows columns a b -> F)
    (M : Head -> patch_feature p1 p2 In -> patch_feature p1 p2 Out -> F)
    (bias : patch_feature p1 p2 Out -> F) (W : nat -> nat -> In -> Out -> F)
    (x : Head -> F) (share : bare_grid rows columns -> 'I_columns -> F)
    (rest : Head -> bare_grid rows columns -> 'I_rows -> F) :
  (r1 <= p1 * m)%N -> (r2 <= p2 * n)%N -> (m < rows)%N -> (n < columns)%N ->
  expresses r1 r2 A M bias W ->
  (forall h, x h != 0) -> (forall q j, share q j != 0) ->
  (forall h q k, A h q (image_key a b k) = share q k.2 * x h ^+ k.2 * rest h q k.1) ->
  (exists st d, flattened_kernel p1 p2 m n r1 r2 W st d != 0) ->
  (columns - n <= #|Head|)%N.
Proof.
move=> reach1 reach2 large1 large2 equal nzx nzv form [[s t] [d nz]].
rewrite leqNgt; apply/negP => few.
have [q2 [c2 [s0 [ltq ltk joined outside]]]] : exists q2 c2 s0 : nat,
    [/\ (q2 < columns)%N, (c2 < columns)%N, (q2 + d.2 = c2 + n)%N &
        forall i, (i < #|Head|)%N -> (s0 + i < columns)%N /\
          forall e, (e < n.*2.+1)%N -> (q2 + e != s0 + i + n)%N].
  have ltd := ltn_ord d.2; case: (leqP n d.2) => near.
    exists 0%N, (d.2 - n)%N, n.+1; split; try lia; move=> i lti; split; first lia.
    by move=> e lte; apply/eqP; lia.
  exists columns.-1, (columns.-1 - (n - d.2))%N, 0%N; split; try lia; move=> i lti; split; first lia.
  by move=> e lte; apply/eqP; lia.
pose q : bare_grid rows columns := (Ordinal (near_bound d.1 large1), Ordinal ltq).
pose k1 : 'I_rows := Ordinal (far_bound d.1 large1).
pose c h := rest h q k1 * M h s t.
have row (l : 'I_columns) : share q l * exponentials x c l =
    \sum_(d' | ringed_key q d' == image_key m n (k1, l)) flattened_kernel p1 p2 m n r1 r2 W (s, t) d'.
  rewrite -(expresses_map reach1 reach2 equal) /exponentials big_distrr /=; apply: eq_bigr => h _.
  by rewrite form /c /=; ring.
have only d' : (ringed_key q d' == image_key m n (k1, Ordinal ltk)) = (d' == d).
  have rows_join : (m - d.1 + d.1 = d.1 - m + m)%N by rewrite addnC -maxnE [RHS]addnC -maxnE maxnC.
  rewrite ringed_key_image /q /k1 /=.
  apply/andP/eqP => [[/eqP e1 /eqP e2] | ->]; last first.
    by split; apply/eqP; [exact: rows_join | exact: joined].
  have v1 : d'.1 = d.1 by apply/val_inj/(@addnI (m - d.1)%N); rewrite e1 rows_join.
  have v2 : d'.2 = d.2 by apply/val_inj/(@addnI q2); rewrite e2 joined.
  by rewrite [d']surjective_pairing [RHS]surjective_pairing v1 v2.
have := row (Ordinal ltk); rewrite (big_pred1 d only) => at_tap.
have /negP [] := nz; apply/eqP; rewrite -at_tap /=.
suff -> : exponentials x c c2 = 0 by rewrite mulr0.
apply: (vanishing (s := s0)) => // i lti.
have [lti2 far] := outside i lti.
have := row (Ordinal lti2); rewrite big1 => [/eqP | d' /=].
  by rewrite mulf_eq0 (negbTE (nzv q _)) => /eqP.
by rewrite ringed_key_image /q /= => /andP [_ met]; have := far d'.2 (ltn_ord _); rewrite met.
Qed.
