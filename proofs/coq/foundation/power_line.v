(** On one axis: a kernel that takes all the heads it can.

    Its tap at the shift t is z^(t²), 0 < z < 1. Let p be a patch's side, and l at most p - 1 and at
    most m. From the columns δ in {-l..l}, and the rows whose distances of pixels s(δ) fall as δ
    grows, the flattened kernel has a minor in which the diagonal outweighs the rest: scaled in
    rows and columns, it is the identity but for powers of z. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring zify.
From Convattn.foundation Require Import image rank product_kernel near_identity.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory Num.Theory Order.Theory.
Local Open Scope ring_scope.

Definition power_line (F : fieldType) (z : F) (r u : nat) : F :=
  z ^+ (absz (u%:Z - r%:Z) ^ 2)%N.

(** The row of the offset number [d] (δ = d - l): from pixel [key_pixel] of the key's patch to
    pixel [query_pixel] of the query's. *)
Definition key_pixel (p l d : nat) : nat := if (d < l)%N then (p.-1 - d)%N else 0%N.
Definition query_pixel (p l d : nat) : nat := if (l < d)%N then (p.-1 - (l.*2 - d))%N else 0%N.

(** δ, its sign, and the distance s(δ) = -δ - (p - 1 - l) sign(δ), as integers. *)
Definition shift_of (l d : nat) : int := d%:Z - l%:Z.
Definition sign_of (l d : nat) : int := (l < d)%N%:Z - (d < l)%N%:Z.
Definition distance_of (p l d : nat) : int :=
  - shift_of l d - (p%:Z - 1 - l%:Z) * sign_of l d.

(** The shift at which a row meets a column, and what its row is scaled by. *)
Definition met_shift (p l row column : nat) : int :=
  p%:Z * shift_of l column + distance_of p l row.
Definition row_scale (p l d : nat) : int :=
  p%:Z * (shift_of l d ^+ 2 + (p%:Z - 1 - l%:Z) * sign_of l d ^+ 2) - distance_of p l d ^+ 2.

(** Which exponent is left. *)
Lemma exponent_gap (p l a b : nat) :
  met_shift p l a b ^+ 2 + row_scale p l a - (met_shift p l b b ^+ 2 + row_scale p l b) =
    p%:Z * ((shift_of l a - shift_of l b) ^+ 2 + (p%:Z - 1 - l%:Z) *
      (2%:R * shift_of l b * (sign_of l b - sign_of l a) + sign_of l a ^+ 2 - sign_of l b ^+ 2)).
Proof. rewrite /met_shift /row_scale /distance_of; ring. Qed.

Lemma exponent_gap_gt0 (p l a b : nat) : (l < p)%N -> a != b ->
  met_shift p l b b ^+ 2 + row_scale p l b < met_shift p l a b ^+ 2 + row_scale p l a.
Proof.
move=> ltlp nab; rewrite -subr_gt0 exponent_gap mulr_gt0 //; first lia.
apply: ltr_paddr; last by rewrite lt_def sqr_ge0 andbT sqrf_eq0 /shift_of; lia.
apply: mulr_ge0; first lia.
rewrite /sign_of /shift_of.
case: (ltngtP l a) => la; case: (ltngtP l b) => lb /=; lia.
Qed.

Lemma row_scale_ge0 (p l d : nat) : (l < p)%N -> (d < l.*2.+1)%N -> 0 <= row_scale p l d.
Proof.
move=> ltlp ltd; have enough (side x c : int) : 0 < x -> 0 <= c -> x + c < side ->
    0 <= side * (x ^+ 2 + c) - (x + c) ^+ 2.
  move=> lt0x le0c ltside.
  have -> : side * (x ^+ 2 + c) - (x + c) ^+ 2 =
    (side - (x + c)) * (x + c) + side * (x * (x - 1)) by ring.
  by rewrite addr_ge0 // mulr_ge0 ?mulr_ge0 //; lia.
have scale x : row_scale p l d = p%:Z * (x ^+ 2 + (p%:Z - 1 - l%:Z)) - (x + (p%:Z - 1 - l%:Z)) ^+ 2 ->
    0 < x -> x <= l%:Z -> 0 <= row_scale p l d.
  by move=> -> lt0x lexl; apply: enough => //; lia.
case: (ltngtP l d) => ld.
- apply: (scale (shift_of l d)).
  + by rewrite /row_scale /distance_of /sign_of ld ltnNge (ltnW ld) /=; ring.
  + by move: ld; rewrite /shift_of; lia.
  by move: ltd; rewrite /shift_of; lia.
- apply: (scale (- shift_of l d)).
  + by rewrite /row_scale /distance_of /sign_of ld ltnNge (ltnW ld) /=; ring.
  + by move: ld; rewrite /shift_of; lia.
  by move: ltd; rewrite /shift_of; lia.
have -> // : row_scale p l d = 0.
by rewrite /row_scale /distance_of /sign_of /shift_of -ld ltnn /=; ring.
Qed.

(** What a row reads in a column. *)
Lemma line_tap (p m l r row column : nat) :
  (l < p)%N -> (l <= m)%N -> (row < l.*2.+1)%N -> (column < l.*2.+1)%N ->
  if axis_tap p m r (column + (m - l)) (key_pixel p l row) (query_pixel p l row) is Some u
  then u%:Z - r%:Z = met_shift p l row column
  else r%:Z < `|met_shift p l row column|.
Proof.
move=> ltlp lelm ltr ltc.
have pixels : (key_pixel p l row)%:Z - (query_pixel p l row)%:Z = distance_of p l row.
  rewrite /key_pixel /query_pixel /distance_of /sign_of /shift_of.
  by case: (ltngtP l row) => lr /=; lia.
have place : (p * (column + (m - l)))%:Z = p%:Z * shift_of l column + p%:Z * m%:Z.
  by rewrite PoszM PoszD -subzn // /shift_of; ring.
rewrite /axis_tap; rewrite /met_shift -pixels; move: place.
move: (p * (column + (m - l)))%N (p%:Z * shift_of l column) => x y.
have := PoszM p m; move: (p * m)%N => z <- place.
by case: ifP; lia.
Qed.

(** The diagonal is within the kernel's reach. *)
Lemma diagonal_reached (p l r d : nat) :
  (l < p)%N -> (d < l.*2.+1)%N -> (l == 0)%N || (p * l.-1 < r)%N ->
  `|met_shift p l d d| <= r%:Z.
Proof.
move=> ltlp ltd far.
have bound (side x m : int) : 0 < x -> x <= m -> m < side ->
    0 <= side * x - x - (side - 1 - m) <= side * (m - 1) + 1.
  move=> lt0x lexm ltms; have : 0 <= (side - 1) * (m - x) by rewrite mulr_ge0 //; lia.
  by have : 0 <= (side - 1) * (x - 1) by [rewrite mulr_ge0 //; lia]; lia.
have reached : (0 < l)%N -> p%:Z * (l%:Z - 1) + 1 <= r%:Z.
  by move=> lt0l; move: far lt0l; case: (l) => //= k; rewrite -[k.+1]addn1 PoszD addrK; lia.
rewrite /met_shift /distance_of /sign_of /shift_of; case: (ltngtP l d) => ld /=.
- have := bound p%:Z (d%:Z - l%:Z) l%:Z; have : (0 < l)%N by lia.
  by move/reached; lia.
- have := bound p%:Z (l%:Z - d%:Z) l%:Z; have : (0 < l)%N by lia.
  by move/reached; lia.
by rewrite -ld subrr !mulr0 oppr0 subrr normr0.
Qed.

(** The exponents as natural numbers. *)
Lemma natural_gap (p l a b : nat) :
  (l < p)%N -> (a < l.*2.+1)%N -> (b < l.*2.+1)%N -> a != b ->
  (absz (met_shift p l b b) ^ 2 + absz (row_scale p l b) <
    absz (met_shift p l a b) ^ 2 + absz (row_scale p l a))%N.
Proof.
move=> ltlp lta ltb nab; rewrite -ltz_nat !PoszD -!abszX !abszE.
rewrite !ger0_norm ?sqr_ge0 ?row_scale_ge0 //.
exact: exponent_gap_gt0.
Qed.

Lemma key_in_patch (p l d : nat) : (l < p)%N -> (key_pixel p l d < p)%N.
Proof. by rewrite /key_pixel; case: ifP; lia. Qed.

Lemma query_in_patch (p l d : nat) : (l < p)%N -> (query_pixel p l d < p)%N.
Proof. by rewrite /query_pixel; case: ifP; lia. Qed.

Lemma column_in_reach (m l d : nat) : (l <= m)%N -> (d < l.*2.+1)%N -> (d + (m - l) < m.*2.+1)%N.
Proof. lia. Qed.

Section Inverse.

Variables (F : numFieldType) (p m l r : nat).
Hypothesis ltlp : (l < p)%N.
Hypothesis lelm : (l <= m)%N.
Hypothesis far : (l == 0)%N || (p * l.-1 < r)%N.

Definition line_key (d : 'I_l.*2.+1) : 'I_p := Ordinal (key_in_patch d ltlp).
Definition line_query (d : 'I_l.*2.+1) : 'I_p := Ordinal (query_in_patch d ltlp).
Definition line_column (d : 'I_l.*2.+1) : 'I_m.*2.+1 := Ordinal (column_in_reach lelm (ltn_ord d)).

Lemma power_line_inverse (z : F) : 0 < z -> l.*2.+1%:R * z < 1 ->
  exists L : 'I_l.*2.+1 -> 'I_l.*2.+1 -> F, forall a b,
    \sum_d L a d * axis_entry p m r (power_line z r) (line_key d) (line_query d) (line_column b) =
      (a == b)%:R.
Proof.
move=> pos small; pose entry a b :=
  axis_entry p m r (power_line z r) (line_key a) (line_query a) (line_column b).
pose row a := z ^+ absz (row_scale p l a).
pose column a := z ^+ (absz (met_shift p l a a) ^ 2 + absz (row_scale p l a)).
have nz k : z ^+ k != 0 by rewrite expf_neq0 // lt0r_neq0.
have le1z : z <= 1.
  by apply: le_trans (ltW small); rewrite -{1}[z]mul1r ler_wpmul2r ?(ltW pos) // ler1n.
have near a b : `|entry a b * row a / column b - (a == b)%:R| <= z.
  have := line_tap r ltlp lelm (ltn_ord a) (ltn_ord b); rewrite /entry /axis_entry /=.
  case: axis_tap => [u met | out]; last first.
    have [eab | nab] := eqVneq a b; last by rewrite !mul0r subr0 normr0 ltW.
    have := diagonal_reached ltlp (ltn_ord b) far; rewrite -{1}eab leNgt.
    by rewrite eab -{1}eab out.
  rewrite /power_line met /row /column -exprD; have [-> | nab] := eqVneq a b.
    by rewrite divff ?nz // subrr normr0 ltW.
  have gap := natural_gap ltlp (ltn_ord a) (ltn_ord b) nab.
  rewrite -(subnK gap) addnS -addSn exprD mulfK ?nz // subr0 exprS.
  rewrite ger0_norm ?mulr_ge0 ?exprn_ge0 ?(ltW pos) // -[X in _ <= X]mulr1.
  by rewrite ler_wpmul2l ?exprn_ile1 ?(ltW pos).
have [|L inverse] := near_identity_inverse near; first by rewrite card_ord.
exists (fun a d => L a d * row d / column a) => a b.
have := congr1 ( *%R^~ (column b / column a)) (inverse a b); rewrite big_distrl /=.
have -> : (a == b)%:R * (column b / column a) = (a == b)%:R.
  by have [-> | _] := eqVneq a b; rewrite ?divff ?nz ?mulr1 // mul0r.
move=> <-; apply: eq_bigr => d _; rewrite -/(entry d b); field.
by rewrite !nz.
Qed.

End Inverse.
