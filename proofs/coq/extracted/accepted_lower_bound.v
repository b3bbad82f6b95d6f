(** What the second checker accepts as a lower bound is one.

    The body of a certificate of the kind lower_bound, two axes (one axis is a second one of size
    one): a K₁ × K₂ kernel of integers, flat in the order HWIO, on patches of p₁ × p₂ pixels; n rows
    (output pixel, input pixel, channel in, channel out) and n columns (shifts between tokens); the
    determinant of that minor; and the tokens a side of the smallest image. The checker computes the
    minor from the definition of the convolution's maps, and its determinant. If it accepts, then on
    every image of so many tokens or more no layer with fewer than n heads is the zero-padded
    convolution with this kernel, over every field of characteristic zero; and over an ordered one
    none with fewer comes closer than some ε > 0. The rows of attention are any by position, and
    further tokens may be there that do not depend on the image. *)

From Coq Require Import BinInt.
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ssrZ zify.
From Convattn.foundation Require Import attention image grid rank dilated bare_dilated.
From Convattn.foundation Require Import listed_integers bareiss.
From Convattn.checker Require Import lower_bound lower_bound_limit.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory Num.Theory Order.Theory.
Local Open Scope ring_scope.

(** Output pixel, input pixel, channels in and out. *)
Definition minor_row := ((nat * nat) * (nat * nat) * (nat * nat))%type.

Record bound_body := BoundBody {
  bound_kernel1 : nat; bound_kernel2 : nat;
  bound_patch1 : nat; bound_patch2 : nat;
  bound_inputs : nat; bound_outputs : nat;
  bound_kernel : seq Z;
  bound_rows : seq minor_row;
  bound_columns : seq (Z * Z);
  bound_determinant : Z;
  bound_heads : nat;
  bound_tokens1 : nat; bound_tokens2 : nat }.

