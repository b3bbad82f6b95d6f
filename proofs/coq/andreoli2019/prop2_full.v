(** A19.prop2, its greatest extreme: with a basis of all matrices, every linear map is a convolution.

    Let (A_k) be a basis of the space of matrices of shape M × N, so that K = MN. Then every linear map
    L from inputs of shape M × P to outputs of shape N × Q is the convolution of basis A with exactly
    one parameter. Over every field, for all finite M, N, P and Q. Linear is L(c x + x') = c L(x) +
    L(x') entry by entry, for an L that depends on the values of its input only. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention structure.
From Convattn.andreoli2019 Require Import prop1.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

(** A map of families of numbers that is linear, and reads nothing but their values. *)
Definition is_linear_map (F : fieldType) (M P N Q : Type)
    (L : (M -> P -> F) -> N -> Q -> F) : Prop :=
  (forall x x', (forall m p, x m p = x' m p) -> forall n q, L x n q = L x' n q) /\
  (forall c x x' n q, L (fun m p => c * x m p + x' m p) n q = c * L x n q + L x' n q).

Section Linear.

Variables (F : fieldType) (M P : finType) (N Q : Type).

(** The input that is one at (m, p), and zero elsewhere. *)
Definition unit_input (m : M) (p : P) (m' : M) (p' : P) : F := ((m' == m) && (p' == p))%:R.

Lemma linear_map_sum (L : (M -> P -> F) -> N -> Q -> F) (r : seq (M * P)) (c : M * P -> F) n q :
  is_linear_map L ->
  L (fun m p => \sum_(s <- r) c s * unit_input s.1 s.2 m p) n q =
    \sum_(s <- r) c s * L (unit_input s.1 s.2) n q.
Proof.
case=> ext lin; elim: r => [|s r IH].
  rewrite big_nil -[RHS](subrr (L (fun _ _ => 0) n q)) -mulN1r addrC -lin.
  by apply: ext => m p; rewrite big_nil mulr0 addr0.
rewrite big_cons -IH -lin; apply: ext => m p; exact: big_cons.
Qed.

(** A linear map is eq. 2 with the tensor of its values at the unit inputs. *)
Lemma linear_map_as_transform (L : (M -> P -> F) -> N -> Q -> F) x n q :
  is_linear_map L ->
  L x n q = linear_transform (fun m n p q => L (unit_input m p) n q) x n q.
Proof.
move=> linL; rewrite /linear_transform pair_bigA /=.
rewrite -(linear_map_sum _ (fun s => x s.1 s.2)) //; case: linL => ext _.
apply: ext => m p; rewrite (bigD1 (m, p)) //= /unit_input !eqxx mulr1 big1 ?addr0 // => -[m' p'].
by rewrite -pair_eqE /= eq_sym [p' == p]eq_sym => /negbTE ->; rewrite mulr0.
Qed.

(** Eq. 2 is read off at the unit inputs. *)
Lemma transform_of_unit (Phi : M -> N -> P -> Q -> F) m n p q :
  linear_transform Phi (unit_input m p) n q = Phi m n p q.
Proof.
rewrite /linear_transform (bigD1 m) //= [X in _ + X]big1 ?addr0 => [|m' /negbTE nm]; last first.
  by rewrite big1 // => p' _; rewrite /unit_input nm mul0r.
rewrite (bigD1 p) //= /unit_input !eqxx mul1r big1 ?addr0 // => p' /negbTE ->.
by rewrite mul0r.
Qed.

End Linear.

Theorem prop2_full (F : fieldType) (K M N P Q : finType) (A : K -> M -> N -> F)
    (L : (M -> P -> F) -> N -> Q -> F) :
  is_basis (flattened A) -> is_linear_map L ->
  #|K| = (#|M| * #|N|)%N /\
  exists Theta : K -> P -> Q -> F,
    (forall x n q, structured_convolution A Theta x n q = L x n q) /\
    forall Theta', (forall x n q, structured_convolution A Theta' x n q = L x n q) ->
      forall k p q, Theta' k p q = Theta k p q.
Proof.
move=> basis linL.
pose Phi (s : M * N) (t : P * Q) := L (unit_input F s.1 t.1) s.2 t.2.
have [size inversion _] := prop1 (P * Q) basis.
have [Theta [_ eTheta unique]] := inversion Phi.
split; first by rewrite size card_prod.
exists (fun k p q => Theta k (p, q)); split=> [x n q | Theta' eL k p q].
  rewrite convolution_as_transform [RHS]linear_map_as_transform //.
  apply: eq_linear_transform => m p; rewrite -[RHS](eTheta (m, n) (p, q)).
  by apply: eq_bigr => k _.
rewrite -(unique (flattened Theta')) // => -[m n] [p' q'] /=.
rewrite -[RHS]/(L (unit_input F m p') n q') -eL convolution_as_transform.
by rewrite transform_of_unit.
Qed.
