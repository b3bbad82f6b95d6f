(** S.gqa: heads that share value maps in groups.

    Let m ≥ r₁ / p₁ and n ≥ r₂ / p₂. For every kernel there is an ε > 0 such that every layer whose heads share G
    value maps of d features, each with an output map of its own, is off its zero-padded convolution by more
    than ε if G · d < rk_in, the rank of the kernel's maps of all offsets side by side: at some output of some
    image of zeros and ones, whatever the attention, so long as it does not depend on the image, any bias, any
    number of heads, and all image sizes of more than m rows and n columns of patches, with a ring of any width
    or with none. So no such layers tend to the convolution, whether their values stay bounded or not.

    If the N heads of a layer are the convolution, and G · d ≥ rk_in, the G · N heads that attend as they do, G
    times, and share G value maps of d features, are it too, with the same bias. So one group costs no head if
    d ≥ rk_in. For any layer, also one whose attention depends on the image, and for any tokens and queries, the
    same holds if G · d is at least the number of features of a token. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import zify.
From Convattn.foundation Require Import attention image grid patches bare rank rank_factors head_dimension.
From Convattn.foundation Require Import flattened_kernel lower_bound near_identity near_layers.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory Num.Theory Order.Theory.
Local Open Scope ring_scope.

Section Groups.

Variables (F : fieldType) (Head Group Feature In Out : finType).

(** Each group holds a part of what a map of low rank leaves of a token, and all heads of it the same. *)
Lemma grouped_maps (P : In -> In -> F) (M : Head -> In -> Out -> F) :
  (family_rank P <= #|Group| * #|Feature|)%N ->
  exists (V : Group -> In -> Feature -> F) (U : Group * Head -> Feature -> Out -> F),
    forall h i o, \sum_g through (V g) (U (g, h)) i o = \sum_j P i j * M h j o.
Proof.
rewrite -card_prod => /low_rank_factors[L [R eP]].
exists (fun g i e => L i (g, e)), (fun gh e o => \sum_j R (gh.1, e) j * M gh.2 j o) => h i o.
rewrite pair_bigA (eq_bigr (fun ge => \sum_j L i ge * R ge j * M h j o)) => [|[g e] _]; last first.
  by rewrite mulr_sumr; apply: eq_bigr => j _; rewrite mulrA.
by rewrite exchange_big; apply: eq_bigr => j _; rewrite eP mulr_suml.
Qed.

Lemma grouped_layer (Key : finType) (Query : Type) (A : Head -> Query -> Key -> F)
    (V : Group -> In -> Feature -> F) (U : Group * Head -> Feature -> Out -> F)
    (N : Head -> In -> Out -> F) (X : Key -> In -> F) q o :
  (forall h i o, \sum_g through (V g) (U (g, h)) i o = N h i o) ->
  attention_layer (fun gh => A gh.2) (fun gh => through (V gh.1) (U gh)) X q o = attention_layer A N X q o.
Proof.
move=> split; rewrite /attention_layer.
rewrite (eq_bigr (fun gh => feature_map (through (V gh.1) (U (gh.1, gh.2))) (attend (A gh.2 q) X) o));
  last by case.
rewrite -(pair_bigA _ (fun g h => feature_map (through (V g) (U (g, h))) (attend (A h q) X) o)) /=.
rewrite exchange_big; apply: eq_bigr => h _ /=; rewrite /feature_map exchange_big.
by apply: eq_bigr => i _ /=; rewrite -mulr_sumr split.
Qed.

End Groups.

(** A projection onto the columns of a family, of its rank. *)
Lemma column_projection (F : fieldType) (Row Column : finType) (M : Row -> Column -> F) :
  exists2 P : Row -> Row -> F, (family_rank P <= family_rank M)%N &
    forall i c, \sum_j P i j * M j c = M i c.
Proof.
pose K := family_matrix M; pose Q := K *m pinvmx K.
exists (fun i j => Q (enum_rank i) (enum_rank j)) => [|i c].
  apply: leq_trans (mxrankM_maxl K (pinvmx K)); rewrite /family_rank; apply: eq_leq; congr (\rank _).
  by apply/matrixP => i j; rewrite mxE !enum_valK.
have /matrixP/(_ (enum_rank i) (enum_rank c)) : Q *m K = K by exact: mulmxKpV.
rewrite [K _ _]mxE !enum_rankK => <-; rewrite mxE -sum_enum_val.
by apply: eq_bigr => j _; rewrite [K _ _]mxE enum_valK !enum_rankK.
Qed.

(** A key is a token of the image, or one of the ring, which is zero. *)
Lemma image_or_ring (F : fieldType) (In : finType) (rows columns p1 p2 a b : nat)
    (k : ringed_grid rows columns a b) :
  (exists k0, k = image_key a b k0) \/
  (forall (X : image_type F In) (f : patch_feature p1 p2 In), patch_token X k f = 0).
Proof.
case: (boolP ((a <= k.1 < a + rows) && (b <= k.2 < b + columns))%N) => [inside|outside]; [left|right].
  have lt1 : (k.1 - a < rows)%N by lia.
  have lt2 : (k.2 - b < columns)%N by lia.
  exists (Ordinal lt1, Ordinal lt2); case: k inside {lt1 lt2} (lt1) (lt2) => k1 k2 /= inside lt1 lt2.
  by congr (_, _); apply: val_inj => /=; lia.
by move=> X [[s1 s2] c]; rewrite /patch_token /zero_framed !patch_in_frame // (negbTE outside).
Qed.

Theorem gqa (F : numFieldType) (In Out : finType) (p1 p2 m n r1 r2 : nat)
    (W : nat -> nat -> In -> Out -> F) :
  (r1 <= p1 * m)%N -> (r2 <= p2 * n)%N ->
  (exists2 eps, 0 < eps &
   forall (Head Group Feature : finType) (group : Head -> Group) (rows columns a b : nat)
      (A : Head -> bare_grid rows columns -> ringed_grid rows columns a b -> F)
      (V : Group -> patch_feature p1 p2 In -> Feature -> F)
      (U : Head -> Feature -> patch_feature p1 p2 Out -> F)
      (bias : patch_feature p1 p2 Out -> F),
    (m < rows)%N -> (n < columns)%N ->
    (#|Group| * #|Feature| < family_rank (in_matricisation p1 p2 m n r1 r2 W))%N ->
    exists (X : nat -> nat -> In -> bool) (q : bare_grid rows columns) (t : patch_feature p1 p2 Out),
      eps < output_error r1 r2 A (fun h => through (V (group h)) (U h)) bias W (binary_image F X) q t) /\
  (forall (Head Group Feature : finType) (rows columns a b : nat)
      (A : Head -> bare_grid rows columns -> ringed_grid rows columns a b -> F)
      (M : Head -> patch_feature p1 p2 In -> patch_feature p1 p2 Out -> F)
      (bias : patch_feature p1 p2 Out -> F),
    expresses r1 r2 A M bias W ->
    (family_rank (in_matricisation p1 p2 m n r1 r2 W) <= #|Group| * #|Feature|)%N ->
    exists (V : Group -> patch_feature p1 p2 In -> Feature -> F)
        (U : Group * Head -> Feature -> patch_feature p1 p2 Out -> F),
      expresses r1 r2 (fun gh => A gh.2) (fun gh => through (V gh.1) (U gh)) bias W) /\
  (forall (Head Group Feature Key : finType) (Query Tokens : Type) (A : Tokens -> Head -> Query -> Key -> F)
      (M : Head -> patch_feature p1 p2 In -> patch_feature p1 p2 Out -> F),
    (#|patch_feature p1 p2 In| <= #|Group| * #|Feature|)%N ->
    exists (V : Group -> patch_feature p1 p2 In -> Feature -> F)
        (U : Group * Head -> Feature -> patch_feature p1 p2 Out -> F),
      forall (Z : Tokens) (X : Key -> patch_feature p1 p2 In -> F) q o,
        attention_layer (fun gh => A Z gh.2) (fun gh => through (V gh.1) (U gh)) X q o =
          attention_layer (A Z) M X q o).
Proof.
move=> reach1 reach2; split; last split.
- have [ball pos nearby] := family_rank_nearby (in_matricisation p1 p2 m n r1 r2 W).
  have half : 0 < ball / 2%:R by rewrite divr_gt0 ?ltr0n.
  exists (ball / 2%:R) => // Head Group Feature group rows columns a b A V U bias large1 large2 few.
  apply: (off_somewhere bias reach1 reach2 (large1 := large1) (large2 := large2)) half _ => near.
  pose N := layer_map A (fun h => through (V (group h)) (U h)) large1 large2.
  pose weight h d := A h (joined_query large1 large2 d) (image_key a b (joined_key large1 large2 d)).
  move: few; rewrite ltnNge => /negP; apply; rewrite -card_prod.
  apply: leq_trans (nearby (fun s dt => N (s, dt.2) dt.1) _) _ => [s [d t]|].
    by rewrite [leRHS](splitr ball); exact: near.
  apply: (family_rank_product (L := fun s ge => V ge.1 s ge.2)
    (R := fun ge dt => \sum_(h | group h == ge.1) weight h dt.1 * U h ge.2 dt.2)) => s [d t].
  rewrite -(pair_bigA _ (fun g e => V g s e * \sum_(h | group h == g) weight h d * U h e t)) /=.
  rewrite /N /layer_map (partition_big group xpredT) //=; apply: eq_bigr => g _.
  under [RHS]eq_bigr do rewrite mulr_sumr.
  rewrite exchange_big; apply: eq_bigr => h /eqP <- /=; rewrite mulr_suml.
  by apply: eq_bigr => e _; rewrite mulrAC mulrA.
- move=> Head Group Feature rows columns a b A M bias equal room.
  have [P low project] := column_projection (in_matricisation p1 p2 m n r1 r2 W).
  have [V [U split]] := grouped_maps M (leq_trans low room).
  exists V, U => X q t; rewrite (grouped_layer _ _ _ _ split).
  pose X' := image_of_tokens (fun k s' => \sum_s @bare_token _ _ rows columns p1 p2 X k s * P s s').
  have tokenE i j (k : ringed_grid rows columns i j) s' :
      patch_token X' k s' = \sum_s patch_token X k s * P s s'.
    case: (@image_or_ring F In rows columns p1 p2 i j k) => [[k0 ->]|zero].
      rewrite patch_token_image_key bare_token_image.
      by apply: eq_bigr => s _; rewrite patch_token_image_key.
    by rewrite zero big1 // => s _; rewrite zero mul0r.
  transitivity (attention_layer A M (patch_token X') q t + bias t).
    congr (_ + _); apply: eq_bigr => h _; rewrite /feature_map.
    under eq_bigr do rewrite mulr_sumr.
    rewrite exchange_big; apply: eq_bigr => s' _ /=.
    rewrite /attend mulr_suml; under eq_bigr do rewrite mulr_suml.
    rewrite exchange_big; apply: eq_bigr => k _ /=; rewrite tokenE mulr_sumr mulr_suml.
    by apply: eq_bigr => s _; rewrite !mulrA.
  rewrite equal -!(convolution_of_tokens W _ q t reach1 reach2); apply: eq_bigr => d _.
  rewrite /feature_map; under eq_bigr do rewrite tokenE mulr_suml.
  rewrite exchange_big; apply: eq_bigr => s _ /=; under eq_bigr do rewrite -mulrA.
  by rewrite -mulr_sumr; congr (_ * _); exact: (project s (d, t)).
move=> Head Group Feature Key Query Tokens A M room.
pose one (i j : patch_feature p1 p2 In) : F := (i == j)%:R.
have [V [U split]] := grouped_maps M (leq_trans (rank_leq_row (family_matrix one)) room).
exists V, U => Z X q o; apply: grouped_layer => h i o'; rewrite split (bigD1 i) //= /one eqxx mul1r.
by rewrite big1 ?addr0 // => j; rewrite eq_sym => /negbTE ->; rewrite mul0r.
Qed.