(** The kernel's entry at a tap, for two channels. *)
Definition bound_weight (b : bound_body) (i j c o : nat) : Z :=
  nth Z0 (bound_kernel b)
    (((i * bound_kernel2 b + j) * bound_inputs b + c) * bound_outputs b + o).

(** The entry of the convolution's map at a shift: a sum over all taps, of which one counts. *)
Definition bound_entry (b : bound_body) (r : minor_row) (z : Z * Z) : Z :=
  let: (t, s, co) := r in
  sum_below (bound_kernel1 b) (fun i =>
    if tap_joins (bound_patch1 b) (bound_kernel1 b) 1 z.1 s.1 t.1 i then
      sum_below (bound_kernel2 b) (fun j =>
        if tap_joins (bound_patch2 b) (bound_kernel2 b) 1 z.2 s.2 t.2 j
        then bound_weight b i j co.1 co.2 else Z0)
    else Z0).

Definition row_in_range (b : bound_body) (r : minor_row) : bool :=
  let: (t, s, co) := r in
  [&& (t.1 < bound_patch1 b)%N, (t.2 < bound_patch2 b)%N, (s.1 < bound_patch1 b)%N,
      (s.2 < bound_patch2 b)%N, (co.1 < bound_inputs b)%N & (co.2 < bound_outputs b)%N].

(** The side is one more than the largest of the distances. *)
Definition side_fits (side : nat) (steps : seq Z) : bool :=
  all (fun z => Z.ltb (Z.abs z) (Z.of_nat side)) steps &&
  has (fun z => Z.eqb (Z.succ (Z.abs z)) (Z.of_nat side)) steps.

Definition bound_accept (b : bound_body) : bool :=
  let n := bound_heads b in
  let minor := [seq [seq bound_entry b r z | z <- bound_columns b] | r <- bound_rows b] in
  [&& size (bound_rows b) == n, size (bound_columns b) == n, all (row_in_range b) (bound_rows b),
      side_fits (bound_tokens1 b) [seq z.1 | z <- bound_columns b],
      side_fits (bound_tokens2 b) [seq z.2 | z <- bound_columns b],
      ~~ Z.eqb (bound_determinant b) Z0 &
      Z.eqb (bareiss n (Zpos xH) minor) (bound_determinant b)].

Section Minor.

Variable b : bound_body.
Let In := [finType of 'I_(bound_inputs b)].
Let Out := [finType of 'I_(bound_outputs b)].
Let FeatureIn := patch_feature (bound_patch1 b) (bound_patch2 b) In.
Let FeatureOut := patch_feature (bound_patch1 b) (bound_patch2 b) Out.

(** The kernel, as a function. *)
Definition accepted_kernel (i j : nat) (c : In) (o : Out) : int := int_of_Z (bound_weight b i j c o).

Lemma bound_entryE (z : Z * Z) (s : FeatureIn) (t : FeatureOut) :
  int_of_Z (bound_entry b (t.1.1 : nat, t.1.2 : nat, (s.1.1 : nat, s.1.2 : nat), (s.2 : nat, t.2 : nat)) z) =
    offset_map (bound_kernel1 b) (bound_kernel2 b) 1 1 accepted_kernel
      (int_of_Z z.1) (int_of_Z z.2) s t.
Proof.
rewrite /bound_entry /offset_map sum_belowE; apply: eq_bigr => i _ /=.
rewrite tap_joinsE; case: ifP => _; last by rewrite big1.
by rewrite sum_belowE; apply: eq_bigr => j _; rewrite tap_joinsE; case: ifP.
Qed.

(** The rows and columns of an accepted minor. *)
Lemma accepted_minor : bound_accept b ->
  exists (row : 'I_(bound_heads b) -> FeatureIn * FeatureOut)
         (column : 'I_(bound_heads b) -> int * int),
    \det (\matrix_(i, j) offset_map (bound_kernel1 b) (bound_kernel2 b) 1 1 accepted_kernel
            (column j).1 (column j).2 (row i).1 (row i).2) != 0 /\
    forall n1 n2, (bound_tokens1 b <= n1)%N -> (bound_tokens2 b <= n2)%N ->
      forall j, ((`|(column j).1| < n1) && (`|(column j).2| < n2))%N.
Proof.
case/and5P=> /eqP rows_size /eqP columns_size ranges /andP[far1 _] /and3P[/andP[far2 _] nz /Z.eqb_spec det].
set n := bound_heads b in rows_size columns_size det *.
pose r0 : minor_row := (0, 0, (0, 0), (0, 0))%N.
have at_row (i : 'I_n) : exists st : FeatureIn * FeatureOut, nth r0 (bound_rows b) i =
    (st.2.1.1 : nat, st.2.1.2 : nat, (st.1.1.1 : nat, st.1.1.2 : nat), (st.1.2 : nat, st.2.2 : nat)).
  have : row_in_range b (nth r0 (bound_rows b) i) by apply: (allP ranges); rewrite mem_nth ?rows_size.
  case: (nth _ _ _) => -[[t1 t2] [s1 s2]] [c o] /=.
  case/and5P=> lt1 lt2 ls1 ls2 /andP[lc lo].
  by exists ((Ordinal ls1, Ordinal ls2, Ordinal lc), (Ordinal lt1, Ordinal lt2, Ordinal lo)).
have /fin_all_exists [row rowE] := at_row.
pose z0 := (Z0, Z0); pose at_column (j : 'I_n) := nth z0 (bound_columns b) j.
exists row, (fun j => (int_of_Z (at_column j).1, int_of_Z (at_column j).2)); split; last first.
  move=> n1 n2 le1 le2 j; have in_j : at_column j \in bound_columns b by rewrite mem_nth ?columns_size.
  have := allP far1 _ (map_f fst in_j); have := allP far2 _ (map_f snd in_j).
  by rewrite /=; lia.
have nz' : bareiss n (Zpos xH) [seq [seq bound_entry b r z | z <- bound_columns b] | r <- bound_rows b]
    != Z0 by rewrite det.
have := bareiss_det _ _ nz'; rewrite det size_map => /(_ rows_size) detE.
rewrite (_ : \matrix_(i, j) _ = listed_matrix n
    [seq [seq bound_entry b r z | z <- bound_columns b] | r <- bound_rows b]).
  rewrite detE ?int_of_Z_eq0 ?(negbTE nz) //.
  by apply/allP => r /mapP[r' _ ->]; rewrite size_map columns_size.
apply/matrixP => i j; rewrite !mxE (nth_map r0) ?rows_size // (nth_map z0) ?columns_size // rowE.
by rewrite -bound_entryE.
Qed.

End Minor.

Theorem accepted_lower_bound (b : bound_body) : bound_accept b ->
  let p1 := bound_patch1 b in
  let p2 := bound_patch2 b in
  let In := [finType of 'I_(bound_inputs b)] in
  let Out := [finType of 'I_(bound_outputs b)] in
  let convolved F n1 n2 (X : image_type F In) :=
    dilated_convolution (p1 * n1) (p2 * n2) (bound_kernel1 b) (bound_kernel2 b) 1 1
      (fun i j c o => (accepted_kernel i j c o)%:~R : F) X in
  (forall (F : fieldType) (Head Extra : finType) (n1 n2 : nat)
    (A : Head -> bare_grid n1 n2 -> bare_grid n1 n2 + Extra -> F)
    (M : Head -> patch_feature p1 p2 In -> patch_feature p1 p2 Out -> F)
    (c : patch_feature p1 p2 Out -> F) (R : Extra -> patch_feature p1 p2 In -> F),
    [char F] =i pred0 -> (bound_tokens1 b <= n1)%N -> (bound_tokens2 b <= n2)%N ->
    (forall (X : image_type F In) q t,
      attention_layer A M (with_extra R X) q t + c t =
        convolved F n1 n2 X (p1 * q.1 + t.1.1)%N (p2 * q.2 + t.1.2)%N t.2) ->
    (bound_heads b <= #|Head|)%N) /\
  (forall F : numFieldType, exists2 eps : F, 0 < eps &
    forall (Head Extra : finType) (n1 n2 : nat)
    (A : Head -> bare_grid n1 n2 -> bare_grid n1 n2 + Extra -> F)
    (M : Head -> patch_feature p1 p2 In -> patch_feature p1 p2 Out -> F)
    (c : patch_feature p1 p2 Out -> F) (R : Extra -> patch_feature p1 p2 In -> F),
    (bound_tokens1 b <= n1)%N -> (bound_tokens2 b <= n2)%N ->
    (forall (X : nat -> nat -> In -> bool) q t,
      let Y : image_type F In := fun y x c => (X y x c)%:R in
      `|attention_layer A M (with_extra R Y) q t + c t -
        convolved F n1 n2 Y (p1 * q.1 + t.1.1)%N (p2 * q.2 + t.1.2)%N t.2| <= eps) ->
    (bound_heads b <= #|Head|)%N).
Proof.
move=> /accepted_minor[row [column [nz small]]]; split=> [F Head Extra n1 n2 A M c R char0 le1 le2|F].
  by apply: lower_bound nz (small _ _ le1 le2).
have [eps gt0 far] := lower_bound_limit F nz.
exists eps => // Head Extra n1 n2 A M c R le1 le2.
by apply: far; exact: small.
Qed.
