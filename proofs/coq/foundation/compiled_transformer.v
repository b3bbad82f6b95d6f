(** The vision transformer of a network on tokens, and what its blocks do to the values of a token.

    The stream holds one channel for each code and each value, and one more that makes the square sum of
    a token's constants Λ². No bias and no shift is other than zero. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Convattn.foundation Require Import attention heads scores square_root.
From Convattn.foundation Require Import vision_transformer token_network paired_stream.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Definition stream_channel (Code Value : finType) : finType := [finType of option (Code + Value)].

(** The entries of a head's queries, keys and values: as many as make the features of the heads
    together those of the stream. The first half of them are in use. *)
Definition head_slot (Code Value : finType) : finType := [finType of bool * stream_channel Code Value].

Definition slot_channel (Code Value : finType) (j : head_slot Code Value) : stream_channel Code Value :=
  if j.1 then j.2 else None.

Section Compiled.

Variables (R : realFieldType) (root : R -> R).
Variables (epsilon norm sharpness slope : R).
Variables (Code Value Head Hidden : finType).

Let Channel := stream_channel Code Value.
Let Feature := paired_feature Head Channel.
Let Slot := head_slot Code Value.

(** What a token holds. *)
Definition held_channels (Token : Type) (p : Token -> Code -> R) (f : Token -> Value -> R)
    (t : Token) (c : Channel) : R :=
  if c is Some d then with_codes p f t d else root (norm ^+ 2 - \sum_d p t d ^+ 2).

Definition stream_gain : R := root (norm ^+ 2 / #|Channel|%:R + epsilon).

(** The number by which layer normalisation multiplies a token of these values. *)
Definition norm_ratio (f : Value -> R) : R :=
  stream_gain / root ((norm ^+ 2 + \sum_i f i ^+ 2) / #|Channel|%:R + epsilon).

Definition channel_read (Out : Type) (M : Code + Value -> Out -> R) : Feature -> Out -> R :=
  paired_read (fun c o => if c is Some d then M d o else 0).

Definition value_write (In : Type) (M : In -> Value -> R) : In -> Feature -> R :=
  paired_write (fun j c => if c is Some (inr i) then M j i else 0).

Definition compiled_block (Token : finType) (b : network_block R Token Code Value Head Hidden) :
    transformer_block R Feature Head Slot Hidden :=
  {| attention_gain := fun=> stream_gain;
     attention_shift := fun=> 0;
     query_map := fun h => channel_read (fun d (j : Slot) =>
       match slot_channel j, d with
       | Some (inl code), inl own => root #|Slot|%:R * sharpness * code_form b h own code
       | _, _ => 0 end);
     query_bias := fun _ _ => 0;
     key_map := fun h => channel_read (fun d (j : Slot) => (slot_channel j == Some d)%:R);
     key_bias := fun _ _ => 0;
     value_map := fun h => channel_read (fun d (j : Slot) =>
       if slot_channel j is Some (inr i) then head_map b h d i else 0);
     value_bias := fun _ _ => 0;
     output_map := fun h => value_write (fun (j : Slot) i => (slot_channel j == Some (inr i))%:R);
     output_bias := fun=> 0;
     perceptron_gain := fun=> stream_gain;
     perceptron_shift := fun=> 0;
     hidden_map := channel_read (fun d u => slope * unit_map b d u);
     hidden_bias := fun=> 0;
     return_map := value_write (fun u i => unit_return b u i / slope);
     return_bias := fun=> 0 |}.

Definition compiled_transformer (Place Pixel : finType) (Label : Type)
    (N : token_network R Place Pixel Code Value Head Hidden Label) :
    vision_transformer R Place Pixel Feature Head Slot Hidden Label :=
  {| patch_map := value_write (pixel_map N);
     patch_bias := fun=> 0;
     class_token := fun=> 0;
     position_embedding := fun t => paired (held_channels (position_code N) (fun _ _ => 0) t);
     transformer_blocks := map (@compiled_block _) (network_blocks N);
     final_gain := fun=> stream_gain;
     final_shift := fun=> 0;
     logit_map := channel_read (readout N);
     logit_bias := fun=> 0 |}.

End Compiled.

(** The features of the heads are together those of the stream. *)
Lemma head_slots (Code Value Head : finType) :
  #|paired_feature Head (stream_channel Code Value)| = (#|Head| * #|head_slot Code Value|)%N.
Proof. by rewrite !card_prod -mulnA mulnCA. Qed.

Section Effect.

Variables (R : realFieldType) (E root Phi : R -> R) (epsilon norm sharpness slope : R).
Variables (Token Code Value Head Hidden : finType) (p : Token -> Code -> R).
Implicit Types (b : network_block R Token Code Value Head Hidden) (f : Token -> Value -> R).

Let rho := @norm_ratio R root epsilon norm Code Value.
Let Channel := stream_channel Code Value.
Let Feature := paired_feature Head Channel.
Let Slot := head_slot Code Value.

(** What the compiled heads and hidden units make of a token's values. *)
Definition leaking_row b f (h : Head) (q : Token) : Token -> R :=
  softmax (fun k => E (sharpness * (rho (f q) * rho (f k)) *
    bilinear (code_form b h) (p q) (p k))).

Definition near_heads b f (q : Token) (o : Value) : R :=
  f q o + \sum_h attend (leaking_row b f h q)
    (fun k i => rho (f k) * feature_map (head_map b h) (with_codes p f k) i) o.

Definition near_units b f (q : Token) (o : Value) : R :=
  f q o + feature_map (unit_return b)
    (fun u => gelu Phi (slope * (rho (f q) * feature_map (unit_map b) (with_codes p f q) u)) / slope) o.

Definition near_block b f : Token -> Value -> R := near_units b (near_heads b f).

Hypothesis root_root : is_square_root root.
Hypothesis some_head : (0 < #|Head|)%N.
Hypotheses (norm_gt0 : 0 < norm) (epsilon_ge0 : 0 <= epsilon).
Hypothesis code_fits : forall t, \sum_d p t d ^+ 2 <= norm ^+ 2.

Let stream f := held_channels root norm p f.

Lemma sum_of_both (g : Code + Value -> R) : \sum_d g d = \sum_d g (inl d) + \sum_i g (inr i).
Proof. by rewrite big_sumType. Qed.

Lemma channels_positive : 0 < #|Channel|%:R :> R.
Proof. by rewrite ltr0n card_option. Qed.

Lemma stream_square_sum f t : \sum_c stream f t c ^+ 2 = norm ^+ 2 + \sum_i f t i ^+ 2.
Proof.
rewrite sum_option sum_of_both /stream /held_channels /= (root_squared root_root) ?subr_ge0 //.
by rewrite addrA subrK.
Qed.

(** Layer normalisation of the stream. *)
Lemma norm_of_stream f t (x : Feature -> R) (i : Feature) : x =1 paired (stream f t) ->
  layer_norm root epsilon (fun=> stream_gain root epsilon norm Code Value) (fun=> 0) x i =
    rho (f t) * paired (stream f t) i.
Proof.
move=> ex; rewrite (eq_layer_norm _ _ _ _ ex) paired_norm //.
by rewrite /rho /norm_ratio -stream_square_sum.
Qed.

Lemma ratio_bounds (f : Value -> R) (size : R) : \sum_i f i ^+ 2 <= size ->
  1 - size / (2%:R * norm ^+ 2) <= rho f <= 1.
Proof.
move=> le; have sq_gt0 : 0 < norm ^+ 2 by rewrite exprn_gt0.
have sum_ge0 : 0 <= \sum_i f i ^+ 2 by rewrite sumr_ge0 // => i _; exact: sqr_ge0.
have /andP[low high] := variance_ratio root_root channels_positive epsilon_ge0 sq_gt0 sum_ge0.
rewrite high andbT; apply: le_trans low; rewrite ler_add2l ler_opp2 ler_wpmul2r //.
by rewrite invr_ge0 ltW // mulr_gt0 ?ltr0n.
Qed.

(** What the linear maps read and write. *)
Lemma read_stream (Out : Type) (M : Code + Value -> Out -> R) (zero : Out -> R) f t n o :
  n =1 (fun i : Feature => rho (f t) * paired (stream f t) i) -> zero o = 0 ->
  affine_map (channel_read M) zero n o = rho (f t) * feature_map M (with_codes p f t) o.
Proof.
move=> en ez; rewrite /affine_map ez addr0 (eq_feature_map (M' := channel_read M) (fun=> erefl) en).
by rewrite paired_read_stream // /feature_map sum_option /= mulr0 add0r.
Qed.

Lemma write_stream (In : finType) (M : In -> Value -> R) (x : In -> R) f (g : Value -> R) t (i : Feature) :
  (forall o, g o = feature_map M x o) ->
  paired (stream f t) i + feature_map (value_write M) x i =
    paired (stream (fun t o => f t o + g o) t) i.
Proof.
move=> eg; rewrite paired_write_stream /paired -mulrDr; congr (_ * _).
have none : feature_map (fun (_ : In) (_ : unit) => 0) x tt = 0 by rewrite /feature_map big1 // => j _; rewrite mulr0.
by case: i => s [[d|o]|] /=; rewrite ?eg //; rewrite -[RHS]addr0; congr (_ + _).
Qed.

(** Sums over a head's entries. *)
Lemma sum_slots (g : Code + Value -> R) :
  \sum_(j : Slot) (if slot_channel j is Some d then g d else 0) = \sum_d g d.
Proof.
rewrite -(pair_bigA _ (fun (used : bool) c => if (if used then c else None) is Some d then g d else 0)) big_bool /=.
by rewrite sum_option add0r [X in _ + X]big1 ?addr0.
Qed.

(** Scores. *)
Lemma compiled_row b f (n : Token -> Feature -> R) h q :
  (forall k, n k =1 (fun i => rho (f k) * paired (stream f k) i)) ->
  attention_row E root (compiled_block root epsilon norm sharpness slope b) n h q =1 leaking_row b f h q.
Proof.
move=> en; suff score k : scaled_product root
    (affine_map (query_map (compiled_block root epsilon norm sharpness slope b) h) (fun=> 0) (n q))
    (affine_map (key_map (compiled_block root epsilon norm sharpness slope b) h) (fun=> 0) (n k)) =
    sharpness * (rho (f q) * rho (f k)) * bilinear (code_form b h) (p q) (p k).
  by move=> k; rewrite /attention_row /leaking_row /softmax; congr (_ / _); [|apply: eq_bigr => k' _];
    rewrite score.
pose width : R := root #|Slot|%:R; have width_gt0 : 0 < width.
  by rewrite /width root_positive // ltr0n card_prod card_bool card_option.
rewrite /scaled_product.
under eq_bigr do rewrite (read_stream _ (en q)) // (read_stream _ (en k)) //.
pose u code : R := \sum_own p q own * code_form b h own code.
pose g (d : Code + Value) : R :=
  if d is inl code then rho (f q) * rho (f k) * (width * sharpness * (u code * p k code)) else 0.
rewrite (eq_bigr (fun j : Slot => if slot_channel j is Some d then g d else 0)) => [|j _]; last first.
  rewrite /feature_map; case: (slot_channel j) => [[code|i]|] /=; last first.
  - by rewrite [X in _ * X * _]big1 ?mulr0 ?mul0r // => -[?|?] _; rewrite mulr0.
  - by rewrite [X in _ * X * _]big1 ?mulr0 ?mul0r // => -[?|?] _; rewrite mulr0.
  have -> : \sum_d with_codes p f k d * (Some (inl code) == Some d)%:R = p k code.
    rewrite (bigD1 (inl code)) //= eqxx mulr1 big1 ?addr0 // => d /negbTE nd.
    by rewrite (inj_eq Some_inj) eq_sym nd mulr0.
  rewrite sum_of_both /= [X in _ + X]big1 ?addr0 => [|i _]; last by rewrite mulr0.
  have -> : \sum_d p q d * (root #|Slot|%:R * sharpness * code_form b h d code) =
      width * sharpness * u code.
    by rewrite /u big_distrr; apply: eq_bigr => d _; rewrite -/width /=; ring.
  by rewrite /g; ring.
rewrite sum_slots sum_of_both /= [X in _ + X]big1 ?addr0 //.
have form_sum : \sum_code u code * p k code = bilinear (code_form b h) (p q) (p k).
  by rewrite /bilinear exchange_big; apply: eq_bigr => code _; rewrite /u big_distrl.
rewrite -!big_distrr /= form_sum -/width.
by field; rewrite gt_eqF.
Qed.

(** A block of the transformer does to the stream what is named above to the values. *)
Lemma compiled_heads b f (x : Token -> Feature -> R) q i :
  (forall t, x t =1 paired (stream f t)) ->
  attended E root epsilon (compiled_block root epsilon norm sharpness slope b) x q i =
    paired (stream (near_heads b f) q) i.
Proof.
move=> ex; rewrite /attended /multi_head_attention /= addr0 ex.
set n := fun k => layer_norm _ _ _ _ _.
have en k : n k =1 (fun i => rho (f k) * paired (stream f k) i).
  by move=> j; exact: norm_of_stream.
pose part h := attend (leaking_row b f h q)
  (fun k o => rho (f k) * feature_map (head_map b h) (with_codes p f k) o).
rewrite -(@write_stream Head (fun h o => part h o) (fun=> 1) f (fun o => \sum_h part h o) q i); last first.
  by move=> o; rewrite /feature_map; apply: eq_bigr => h _; rewrite mul1r.
congr (_ + _); rewrite [RHS]paired_write_stream /paired /feature_map big_distrr; apply: eq_bigr => h _ /=.
rewrite -/(feature_map _ _ _) paired_write_stream /paired; congr (_ * _); rewrite mul1r.
case: i.2 => [[d|o]|]; rewrite /feature_map; try by rewrite big1 // => j _; rewrite mulr0.
rewrite (eq_bigr (fun j : Slot => if slot_channel j is Some d then (d == inr o)%:R * part h o else 0)).
  by rewrite sum_slots (bigD1 (inr o)) //= eqxx mul1r big1 ?addr0 // => d /negbTE ->; rewrite mul0r.
move=> j _; rewrite mulrC /part /attend.
case e: (slot_channel j) => [d|]; last by rewrite mul0r.
rewrite (inj_eq Some_inj); have [ed|_] := eqVneq d (inr o); last by rewrite !mul0r.
rewrite !mul1r; apply: eq_bigr => k _; rewrite (compiled_row b h q en) (read_stream _ (en k)) //.
by rewrite /feature_map /= e ed.
Qed.

Lemma compiled_units b f (x : Feature -> R) q i : x =1 paired (stream f q) ->
  x i + perceptron Phi (compiled_block root epsilon norm sharpness slope b)
    (layer_norm root epsilon (fun=> stream_gain root epsilon norm Code Value) (fun=> 0) x) i =
    paired (stream (near_units b f) q) i.
Proof.
move=> ex; rewrite ex /perceptron [X in _ + X]/affine_map /= addr0.
apply: write_stream => o; apply: eq_bigr => u _; rewrite mulrAC -mulrA; congr (gelu Phi _ * _).
by rewrite (read_stream _ (fun j => norm_of_stream j ex)) // feature_map_scaled mulrCA.
Qed.

Lemma compiled_block_effect b f (x : Token -> Feature -> R) q i :
  (forall t, x t =1 paired (stream f t)) ->
  apply_block E root Phi epsilon (compiled_block root epsilon norm sharpness slope b) x q i =
    paired (stream (near_block b f) q) i.
Proof.
by move=> ex; apply: (compiled_units b (f := near_heads b f)) => j; exact: compiled_heads.
Qed.

End Effect.

Section Whole.

Variables (R : realFieldType) (E root Phi : R -> R) (epsilon norm sharpness slope : R).
Variables (Place Pixel Code Value Head Hidden : finType) (Label : Type).
Variable N : token_network R Place Pixel Code Value Head Hidden Label.

(** The values that the compiled blocks make of an image's. *)
Definition near_values (X : Place -> Pixel -> R) : option Place -> Value -> R :=
  foldl (fun f b => near_block E root Phi epsilon norm sharpness slope (position_code N) b f)
    (first_values N X) (network_blocks N).

Lemma compiled_logit (X : Place -> Pixel -> R) l :
  is_square_root root -> (0 < #|Head|)%N -> 0 < norm -> 0 <= epsilon ->
  (forall t, \sum_d position_code N t d ^+ 2 <= norm ^+ 2) ->
  transformer_logit E root Phi epsilon (compiled_transformer root epsilon norm sharpness slope N) X l =
    norm_ratio root epsilon norm Code (near_values X None) *
      feature_map (readout N) (with_codes (position_code N) (near_values X) None) l.
Proof.
move=> root_root some_head norm_gt0 epsilon_ge0 code_fits.
pose stream := @held_channels R root norm Code Value _ (position_code N).
have start (t : option Place) : embedded (compiled_transformer root epsilon norm sharpness slope N) X t
    =1 paired (Head := Head) (stream (first_values N X) t).
  move=> i; rewrite /embedded /= addrC /paired; case: t => [k|].
    rewrite /affine_map addr0 paired_write_stream /paired -mulrDr; congr (_ * _).
    case: i => s [[d|o]|] /=; rewrite ?add0r //; rewrite -[RHS]addr0; congr (_ + _);
      by rewrite /feature_map big1 // => j _; rewrite mulr0.
  by rewrite addr0.
have run : forall blocks x f, (forall t, x t =1 paired (stream f t)) ->
    forall t, foldl (fun x b => apply_block E root Phi epsilon b x) x
        (map (@compiled_block _ root epsilon norm sharpness slope _ _ Head Hidden _) blocks) t =1
      paired (stream (foldl (fun f b => near_block E root Phi epsilon norm sharpness slope
        (position_code N) b f) f blocks) t).
  elim=> [|b blocks IH] x f ex t //=; apply: IH => t' i; exact: compiled_block_effect.
rewrite /transformer_logit; apply: read_stream => // i; apply: norm_of_stream => //; exact: run.
Qed.

End Whole.
