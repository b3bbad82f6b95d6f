(** C20.eq3: without positions self-attention is equivariant to reordering; with them it is not.

    Softmax is taken through any function E in place of the exponential.

    1. Let the scores and the values be made of tokens S and V, each head with its W_qry, W_key and
       value map. Reordering S and V by one permutation of the tokens reorders the outputs by it: for
       every field, E, number of heads, tokens and features. With S = V = X this is the equivariance
       of eq. 2; with S = X + P, V = X (eq. 3) or V = X + P (its text) it says that moving P along
       with X restores it.
    2. Over an ordered field with E positive and injective, as the real exponential is, there are one
       head, two tokens X, positions P and a swap, for which reordering X alone does not reorder the
       outputs: neither where P enters the scores only (eq. 3), nor where it enters the values too. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ring.
From Convattn.foundation Require Import attention scores.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.


(** Self-attention whose scores are of the tokens S and whose values are of the tokens V. *)
Definition self_attention (F : fieldType) (Head Token In Inner : finType) (Out : Type) (E : F -> F)
    (Wq Wk : Head -> In -> Inner -> F) (M : Head -> In -> Out -> F) (S V : Token -> In -> F) :
    Token -> Out -> F :=
  attention_layer (fun h q => softmax (fun k => E (score (Wq h) (Wk h) (S q) (S k)))) M V.

Lemma equivariant (F : fieldType) (Head Token In Inner : finType) (Out : Type) (E : F -> F)
    (Wq Wk : Head -> In -> Inner -> F) (M : Head -> In -> Out -> F) (S V : Token -> In -> F)
    (reorder : Token -> Token) q o :
  bijective reorder ->
  self_attention E Wq Wk M (fun k => S (reorder k)) (fun k => V (reorder k)) q o =
    self_attention E Wq Wk M S V (reorder q) o.
Proof.
move=> bij; apply: eq_bigr => h _; apply: eq_feature_map => // i.
rewrite /attend [RHS](reindex reorder) /=; last exact: onW_bij.
apply: eq_bigr => k _; congr (_ * _); rewrite /softmax; congr (_ / _).
by rewrite [RHS](reindex reorder) //; exact: onW_bij.
Qed.

Theorem eq3 :
  (forall (F : fieldType) (Head Token In Inner : finType) (Out : Type) (E : F -> F)
      (Wq Wk : Head -> In -> Inner -> F) (M : Head -> In -> Out -> F) (S V : Token -> In -> F)
      (reorder : Token -> Token) q o,
    bijective reorder ->
    self_attention E Wq Wk M (fun k => S (reorder k)) (fun k => V (reorder k)) q o =
      self_attention E Wq Wk M S V (reorder q) o)
  /\
  (forall (R : realFieldType) (E : R -> R), (forall x, 0 < E x) -> injective E ->
    exists (Wq Wk M : 'I_1 -> 'I_1 -> 'I_1 -> R) (X P : bool -> 'I_1 -> R) (q : bool) (o : 'I_1),
      let plus (X : bool -> 'I_1 -> R) k i := X k i + P k i in
      let swapped k := X (~~ k) in
      self_attention E Wq Wk M (plus swapped) swapped q o !=
        self_attention E Wq Wk M (plus X) X (~~ q) o
      /\
      self_attention E Wq Wk M (plus swapped) (plus swapped) q o !=
        self_attention E Wq Wk M (plus X) (plus X) (~~ q) o).
Proof.
split=> [F Head Token In Inner Out E Wq Wk M S V reorder q o | R E E_gt0 E_inj].
  exact: equivariant.
exists (fun _ _ _ => 1), (fun _ _ _ => 1), (fun _ _ _ => 1).
exists (fun b _ => if b then 2%:R else 1), (fun b _ => b%:R), true, ord0 => plus swapped.
rewrite /self_attention /attention_layer /feature_map /attend /softmax /score /feature_map.
rewrite /plus /swapped !big_ord1 !big_bool !big_ord1 /= ?mulr1 ?addr0.
rewrite (_ : 1 + 1 = 2%:R :> R) //; move: (E (2%:R * 2%:R)) (E_gt0 (2%:R * 2%:R)) => a a_gt0.
have : E (1 * (2%:R + 1)) != E (1 * 1).
  by rewrite (inj_eq E_inj) !mul1r -subr_eq0 addrK pnatr_eq0.
move: (E (1 * (2%:R + 1))) (E (1 * 1)) (E_gt0 (1 * (2%:R + 1))) (E_gt0 (1 * 1)) => b c b_gt0 c_gt0 neq.
have nza : a + a != 0 by rewrite gt_eqF // addr_gt0.
have nzbc : b + c != 0 by rewrite gt_eqF // addr_gt0.
have nz2 : 2%:R != 0 :> R by rewrite pnatr_eq0.
have nz : (c - b) / (b + c) != 0 by rewrite mulf_neq0 ?invr_eq0 // subr_eq0 eq_sym.
split; rewrite -subr_eq0.
  have -> : a / (a + a) + a / (a + a) * 2%:R - (b / (b + c) * 2%:R + c / (b + c)) =
    (c - b) / (b + c) / 2%:R by field; rewrite ?nza ?nzbc ?nz2.
  by rewrite mulf_neq0 // invr_eq0.
have -> // : a / (a + a) * 2%:R + a / (a + a) * 2%:R
    - (b / (b + c) * (2%:R + 1) + c / (b + c) * 1) = (c - b) / (b + c).
by field; rewrite ?nza ?nzbc.
Qed.
