(** A19.attention (as amended): masks, the softmax, and attention convolutions.

    A column of scores has the positive weights w, the exponentials of the scores; a mask multiplies
    them by the exponentials of -∞ and 0, that is by 0 where it blanks and by 1 elsewhere. If the mask
    lets any entry of the column through, then the softmax of the masked scores is zero where the mask
    blanks, adds up to one, and is the softmax without the mask over what the column keeps. If it
    blanks the column altogether, the weights add up to zero: the softmax as printed is 0/0 (and zero
    here, where a quotient by zero is zero). Over every ordered field.

    Attention convolutions, eq. 7, are y = Σ_k a_k(x′, y′)ᵀ x Θ_k. A mechanism that ignores its inputs
    gives eq. 4. For fixed x′ and y′ they are linear in x; one head of self-attention with the mechanism
    a(x, x) = x xᵀ is homogeneous of degree three: its output for c x is c³ times that for x. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention structure.
From Convattn.andreoli2019 Require Import prop2.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** The weights under a mask. *)
Definition masked (F : fieldType) (Key : Type) (mask : Key -> bool) (w : Key -> F) (k : Key) : F :=
  w k * (mask k)%:R.

(** Eq. 7: for each k a mechanism, which makes a matrix of the auxiliary inputs. *)
Definition attention_convolution (F : fieldType) (K M P : finType) (N Q P' Q' : Type)
    (a : K -> (M -> P' -> F) -> (N -> Q' -> F) -> M -> N -> F) (Theta : K -> P -> Q -> F)
    (x : M -> P -> F) (x' : M -> P' -> F) (y' : N -> Q' -> F) (n : N) (q : Q) : F :=
  structured_convolution (fun k => a k x' y') Theta x n q.

(** The products of the rows of both. *)
Definition products (F : fieldType) (M N : Type) (P : finType) (x : M -> P -> F) (y : N -> P -> F)
    (m : M) (n : N) : F :=
  \sum_p x m p * y n p.

Section Masks.

Variables (R : realFieldType) (Key : finType) (mask : Key -> bool) (w : Key -> R).
Hypothesis positive : forall k, 0 < w k.

Lemma masked_ge0 k : 0 <= masked mask w k.
Proof. by rewrite /masked mulr_ge0 ?ler0n // ltW. Qed.

Lemma masked_sum_nonzero k : mask k -> \sum_l masked mask w l != 0.
Proof.
move=> seen; rewrite gt_eqF // (bigD1 k) //= ltr_paddr ?sumr_ge0 // => [l _|].
  exact: masked_ge0.
by rewrite /masked seen mulr1.
Qed.

(** The masked weights are those without the mask, over what is kept. *)
Lemma masked_renormalised k m : mask k ->
  softmax (masked mask w) m = softmax (masked mask (softmax w)) m.
Proof.
move=> seen; have nz : \sum_l w l != 0.
  by rewrite gt_eqF // (bigD1 k) //= ltr_paddr ?sumr_ge0 // => l _; exact: ltW.
have e l : masked mask (softmax w) l = masked mask w l / \sum_l' w l'.
  by rewrite /masked /softmax mulrAC.
rewrite [RHS]/softmax e [X in _ = _ / X](eq_bigr _ (fun l _ => e l)).
by rewrite -big_distrl /= -mulf_div divff ?mulr1 // invr_eq0.
Qed.

End Masks.

(** Self-attention by products is homogeneous of degree three. *)
Lemma self_products_cubic (F : fieldType) (M P : finType) (Q : Type) (Theta : unit -> P -> Q -> F)
    (c : F) (x : M -> P -> F) n q :
  structured_convolution (fun _ => products (fun m p => c * x m p) (fun m p => c * x m p)) Theta
      (fun m p => c * x m p) n q =
    c ^+ 3 * structured_convolution (fun _ => products x x) Theta x n q.
Proof.
rewrite !structured_convolution_entries !big_distrr; apply: eq_bigr => k _ /=.
rewrite big_distrr; apply: eq_bigr => m _ /=; rewrite big_distrr; apply: eq_bigr => p _ /=.
rewrite (_ : products _ _ m n = c ^+ 2 * products x x m n); last first.
  by rewrite /products big_distrr; apply: eq_bigr => r _ /=; rewrite mulrACA expr2.
by rewrite [c ^+ 3]exprSr mulrACA !mulrA.
Qed.

Theorem attention (R : realFieldType) :
  [/\ forall (Key : finType) (mask : Key -> bool) (w : Key -> R) k,
        (forall l, 0 < w l) -> mask k ->
        [/\ forall m, ~~ mask m -> softmax (masked mask w) m = 0,
            \sum_m softmax (masked mask w) m = 1 &
            forall m, softmax (masked mask w) m = softmax (masked mask (softmax w)) m],
      forall (Key : finType) (mask : Key -> bool) (w : Key -> R),
        (forall k, ~~ mask k) -> \sum_k masked mask w k = 0,
      forall (K M P : finType) (N Q P' Q' : Type) (A : K -> M -> N -> R) (Theta : K -> P -> Q -> R)
          x (x' : M -> P' -> R) (y' : N -> Q' -> R) n q,
        attention_convolution (fun k _ _ => A k) Theta x x' y' n q =
          structured_convolution A Theta x n q,
      forall (K M P : finType) (N Q P' Q' : Type) a (Theta : K -> P -> Q -> R) c
          (x z : M -> P -> R) (x' : M -> P' -> R) (y' : N -> Q' -> R) n q,
        attention_convolution a Theta (fun m p => c * x m p + z m p) x' y' n q =
          c * attention_convolution a Theta x x' y' n q + attention_convolution a Theta z x' y' n q &
      forall (M P : finType) (Q : Type) (Theta : unit -> P -> Q -> R) c (x : M -> P -> R) n q,
        let self x := attention_convolution (fun _ => @products R M M P) Theta x x x n q in
        self (fun m p => c * x m p) = c ^+ 3 * self x].
Proof.
split=> [Key mask w k positive seen | Key mask w blank | // | K M P N Q P' Q' a Theta c x z x' y' n q
    | M P Q Theta c x n q self].
- have nz := masked_sum_nonzero positive seen.
  split=> [m nm | | m]; last exact: masked_renormalised seen.
    by rewrite /softmax /masked (negbTE nm) mulr0 mul0r.
  exact: sum_softmax.
- by rewrite big1 // => k _; rewrite /masked (negbTE (blank k)) mulr0.
- exact: convolution_linear.
exact: self_products_cubic.
Qed.
