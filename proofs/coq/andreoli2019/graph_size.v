(** A19.graph (as amended): the least size of a grid convolution, and what no graph convolution is.

    Take a grid convolution whose shifts d_k are different and occur on the grid, with the parameter
    Θ of shape ⟨K, P, Q⟩. It is a convolution of size H, of whatever basis and parameter, iff the rank
    of Θ as a matrix of shape K × PQ is at most H. So it is one of size 1 only if that rank is at
    most one.

    If the matrices are invariant under the reflection of all axes at once, A_k(Rm, Rn) = A_k(m, n),
    then no convolution of one channel with such a basis, whatever its size and parameter, is the shift
    by one node on an axis of two nodes or more, if no axis is empty. That matrices made from the
    undirected grid by a procedure that treats isomorphic graphs alike are invariant is no part of
    this. Over every field, on grids of any number of axes. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import zify.
From Convattn.foundation Require Import attention rank rank_factors structure shifts.
From Convattn.andreoli2019 Require Import prop2_full.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

(** The node on the opposite side, on every axis. *)
Definition reflected (Axis : finType) (S : Axis -> nat) (m : node S) : node S :=
  [ffun i => rev_ord (m i)].

Section Size.

Variables (F : fieldType) (Axis : finType) (S : Axis -> nat) (P Q : finType).

(** Two convolutions are equal on all inputs iff their tensors Φ are. *)
Lemma convolutions_equal (K K' : finType) (A : K -> node S -> node S -> F) (Theta : K -> P -> Q -> F)
    (A' : K' -> node S -> node S -> F) (Theta' : K' -> P -> Q -> F) :
  (forall x n q, structured_convolution A Theta x n q = structured_convolution A' Theta' x n q) <->
  (forall m n p q, \sum_k A k m n * Theta k p q = \sum_k A' k m n * Theta' k p q).
Proof.
split=> [e m n p q | e x n q].
  by have := e (unit_input F m p) n q; rewrite !convolution_as_transform !transform_of_unit.
by rewrite !convolution_as_transform; apply: eq_linear_transform => m p; exact: e.
Qed.

Lemma least_size (K H : finType) (d : K -> shift Axis) (Theta : K -> P -> Q -> F) :
  injective d -> (forall k, exists m n : node S, difference m n = d k) ->
  (exists (A : H -> node S -> node S -> F) (Theta' : H -> P -> Q -> F), forall x n q,
     structured_convolution (fun k => shift_matrix F (d k)) Theta x n q =
       structured_convolution A Theta' x n q) <->
  (family_rank (flattened Theta) <= #|H|)%N.
Proof.
move=> inj_d /fin_all_exists[m /fin_all_exists[n e]].
split=> [[A [Theta' /convolutions_equal eA]] | /low_rank_factors[L [R eT]]].
  apply: (@family_rank_product _ _ H _ _ (fun k h => A h (m k) (n k)) (flattened Theta')) => k -[p q].
  rewrite -[RHS]eA (bigD1 k) //= /shift_matrix e eqxx mul1r big1 ?addr0 // => l nl.
  by rewrite (inj_eq inj_d) eq_sym (negbTE nl) mul0r.
exists (fun h m n => \sum_k shift_matrix F (d k) m n * L k h), (fun h p q => R h (p, q)).
apply/convolutions_equal => m' n' p q; under [RHS]eq_bigr do rewrite big_distrl.
rewrite [RHS]exchange_big; apply: eq_bigr => k _ /=.
rewrite (_ : Theta k p q = \sum_h L k h * R h (p, q)); last exact: (eT k (p, q)).
by rewrite big_distrr; apply: eq_bigr => h _ /=; rewrite mulrA.
Qed.

(** Reflection turns differences around. *)
Lemma difference_reflected (m n : node S) :
  difference (reflected m) (reflected n) = difference n m.
Proof.
apply/ffunP => i; rewrite !ffunE /=; have := ltn_ord (m i); have := ltn_ord (n i).
by move: (nat_of_ord (m i)) (nat_of_ord (n i)) => a b; lia.
Qed.

End Size.

Theorem graph_size (F : fieldType) (Axis : finType) (S : Axis -> nat) :
  (forall (P Q K H : finType) (d : K -> shift Axis) (Theta : K -> P -> Q -> F),
     injective d -> (forall k, exists m n : node S, difference m n = d k) ->
     (exists (A : H -> node S -> node S -> F) (Theta' : H -> P -> Q -> F), forall x n q,
        structured_convolution (fun k => shift_matrix F (d k)) Theta x n q =
          structured_convolution A Theta' x n q) <->
     (family_rank (flattened Theta) <= #|H|)%N) /\
  forall (H : finType) (A : H -> node S -> node S -> F) (Theta : H -> unit -> unit -> F) i,
    (forall j, 0 < S j)%N -> (1 < S i)%N ->
    (forall h m n, A h (reflected m) (reflected n) = A h m n) ->
    ~ forall x n q,
        structured_convolution A Theta x n q =
          structured_convolution (fun _ : unit => shift_matrix F (unit_shift i)) (fun _ _ _ => 1) x n q.
Proof.
split=> [P Q K H d Theta | H A Theta i lt0 lt1 invariant /convolutions_equal e].
  exact: least_size.
pose m : node S := [ffun j => Ordinal (lt0 j)].
have m0 : m i = 0%N :> nat by rewrite ffunE.
have lt : ((m i).+1 < S i)%N by rewrite m0.
pose n := moved m i (m i).+1; have emn : difference m n = unit_shift i := difference_up lt.
have := e (reflected m) (reflected n) tt tt; have := e m n tt tt.
under [in X in _ -> X -> _]eq_bigr do rewrite invariant; move=> ->.
rewrite (bigD1 tt) //= [X in _ + X]big1 ?addr0 => [|[] //].
rewrite (bigD1 tt) //= [X in _ + X]big1 ?addr0 => [|[] //].
rewrite /shift_matrix difference_reflected (difference_opp m n) emn eqxx !mulr1.
case: eqP => [/ffunP/(_ i)|_ /eqP]; last by rewrite oner_eq0.
by rewrite !ffunE eqxx.
Qed.
