(** B19.sa2d: 1 × 1 heads with the even bias express every kernel that is even in each axis.

    Pixels are tokens, within a ring of r₁ × r₂ zeros, and the bias of a head depends on the distances
    (|δ₁|, |δ₂|) of the key from the query alone. Let one head for each pair of distances c, at most
    r₁ and r₂, have e^bias = e at the distances c and 1 elsewhere, and let one head more have no bias.
    With the maps (N + n_c (e - 1))/(e - 1) W_c, where n_c ∈ {1, 2, 4} is the number of shifts of the
    distances c, and -N/(e - 1) Σ_c W_c, these (r₁+1)(r₂+1) + 1 heads are the zero-padded convolution
    with any kernel that depends on the distances alone: for every image, over any field in which e ≠ 1
    and N and the N + n_c (e - 1) are not zero, N being the number of keys, as they never are for real
    e > 0. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring zify.
From Convattn.foundation Require Import attention image heads grid scalar_heads even pixels.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

(** Pairs of distances within the kernel's reach. *)
Definition distances (r1 r2 : nat) : finType := [finType of 'I_r1.+1 * 'I_r2.+1].

(** Whether a key of the ringed image stands at these distances from a query. *)
Definition at_distances (rows columns r1 r2 : nat) (c : distances r1 r2)
    (q : bare_grid rows columns) (k : ringed_grid rows columns r1 r2) : bool :=
  (axis_distance (q.1 + r1) k.1 == c.1)%N && (axis_distance (q.2 + r2) k.2 == c.2)%N.

(** n_c: how many shifts have the distances c. *)
Definition shifts_at (r1 r2 : nat) (c : distances r1 r2) : nat :=
  (axis_places c.1 * axis_places c.2)%N.

Definition even_attention (F : fieldType) (rows columns r1 r2 : nat) (e : F)
    (h : option (distances r1 r2)) (q : bare_grid rows columns) :
    ringed_grid rows columns r1 r2 -> F :=
  softmax (fun k => if h is Some c then if at_distances c q k then e else 1 else 1).

Definition even_maps (F : fieldType) (In Out : Type) (r1 r2 keys : nat) (e : F)
    (W : nat -> nat -> In -> Out -> F) (h : option (distances r1 r2)) (c : In) (o : Out) : F :=
  if h is Some d then
    (keys%:R + (shifts_at d)%:R * (e - 1)) / (e - 1) * W (r1 + d.1)%N (r2 + d.2)%N c o
  else - (keys%:R / (e - 1)) * \sum_(d : distances r1 r2) W (r1 + d.1)%N (r2 + d.2)%N c o.

(** A head with a bias and its share of the uniform one leave the bias alone. *)
Lemma biased_and_uniform (F : fieldType) (N s e w : F) (b : bool) :
  e - 1 != 0 -> N != 0 -> N + s * (e - 1) != 0 ->
  (if b then e else 1) / (N + s * (e - 1)) * ((N + s * (e - 1)) / (e - 1) * w) +
    1 / N * - (N / (e - 1)) * w = b%:R * w.
Proof. by move=> nz1 nzN nzZ; case: b => /=; field; rewrite nz1 nzN nzZ. Qed.

Section Even.

Variables (F : fieldType) (In Out : finType) (rows columns r1 r2 : nat) (e : F).
Variables (W : nat -> nat -> In -> Out -> F) (q : bare_grid rows columns).

Let Key := ringed_grid rows columns r1 r2.

(** All weights of a head together. *)
Lemma sum_even_weights (c : distances r1 r2) :
  \sum_(k : Key) (if at_distances c q k then e else 1) =
    #|Key|%:R + (shifts_at c)%:R * (e - 1).
Proof.
have -> : \sum_(k : Key) (if at_distances c q k then e else 1) =
    \sum_(k : Key) 1 + (\sum_(k : Key) (at_distances c q k)%:R) * (e - 1).
  rewrite big_distrl -big_split; apply: eq_bigr => k _ /=.
  by case: ifP => _; rewrite ?mul1r ?mul0r ?addr0 // addrC subrK.
rewrite sum_one; congr (_ + _ * _).
have -> : \sum_(k : Key) (at_distances c q k)%:R = \sum_(y < rows + r1.*2) \sum_(x < columns + r2.*2)
    (axis_distance (q.1 + r1)%N y == c.1 :> nat)%:R * (axis_distance (q.2 + r2)%N x == c.2 :> nat)%:R :> F.
  rewrite pair_bigA; apply: eq_bigr => k _; rewrite /at_distances.
  by case: (_ == _); case: (_ == _); rewrite /= ?mulr1 ?mulr0.
by rewrite -big_distrlr /= !sum_axis_distance ?leq_ord // -natrM.
Qed.

(** A key within reach has the tap at its distances, every other one has none. *)
Lemma taps_by_distance (k : Key) (i : In) (o : Out) : even_kernel r1 r2 W ->
  \sum_(c : distances r1 r2) (at_distances c q k)%:R * W (r1 + c.1)%N (r2 + c.2)%N i o =
    \sum_(d : token_offset r1 r2) (k == ringed_key q d)%:R * W d.1 d.2 i o.
Proof.
move=> even; under [RHS]eq_bigr do rewrite -ringed_offsetE.
case eqk: (ringed_offset q k) => [d|]; last first.
  rewrite [RHS]big1 ?big1 // => [c _|d _]; last by rewrite mul0r.
  case at_c: (at_distances c q k); last by rewrite mul0r.
  case/andP: at_c => /eqP at1 /eqP at2; exfalso; move/eqP: eqk.
  have [lt1 eq1] := axis_reach at1 (ltn_ord c.1); have [lt2 eq2] := axis_reach at2 (ltn_ord c.2).
  suff -> : ringed_offset q k = Some (inord (k.1 - q.1), inord (k.2 - q.2)) by [].
  by apply/eqP; rewrite ringed_offsetE -pair_eqE /= /pair_eq -!val_eqE /= !inordK // -eq1 -eq2 !eqxx.
have /eqP eqkd : k == ringed_key q d by rewrite -ringed_offsetE eqk.
have le1 : (d.1 <= r1.*2)%N by rewrite -ltnS ltn_ord.
have le2 : (d.2 <= r2.*2)%N by rewrite -ltnS ltn_ord.
have lt1 : (axis_distance r1 d.1 < r1.+1)%N by rewrite /axis_distance; lia.
have lt2 : (axis_distance r2 d.2 < r2.+1)%N by rewrite /axis_distance; lia.
rewrite (bigD1 (Ordinal lt1, Ordinal lt2)) //= [in RHS](bigD1 d) //= eqxx mul1r even_kernelE //.
have at_c c : at_distances c q k = (c == (Ordinal lt1, Ordinal lt2)).
  rewrite eqkd /at_distances -pair_eqE /= /pair_eq -!val_eqE /= /axis_distance.
  by congr (_ && _); apply/eqP/eqP; lia.
rewrite at_c eqxx mul1r !big1 // => [d' /negbTE ne|c /negbTE ne]; last by rewrite at_c ne mul0r.
by rewrite (inj_eq Some_inj) eq_sym ne mul0r.
Qed.

(** The heads together give every key its tap. *)
Lemma even_coefficients (k : Key) (i : In) (o : Out) :
  e != 1 -> #|Key|%:R != 0 :> F ->
  (forall c : distances r1 r2, #|Key|%:R + (shifts_at c)%:R * (e - 1) != 0) ->
  \sum_h even_attention e h q k * even_maps #|Key| e W h i o =
    \sum_(c : distances r1 r2) (at_distances c q k)%:R * W (r1 + c.1)%N (r2 + c.2)%N i o.
Proof.
move=> ne1 nzN nzZ; have nz1 : e - 1 != 0 by rewrite subr_eq0.
rewrite sum_option /even_attention /even_maps /softmax sum_one mulrA big_distrr -big_split /=.
apply: eq_bigr => c _; rewrite sum_even_weights; have nz := nzZ c.
rewrite addrC; exact: biased_and_uniform.
Qed.

End Even.

Theorem sa2d (F : fieldType) (In Out : finType) (rows columns r1 r2 : nat) (e : F)
    (W : nat -> nat -> In -> Out -> F) (X : image_type F In) (q : bare_grid rows columns) (o : Out) :
  let N := #|ringed_grid rows columns r1 r2| in
  even_kernel r1 r2 W -> e != 1 -> N%:R != 0 :> F ->
  (forall c : distances r1 r2, N%:R + (shifts_at c)%:R * (e - 1) != 0) ->
  attention_layer (@even_attention F rows columns r1 r2 e) (even_maps N e W) (pixel_token X) q o =
    convolution rows columns r1 r2 W X q.1 q.2 o.
Proof.
move=> N even ne1 nzN nzZ; rewrite layer_as_coefficients -convolution_of_pixels.
transitivity (\sum_(k : ringed_grid rows columns r1 r2) \sum_(d : token_offset r1 r2)
    (k == ringed_key q d)%:R * feature_map (W d.1 d.2) (pixel_token X k) o).
  apply: eq_bigr => k _; rewrite /feature_map.
  under [RHS]eq_bigr do rewrite big_distrr.
  rewrite [RHS]exchange_big; apply: eq_bigr => i _ /=.
  rewrite even_coefficients // taps_by_distance // big_distrr.
  by apply: eq_bigr => d _; rewrite mulrCA.
rewrite exchange_big; apply: eq_bigr => d _ /=.
by rewrite (bigD1 (ringed_key q d)) //= eqxx mul1r big1 ?addr0 // => k /negbTE ->; rewrite mul0r.
Qed.
