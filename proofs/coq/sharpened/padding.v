(** S.padding: which zero-padded convolutions attention computes on the bare grid.

    Let M_δ be any maps of tokens at the offsets δ in {-m..m} × {-n..n}, such as the blocks of a
    kernel on patches (then [bare_convolution] is the zero-padded convolution of the image, by
    [convolution_of_bare_tokens]). Let T_q = Σ M_δ over those δ for which q + δ is in the grid. For
    every grid, without a ring, these are equivalent: (1) some layer of finitely many softmax heads
    with positive weights, the same for all tokens X, computes Σ_δ X_(q+δ) M_δ over those δ, the
    zero-padded convolution, at every query for all X; (2) so does some layer with any attention
    weights whose rows sum to one, and these may depend on X in any way; (3) for every ε > 0 such a
    layer comes within ε of it for all tokens of entries at most 1, so that a limit of layers
    computes it; (4) T_q is the same for all q. The proof's layer of (1) ([padding_layer]) has a head
    for each offset, which is relative, and a uniform one. Its maps are those of S.finite, corrected
    by the T_q, and depend on the number of tokens.

    The values do not carry positions. The heads' maps, V = W_V W_O, may be any. The layers have no
    bias at the output. One would change nothing: where all tokens are zero it is all that a layer
    gives, so that it would be zero in (1) and (2) and less than ε in (3). The field is any that holds
    the absolute values of its numbers, such as the rationals, the reals and the complex numbers. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention heads grid bare.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** T_q, the sum of the maps whose token exists. *)
Definition available_sum (F : fieldType) (rows columns m n : nat) (In Out : Type)
    (M : token_offset m n -> In -> Out -> F) (q : bare_grid rows columns) (i : In) (o : Out) : F :=
  \sum_(d | bare_target q d) M d i o.

(** The maps of S.finite; the uniform head takes back also what the missing
    tokens' heads see, the mean times Σ_δ M_δ - T, where T is every T_q. *)
Definition padding_maps (F : fieldType) (Offset In : finType) (Out : Type)
    (M : Offset -> In -> Out -> F) (T : In -> Out -> F) (keys : nat) (e : F)
    (h : option Offset) (i : In) (o : Out) : F :=
  finite_maps M keys e h i o - (if h is None then \sum_d M d i o - T i o else 0).

Section Construction.

Variables (F : fieldType) (In : finType) (Out : Type) (rows columns m n : nat).
Variables (M : token_offset m n -> In -> Out -> F) (T : In -> Out -> F).
Implicit Types (X : bare_grid rows columns -> In -> F) (q : bare_grid rows columns).

(** Offsets without a token, at which the mean is read. *)
Lemma missing_tokens X (x : In -> F) q o :
  \sum_d feature_map (M d) (fun i => if bare_target q d is Some k then X k i else x i) o =
    bare_convolution M X q o +
      feature_map (fun i o => \sum_d M d i o - available_sum M q i o) x o.
Proof.
have -> : feature_map (fun i o => \sum_d M d i o - available_sum M q i o) x o =
    \sum_d feature_map (M d) (fun i => if bare_target q d then 0 else x i) o.
  rewrite /feature_map exchange_big; apply: eq_bigr => i _ /=.
  rewrite /available_sum [X in X - _](bigID (fun d => isSome (bare_target q d))) /=.
  rewrite addrC addKr big_distrr /= big_mkcond; apply: eq_bigr => d _.
  by case: (bare_target q d) => [k|] /=; rewrite ?mul0r.
rewrite -big_split; apply: eq_bigr => d _ /=; rewrite -feature_map_add.
apply: eq_feature_map => // i.
by case: (bare_target q d) => [k|] /=; rewrite ?addr0 ?add0r.
Qed.

Lemma padding_layer (e : F) X q o :
  let N := #|bare_grid rows columns| in
  N%:R != 0 :> F -> e != 1 -> N%:R + e - 1 != 0 ->
  (forall i o, available_sum M q i o = T i o) ->
  attention_layer (finite_attention (@bare_target rows columns m n) e)
      (padding_maps M T N e) X q o = bare_convolution M X q o.
Proof.
move=> N nzN ne1 nzZ eT.
have := finite_heads (@bare_target rows columns m n) M X q o nzN ne1 nzZ.
rewrite missing_tokens /attention_layer !sum_option => finite.
apply: (addIr (feature_map (fun i o => \sum_d M d i o - available_sum M q i o) (mean_token X) o)).
rewrite -finite addrAC; congr (_ + _); last first.
  by apply: eq_bigr => d _; apply: eq_feature_map => // i; rewrite /padding_maps subr0.
rewrite /feature_map -big_split; apply: eq_bigr => i _ /=.
by rewrite attend_flat // -mulrDr /padding_maps eT subrK.
Qed.

End Construction.

(** What equal tokens, all with feature [i] only, give: T_q. *)
Lemma convolution_of_equal_tokens (F : fieldType) (In : finType) (Out : Type)
    (rows columns m n : nat) (M : token_offset m n -> In -> Out -> F) q i o :
  bare_convolution M (fun (_ : bare_grid rows columns) i' => (i' == i)%:R) q o =
    available_sum M q i o.
