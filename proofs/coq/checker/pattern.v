(** The checker's identity on the kernel's index pattern is exactly what equality takes.

    Let the maps of a convolution be given by a pattern: the map of the offset δ has, between the
    feature s of the token there and the feature t of the output, the kernel's matrix at the tap
    pattern(δ, s, t), or zero where the pattern names no tap. For given s and t let no tap occur at
    two offsets, and let every offset have some tap. So it is, as the lemmas say, for the offsets of
    the library and the taps t with Pδ + q - p = t·d on each axis. It is not, and the "only if" is
    silent, for strides straight to tokens where some offset has no tap.
    Fix a query, whose offsets are all keys, and let head h attend to the key k with the weight
    a_h(k), any number at all, and have the value map Σ_δ V_hδ Pattern_δ(W). Then the layer
    is the convolution at this query for every kernel W and every input, if and only if

        Σ_h a_h(k) V_hδ = [k is the key at δ]      for every key k and every offset δ:

    an identity between numbers alone. It holds over any field and any numbers of channels (not
    zero, for the "only if": witnesses are the unit kernels and unit inputs). [equality.py] checks
    it with a_h(k) = c_hδ at the offsets and the parts u0 and u1 everywhere. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import zify.
From Convattn.foundation Require Import attention dilated certified_heads.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

(** The map of an offset: the kernel's matrices where the pattern names them. *)
Definition pattern_map (F : fieldType) (Offset Pixel_in Pixel_out Tap In Out : finType)
    (tap : Offset -> Pixel_in -> Pixel_out -> option Tap) (W : Tap -> In -> Out -> F) (d : Offset)
    (s : Pixel_in * In) (t : Pixel_out * Out) : F :=
  if tap d s.1 t.1 is Some u then W u s.2 t.2 else 0.

(** On an axis no tap joins two pixels at two offsets. *)
Lemma tap_at_one_offset (P K d : nat) (z z' : int) (s t i : nat) : (0 < P)%N ->
  joins P K d z s t i -> joins P K d z' s t i -> z = z'.
Proof.
rewrite /joins => lt0P /eqP <- /eqP/addIr/addIr/mulfI e; apply/esym/e.
by case: P lt0P {e}.
Qed.

(** Every offset of an axis has a tap. *)
Lemma offset_has_tap (P K d : nat) (z : int) : z \in axis_offsets P K d ->
  exists s t i, [&& s < P, t < P, i < K & joins P K d z s t i]%N.
Proof.
rewrite mem_undup => /allpairsP[[t i] /= [in_t in_i ->]].
move: in_t in_i; rewrite !mem_iota /= !add0n => ltP ltK.
set w := _ + tap_shift K d i; have P0 : P%:Z != 0 by case: P ltP.
exists `|(w %% P%:Z)%Z|%N, t, i; rewrite ltP ltK /=.
have ge0 := modz_ge0 w P0; have := ltz_mod w P0 => lt_mod.
apply/andP; split; first by lia.
by rewrite /joins gez0_abs // mulrC -divz_eq /w addrAC subrr add0r.
Qed.

Theorem pattern (F : fieldType) (Offset Pixel_in Pixel_out Tap In Out Head Key : finType)
    (tap : Offset -> Pixel_in -> Pixel_out -> option Tap)
    (target : Offset -> Key) (A : Head -> Key -> F) (V : Head -> Offset -> F) :
  (forall d d' s t u, tap d s t = Some u -> tap d' s t = Some u -> d = d') ->
  (forall d, exists s t u, tap d s t = Some u) ->
  (0 < #|In|)%N -> (0 < #|Out|)%N ->
  (forall (W : Tap -> In -> Out -> F) (X : Key -> Pixel_in * In -> F) (t : Pixel_out * Out),
     attention_layer (fun h (_ : unit) => A h) (offset_values V (pattern_map tap W)) X tt t =
       \sum_d feature_map (pattern_map tap W d) (X (target d)) t) <->
  (forall k d, \sum_h A h k * V h d = (k == target d)%:R).
Proof.
move=> once some /card_gt0P [i _] /card_gt0P [o _]; split=> [eqL k d | same W X t]; last first.
  exact: (@layer_of_identity _ _ _ _ _ _ unit (fun h _ => A h)).
have [s [t [u at_u]]] := some d.
pose W u' i' o' : F := [&& u' == u, i' == i & o' == o]%:R.
have := (layer_coefficients (fun h (_ : unit) => A h) (offset_values V (pattern_map tap W))
           (at_key target (pattern_map tap W)) tt (t, o)).1 _ k (s, i).
rewrite layer_at_key /at_key.
have single (f : Offset -> F) : \sum_d' f d' * pattern_map tap W d' (s, i) (t, o) = f d.
  rewrite (bigD1 d) //= /pattern_map /= at_u /W !eqxx mulr1 big1 ?addr0 // => d' ne.
  case at_u': (tap d' s t) => [u'|]; last by rewrite mulr0.
  case: eqP => [eu|]; last by rewrite mulr0.
  by rewrite eu in at_u'; rewrite (once _ _ _ _ _ at_u' at_u) eqxx in ne.
by rewrite !single; apply=> X; rewrite eqL convolution_at_keys.
Qed.
