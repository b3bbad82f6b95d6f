(** S.padding, large grids: without a ring only the centre of a kernel can be zero-padded.

    In the setting of S.padding, let the grid have at least 2m+1 rows and 2n+1 columns of tokens. Then
    these are equivalent: (1) some layer of finitely many softmax heads with positive weights computes
    the zero-padded convolution Σ_δ X_(q+δ) M_δ on the bare grid, at every query for all tokens X; (2)
    for every ε > 0 some layer whose rows sum to one, its weights depending on X in any way, comes
    within ε of it for all tokens of entries at most 1; (3) M_δ = 0 for all δ ≠ 0. So all T_q are equal
    only where they are all M_0. (On smaller grids they are equal for other kernels.) The layers have
    no bias at the output. One would change nothing: where all tokens are zero it is all that a layer
    gives, so that it would be zero in (1) and less than ε in (2). The field is as there. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import zify.
From Convattn.foundation Require Import attention grid bare.
From Convattn.sharpened Require Import padding.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Section Axis.

Variables (F : fieldType) (side m : nat).
Hypothesis large : (m.*2 < side)%N.

(** On one axis: the sum of [f] over the offsets that exist at [y]. *)
Definition window_sum (f : 'I_m.*2.+1 -> F) (y : 'I_side) : F :=
  \sum_(i < m.*2.+1 | (m <= y + i < m + side)%N) f i.

(** Two windows differ by an offset, any but 0. *)
Lemma window_difference (i : 'I_m.*2.+1) : i != m :> nat ->
  exists y y', forall f, window_sum f y = f i + window_sum f y'.
Proof.
case: i => i lti /= neq.
suff [y [y' [lty lty' ini same]]] : exists y y', [/\ (y < side)%N, (y' < side)%N,
    (m <= y + i < m + side)%N & forall j, (j < m.*2.+1)%N ->
      (m <= y' + j < m + side)%N = (m <= y + j < m + side)%N && (j != i)].
  exists (Ordinal lty), (Ordinal lty') => f.
  rewrite /window_sum (bigD1 (Ordinal lti)) //=; congr (_ + _).
  by apply: eq_bigl => -[j ltj]; rewrite -val_eqE /= same.
have [lt|ge] := ltnP i m.
  by exists (m - i)%N, (m - i).-1; split; try lia; move=> j ltj; lia.
by exists (side.-1 - (i - m))%N, (side - (i - m))%N; split; try lia; move=> j ltj; lia.
Qed.

(** Where all windows have the same sum, [f] is zero off the centre. *)
Lemma equal_windows f : (forall y y', window_sum f y = window_sum f y') ->
  forall i : 'I_m.*2.+1, i != m :> nat -> f i = 0.
Proof.
move=> equal i /window_difference[y [y' diff]]; apply: (addIr (window_sum f y')).
by rewrite -diff add0r.
Qed.

(** Where all are zero, it is zero. *)
Lemma zero_windows f : (forall y, window_sum f y = 0) -> forall i, f i = 0.
Proof.
move=> zero; have off (i : 'I_m.*2.+1) : i != m :> nat -> f i = 0.
  by apply: equal_windows => y y'; rewrite !zero.
move=> i; have [ei|] := eqVneq (i : nat) m; last exact: off.
have ltm : (m < side)%N by lia.
rewrite -[RHS](zero (Ordinal ltm)) /window_sum (bigD1 i) /=; last by rewrite ei; lia.
rewrite big1 ?addr0 // => j /andP[_ ne]; apply: off.
by apply: contraNneq ne => ej; apply/eqP/val_inj; rewrite /= ej ei.
Qed.

End Axis.

Lemma available_sum_windows (F : fieldType) (In Out : Type) (rows columns m n : nat)
    (M : token_offset m n -> In -> Out -> F) (q : bare_grid rows columns) i o :
  available_sum M q i o = window_sum (fun j => window_sum (fun u => M (u, j) i o) q.1) q.2.
Proof.
rewrite /available_sum /window_sum exchange_big pair_big.
by apply: eq_big => [d|[u j] _] //; rewrite bare_target_exists.
Qed.

Lemma equal_available_sums (F : fieldType) (In Out : Type) (rows columns m n : nat)
    (M : token_offset m n -> In -> Out -> F) :
  (m.*2 < rows)%N -> (n.*2 < columns)%N ->
  (forall (q q' : bare_grid rows columns) i o, available_sum M q i o = available_sum M q' i o) <->
  (forall d, d != centre_offset m n -> forall i o, M d i o = 0).
Proof.
move=> large1 large2; split=> [equal d off i o | zero q q' i o].
  pose S y j := window_sum (fun u => M (u, j) i o) (y : 'I_rows).
  have equal_S y (j : 'I_n.*2.+1) : j != n :> nat -> S y j = 0.
    apply: (equal_windows large2 (f := S y)) => x x'.
    by have := equal (y, x) (y, x') i o; rewrite !available_sum_windows.
  case: d off => u j; have [ej off|nj _] := eqVneq (j : nat) n; last first.
    by apply: (zero_windows large1 (f := fun u => M (u, j) i o)) => y; apply: equal_S.
  have nu : u != m :> nat.
    apply: contraNneq off => eu.
    by apply/eqP; congr (_, _); apply: val_inj; rewrite /= inordK ?eu ?ej //; lia.
  apply: (equal_windows large1 (f := fun u => M (u, j) i o) _ nu) => y y'.
  have ltn : (n < columns)%N by lia.
  have only_centre y0 : available_sum M (y0, Ordinal ltn) i o = S y0 j.
    rewrite available_sum_windows /= {1}/window_sum (bigD1 j) /=; last by rewrite ej; lia.
    rewrite big1 ?addr0 // => j' /andP[_ ne]; apply: equal_S.
    by apply: contraNneq ne => ej'; apply/eqP/val_inj; rewrite /= ej ej'.
  by rewrite -[LHS]only_centre -[RHS]only_centre.
have centre p : available_sum M (p : bare_grid rows columns) i o = M (centre_offset m n) i o.
  rewrite /available_sum (bigD1 (centre_offset m n)) /=; last first.
    by rewrite bare_target_centre.
  by rewrite big1 ?addr0 // => d /andP[_ off]; rewrite zero.
by rewrite !centre.
Qed.

Theorem padding_large (F : numFieldType) (In Out : finType) (rows columns m n : nat)
    (M : token_offset m n -> In -> Out -> F) :
  let Token := bare_grid rows columns in
  (m.*2 < rows)%N -> (n.*2 < columns)%N ->
  [<-> exists (Head : finType) (w : Head -> Token -> Token -> F) (V : Head -> In -> Out -> F),
        (forall h q k, 0 < w h q k) /\
        (forall X q o, attention_layer (fun h q => softmax (w h q)) V X q o =
                       bare_convolution M X q o);
      forall eps, 0 < eps ->
        exists (Head : finType) (A : (Token -> In -> F) -> Head -> Token -> Token -> F)
          (V : Head -> In -> Out -> F),
        (forall X h q, \sum_k A X h q k = 1) /\
        (forall X, (forall k i, `|X k i| <= 1) -> forall q o,
          `|attention_layer (A X) V X q o - bare_convolution M X q o| < eps);
      forall d, d != centre_offset m n -> forall i o, M d i o = 0].
Proof.
move=> Token large1 large2; have equivalent := all_iffLR (padding rows columns M).
have [only_centre constant] := equal_available_sums M large1 large2.
split; last split.
- exact: (equivalent 0 2)%N.
- by move=> approximable; apply: only_centre; exact: (equivalent 2 3)%N approximable.
by move=> zero; apply: (equivalent 3 0)%N; exact: constant.
Qed.