Proof.
rewrite /available_sum big_mkcond; apply: eq_bigr => d _; rewrite /feature_map (bigD1 i) //=.
rewrite big1 ?addr0 => [|i' /negbTE ni]; case: (bare_target q d) => [k|] /=;
  by rewrite ?eqxx ?ni ?mul1r ?mul0r.
Qed.

(** And every layer whose rows sum to one: the same at every query. *)
Lemma layer_of_equal_tokens (F : fieldType) (Head Key In : finType) (Query Out : Type)
    (A : Head -> Query -> Key -> F) (V : Head -> In -> Out -> F) q i o :
  (forall h, \sum_k A h q k = 1) ->
  attention_layer A V (fun _ i' => (i' == i)%:R) q o = \sum_h V h i o.
Proof.
move=> one; apply: eq_bigr => h _; rewrite /feature_map (bigD1 i) //= /attend.
rewrite -big_distrl /= one eqxx !mul1r big1 ?addr0 // => i' /negbTE ni.
by rewrite -big_distrl /= ni mulr0 mul0r.
Qed.

Theorem padding (F : numFieldType) (In Out : finType) (rows columns m n : nat)
    (M : token_offset m n -> In -> Out -> F) :
  let Token := bare_grid rows columns in
  [<-> exists (Head : finType) (w : Head -> Token -> Token -> F) (V : Head -> In -> Out -> F),
        (forall h q k, 0 < w h q k) /\
        (forall X q o, attention_layer (fun h q => softmax (w h q)) V X q o =
                       bare_convolution M X q o);
      exists (Head : finType) (A : (Token -> In -> F) -> Head -> Token -> Token -> F)
          (V : Head -> In -> Out -> F),
        (forall X h q, \sum_k A X h q k = 1) /\
        (forall X q o, attention_layer (A X) V X q o = bare_convolution M X q o);
      forall eps, 0 < eps ->
        exists (Head : finType) (A : (Token -> In -> F) -> Head -> Token -> Token -> F)
          (V : Head -> In -> Out -> F),
        (forall X h q, \sum_k A X h q k = 1) /\
        (forall X, (forall k i, `|X k i| <= 1) -> forall q o,
          `|attention_layer (A X) V X q o - bare_convolution M X q o| < eps);
      forall (q q' : Token) i o, available_sum M q i o = available_sum M q' i o].
Proof.
move=> Token; split; last split; last split.
- case=> Head [w [V [pos computes]]]; exists Head, (fun _ h q => softmax (w h q)), V.
  split=> // X h q; apply: sum_softmax; rewrite gt_eqF //.
  by rewrite (bigD1 q) //= ltr_paddr ?sumr_ge0 // => k _; rewrite ltW.
- case=> Head [A [V [one computes]]] eps lt0; exists Head, A, V.
  by split=> // X _ q o; rewrite computes subrr normr0.
- move=> approximable q q' i o; apply/eqP/negPn/negP => neq.
  pose gap := `|available_sum M q i o - available_sum M q' i o|.
  have lt0 : 0 < gap / 2%:R by rewrite divr_gt0 ?normr_gt0 ?subr_eq0 ?ltr0n.
  have [Head [A [V [one near]]]] := approximable _ lt0.
  pose X (_ : Token) i' : F := (i' == i)%:R; pose c := \sum_h V h i o.
  have near_c (q0 : Token) : `|c - available_sum M q0 i o| < gap / 2%:R.
    rewrite -convolution_of_equal_tokens /c -(@layer_of_equal_tokens _ _ _ _ _ _ (A X) V q0 i o) //.
    by apply: (near X) => k i'; rewrite /X; case: (i' == i); rewrite ?normr1 ?normr0.
  suff : gap < gap by rewrite ltxx.
  rewrite {1}/gap -(subrKA c) (splitr gap) (le_lt_trans (ler_norm_add _ _)) //.
  by rewrite ltr_add // distrC.
move=> constant.
pose T i o := if [pick q | q \in Token] is Some q then available_sum M q i o else 0.
exists [finType of option (token_offset m n)].
exists (fun h q => if h is Some d then bias_weights 2%:R (bare_target q d) else fun=> 1).
exists (padding_maps M T #|Token| 2%:R); split=> [[d|] q k|X q o]; rewrite ?ltr01 //.
  by rewrite /bias_weights; case: ifP; rewrite ?ltr01 ?ltr0n.
have lt0N : (0 < #|Token|)%N by apply/card_gt0P; exists q.
rewrite -[RHS](@padding_layer _ _ _ _ _ _ _ _ T 2%:R) //.
- by rewrite pnatr_eq0 -lt0n.
- by rewrite pnatr_eq1.
- by rewrite -addrA gt_eqF // ltr_paddr ?subr_ge0 ?ler1n ?ltr0n.
move=> i o'; rewrite /T; case: pickP => [q' _|/(_ q)]; first exact: constant.
by rewrite inE.
Qed.
