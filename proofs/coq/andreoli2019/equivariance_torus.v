(** A19.equivariance (as amended): on a torus the shift matrices are what commutes with translations.

    A torus is a product of cyclic groups; here it is any finite abelian group G. For d in G let
    (A_d)_mn = 1 where n - m = d, and 0 elsewhere. Let Φ_mn be the action of m on n, a tensor of any
    shape T (its channels). Then three things are the same: Φ commutes with all the translations A_e;
    Φ_mn depends on n - m alone; Φ = Σ_d A_d ⊗ Θ_d for some Θ, which Φ then determines. Locality: for
    every D ⊆ G, Φ_mn = 0 for all n - m outside D iff Θ_d = 0 for all d outside D. And the translations
    compose: A_a A_b = A_(a+b). Over every field. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import structure.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

Definition translation_matrix (F : fieldType) (G : finZmodType) (d m n : G) : F := (n - m == d)%:R.

(** Σ_d A_d ⊗ Θ_d over all translations. *)
Definition translation_combination (F : fieldType) (G : finZmodType) (T : Type)
    (Theta : G -> T -> F) (m n : G) (t : T) : F :=
  mixed_product (fun d s => translation_matrix F d s.1 s.2) Theta (m, n) t.

Section Torus.

Variables (F : fieldType) (G : finZmodType).

Lemma sum_translation_before (f : G -> F) (d n : G) :
  \sum_l f l * translation_matrix F d l n = f (n - d).
Proof.
rewrite (bigD1 (n - d)) //= /translation_matrix subKr eqxx mulr1 big1 ?addr0 // => l nl.
by rewrite subr_eq addrC -subr_eq eq_sym (negbTE nl) mulr0.
Qed.

Lemma sum_translation_after (f : G -> F) (d m : G) :
  \sum_l translation_matrix F d m l * f l = f (m + d).
Proof.
rewrite (bigD1 (m + d)) //= /translation_matrix [m + d]addrC addrK eqxx mul1r big1 ?addr0 // => l nl.
by rewrite subr_eq (negbTE nl) mul0r.
Qed.

Lemma translation_combination_entry (T : Type) (Theta : G -> T -> F) m n t :
  translation_combination Theta m n t = Theta (n - m) t.
Proof.
rewrite /translation_combination /mixed_product (bigD1 (n - m)) //= /translation_matrix eqxx mul1r.
by rewrite big1 ?addr0 // => d nd; rewrite eq_sym (negbTE nd) mul0r.
Qed.

End Torus.

Theorem equivariance_torus (F : fieldType) (G : finZmodType) (T : Type) (Phi : G -> G -> T -> F) :
  [/\ (forall e, commutes_with Phi (translation_matrix F e)) <->
        (forall m n m' n', n - m = n' - m' -> forall t, Phi m n t = Phi m' n' t),
      (forall m n m' n', n - m = n' - m' -> forall t, Phi m n t = Phi m' n' t) <->
        exists Theta : G -> T -> F,
          [/\ forall m n t, Phi m n t = translation_combination Theta m n t,
              forall Theta', (forall m n t, Phi m n t = translation_combination Theta' m n t) ->
                forall d t, Theta' d t = Theta d t &
              forall (D : pred G) t,
                (forall m n, ~~ D (n - m) -> Phi m n t = 0) <->
                (forall d, ~~ D d -> Theta d t = 0)] &
      forall a b m n : G,
        \sum_l translation_matrix F a m l * translation_matrix F b l n =
          translation_matrix F (a + b) m n].
Proof.
split.
- split=> [com m n m' n' e t | dep e m n t].
    have := com (m' - m) m n' t; rewrite sum_translation_before sum_translation_after.
    rewrite [m + _]addrC subrK => <-; congr (Phi m _ t).
    by rewrite -[LHS](subrK m) e opprB addrAC addrA.
  rewrite sum_translation_before sum_translation_after; apply: dep.
  by rewrite opprD addrAC addrA.
- split=> [dep | [Theta [ePhi _ _]] m n m' n' e t]; last first.
    by rewrite !ePhi !translation_combination_entry e.
  have ePhi m n t : Phi m n t = translation_combination (Phi 0) m n t.
    by rewrite translation_combination_entry; apply: dep; rewrite subr0.
  exists (Phi 0); split=> // [Theta' e d t | D t].
    by rewrite e translation_combination_entry subr0.
  split=> zero => [d nD | m n nD]; first by apply: zero; rewrite subr0.
  by rewrite ePhi translation_combination_entry zero.
move=> a b m n; rewrite sum_translation_after /translation_matrix.
by rewrite opprD addrA subr_eq [b + a]addrC.
Qed.
