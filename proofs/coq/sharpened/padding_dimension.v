(** S.padding, small grids: how many kernels can be zero-padded without a ring.

    On a bare grid of any numbers of rows and columns but zero, over any field, the kernels M of one
    number for each offset in {-m..m} × {-n..n} whose sums T_q over the available offsets are the same
    for all q form a space of K₁ K₂ - min(rows, K₁) · min(columns, K₂) + 1 dimensions, K₁ = 2m + 1 and
    K₂ = 2n + 1: so many independent ones span it. By S.padding they are, over a field as there, the
    kernels of pixels (one number for each pair of channels) whose zero-padded convolution some layer
    computes without a ring. On 4 × 4 pixels and with K = 5 it is 10; where the grid has at least K₁
    rows and K₂ columns it is 1, the centre alone. (Kernels on patches of more than one pixel, whose
    maps share taps, are not counted here.) *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import zify.
From Convattn.foundation Require Import attention grid rank bare tensor_rank.
From Convattn.sharpened Require Import padding_large.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Section Axis.

Variables (F : fieldType) (side m : nat).

(** Does offset [i] exist at [y]? *)
Definition in_window (y : 'I_side) (i : 'I_m.*2.+1) : F := (m <= y + i < m + side)%N%:R.

Lemma sum_in_window (f : 'I_m.*2.+1 -> F) y : \sum_i in_window y i * f i = window_sum f y.
Proof.
rewrite /window_sum [RHS]big_mkcond; apply: eq_bigr => i _.
by rewrite /in_window; case: ifP; rewrite ?mul1r ?mul0r.
Qed.

(** On a short axis the windows are independent: all sums up to [t] vanish. *)
Lemma short_windows (c : 'I_side -> F) : (side <= m.*2)%N ->
  (forall i, \sum_y in_window y i * c y = 0) -> forall y, c y = 0.
Proof.
move=> short zero; pose upto t := \sum_(y < side | (y < t)%N) c y.
have window i (p : pred 'I_side) : (i < m.*2.+1)%N ->
    (forall y : 'I_side, (m <= y + i < m + side)%N = p y) -> \sum_(y | p y) c y = 0.
  move=> lti same; rewrite big_mkcond -[RHS](zero (Ordinal lti)); apply: eq_bigr => y _.
  by rewrite /in_window /= same; case: ifP; rewrite ?mul1r ?mul0r.
have high t : (side - t <= m)%N -> (t <= side)%N -> upto t = 0.
  by move=> near le; apply: (window (m + side - t)%N) => [|[y lty] /=]; lia.
have upto0 t : (t <= side)%N -> upto t = 0.
  move=> le; have [near|far] := leqP (side - t) m; first exact: high.
  have all0 : \sum_y c y = 0.
    by rewrite -[RHS](high side) ?subnn //; apply: eq_bigl => y; rewrite ltn_ord.
  have rest : \sum_(y < side | ~~ (y < t)%N) c y = 0.
    by apply: (window (m - t)%N) => [|[y lty] /=]; lia.
  by move: all0; rewrite (bigID (fun y : 'I_side => (y < t)%N)) /= rest addr0.
move=> y; have := upto0 y.+1 (ltn_ord y); rewrite /upto (bigD1 y) //=.
rewrite (eq_bigl (fun y' : 'I_side => (y' < y)%N)) => [|y']; last by rewrite ltnS ltn_neqAle andbC.
by rewrite -/(upto y) upto0 ?addr0 // ltnW.
Qed.

Lemma window_rank : family_rank in_window = minn side m.*2.+1.
Proof.
have [short|large] := leqP side m.*2.
  rewrite (minn_idPl _) ?leqW // -family_rank_transposed -[RHS]card_ord.
  by apply: family_rank_columns => c; exact: short_windows.
rewrite (minn_idPr _) // -[RHS]card_ord; apply: family_rank_columns => f zero.
by apply: (zero_windows large) => y; rewrite -sum_in_window.
Qed.

End Axis.

Section Dimension.

Variables (F : fieldType) (rows columns m n : nat).

Definition token_exists (q : bare_grid rows columns) (d : token_offset m n) : F :=
  (isSome (bare_target q d))%:R.

Lemma token_exists_rank : family_rank token_exists = (minn rows m.*2.+1 * minn columns n.*2.+1)%N.
Proof.
rewrite -(window_rank F) -(window_rank F) -family_rank_tensor /family_rank.
congr (\rank _); apply: eq_family_matrix => q d.
by rewrite /token_exists /in_window bare_target_exists -natrM mulnb.
Qed.

Variable q0 : bare_grid rows columns.

(** Against the first query: their sums vanish where all sums are equal. *)
Definition exists_less (q : bare_grid rows columns) (d : token_offset m n) : F :=
  token_exists q d - token_exists q0 d.

Lemma token_exists_centre q : token_exists q (centre_offset m n) = 1.
Proof. by rewrite /token_exists bare_target_centre. Qed.

(** One dimension less, as all have the centre. *)
Lemma exists_less_rank : (family_rank exists_less).+1 = family_rank token_exists.
Proof.
pose D := family_matrix exists_less; pose A := family_matrix token_exists.
pose b := row (enum_rank q0) A; pose centre : 'cV[F]_#|token_offset m n| :=
  delta_mx (enum_rank (centre_offset m n)) 0.
have select k (M : 'M[F]_(k, _)) i : (M *m centre) i 0 = M i (enum_rank (centre_offset m n)).
  by rewrite /centre -colE mxE.
have b_centre : b *m centre = 1%:M.
  apply/matrixP => i j; rewrite !ord1 select !mxE !enum_rankK token_exists_centre.
  by rewrite eqxx.
have D_centre : D *m centre = 0.
  apply/matrixP => i j; rewrite !ord1 select !mxE enum_rankK /exists_less !token_exists_centre.
  by rewrite subrr.
have disjoint : (D :&: b)%MS = 0.
  have /submxP[U eU] := capmxSl D b; have /submxP[V eV] := capmxSr D b.
  rewrite eV; suff -> : V = 0 by rewrite mul0mx.
  by rewrite -[V]mulmx1 -b_centre mulmxA -eV eU -mulmxA D_centre mulmx0.
have row_D i : row i D = row i A - b by apply/rowP => j; rewrite !mxE enum_rankK.
have same : (A :=: D + b)%MS.
  apply/eqmxP/andP; split; last first.
    rewrite addsmx_sub row_sub andbT; apply/row_subP => i; rewrite row_D.
    by rewrite addmx_sub ?eqmx_opp ?row_sub.
  apply/row_subP => i; rewrite -[row i A](subrK b) -row_D.
  by rewrite addmx_sub_adds ?row_sub.
rewrite /family_rank -/D -/A same mxrank_disjoint_sum //.
suff -> : \rank b = 1%N by rewrite addn1.
rewrite rank_rV; case: eqP => // b0; move: b_centre; rewrite b0 mul0mx => /matrixP/(_ 0 0)/eqP.
by rewrite !mxE eq_sym oner_eq0.
Qed.

End Dimension.

Theorem padding_dimension (F : fieldType) (rows columns m n : nat) :
  (0 < rows)%N -> (0 < columns)%N ->
  let dimension := (m.*2.+1 * n.*2.+1 - minn rows m.*2.+1 * minn columns n.*2.+1).+1 in
  exists E : 'I_dimension -> token_offset m n -> F,
    family_rank E = dimension /\
    forall M : token_offset m n -> F,
      (forall q q' : bare_grid rows columns,
        \sum_(d | bare_target q d) M d = \sum_(d | bare_target q' d) M d) <->
      (exists c, forall d, M d = \sum_a c a * E a d).
Proof.
move=> lty ltx dimension; pose q0 : bare_grid rows columns := (Ordinal lty, Ordinal ltx).
pose D := (family_matrix (exists_less F (m := m) (n := n) q0))^T; pose K := kermx D.
have rank_K : \rank K = dimension.
  rewrite mxrank_ker mxrank_tr -[\rank _]/(family_rank _) card_prod !card_ord /dimension.
  have := exists_less_rank F m n q0; rewrite token_exists_rank.
  set r := family_rank _; have : (minn rows m.*2.+1 * minn columns n.*2.+1 <= m.*2.+1 * n.*2.+1)%N.
    by rewrite leq_mul ?geq_minr.
  by lia.
have sums (M : token_offset m n -> F) (q : bare_grid rows columns) :
    \sum_(d | bare_target q d) M d = \sum_d token_exists F q d * M d.
  rewrite big_mkcond; apply: eq_bigr => d _.
  by rewrite /token_exists; case: (bare_target q d) => [k|]; rewrite ?mul1r ?mul0r.
rewrite -rank_K; exists (fun a d => row_base K a (enum_rank d)); split=> [|M].
  rewrite -family_rank_transposed -[RHS]card_ord; apply: family_rank_columns => f zero a.
  have : \row_a f a *m row_base K = 0.
    apply/rowP => j; rewrite !mxE -[RHS](zero (enum_val j)); apply: eq_bigr => b _.
    by rewrite mxE enum_valK mulrC.
  move/eqP; rewrite -[X in _ == X](mul0mx _ (row_base K)) => /eqP/(row_free_inj (row_base_free K)).
  by move/rowP/(_ a); rewrite !mxE.
pose v : 'rV[F]_#|token_offset m n| := \row_j M (enum_val j).
have in_kernel : v *m D = 0 <-> forall q, \sum_d exists_less F q0 q d * M d = 0.
  have entry q : (v *m D) 0 (enum_rank q) = \sum_d exists_less F q0 q d * M d.
    rewrite mxE -[RHS]sum_enum_val; apply: eq_bigr => d _.
    by rewrite !mxE enum_rankK mulrC.
  split=> [vD0 q|zero]; first by rewrite -entry vD0 mxE.
  by apply/rowP => j; rewrite -[j]enum_valK entry zero mxE.
have less (M' : token_offset m n -> F) q : \sum_d exists_less F q0 q d * M' d =
    \sum_(d | bare_target q d) M' d - \sum_(d | bare_target q0 d) M' d.
  by rewrite !sums -sumrB; apply: eq_bigr => d _; rewrite -mulrBl.
split=> [equal|[c eM] q q'].
  have : (v <= row_base K)%MS.
    by rewrite eq_row_base; apply/sub_kermxP/in_kernel => q; rewrite less (equal q q0) subrr.
  case/submxP=> U /rowP eU; exists (U 0) => d.
  by have := eU (enum_rank d); rewrite !mxE enum_rankK.
suff zero : v *m D = 0.
  have eq_q0 (p : bare_grid rows columns) :
      \sum_(d | bare_target p d) M d = \sum_(d | bare_target q0 d) M d.
    by apply/eqP; rewrite -subr_eq0 -less (in_kernel.1 zero p).
  by rewrite eq_q0 [RHS]eq_q0.
apply/sub_kermxP; rewrite -/K -(eq_row_base K); apply/submxP; exists (\row_a c a).
by apply/rowP => j; rewrite !mxE eM; apply: eq_bigr => a _; rewrite mxE enum_valK.
Qed.
