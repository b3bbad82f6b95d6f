(** A grid of tokens in a frame of zero tokens, as wide as the token offsets reach. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import zify.
From Convattn.foundation Require Import attention image grid dilated certified_heads.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

(** Keys: [n] tokens on an axis, [low] zero tokens before and [high] after them; two axes. *)
Definition framed_grid (low1 n1 high1 low2 n2 high2 : nat) : finType :=
  [finType of 'I_(low1 + n1 + high1) * 'I_(low2 + n2 + high2)].

(** The ring that a certificate must have: low ≥ -min δ and high ≥ max δ. *)
Definition ring_reaches (low high : nat) (offsets : seq int) : bool :=
  all (fun z => (- low%:Z <= z) && (z <= high%:Z)) offsets.

(** The token offsets of two axes. *)
Definition grid_offset (p1 p2 K1 K2 d1 d2 : nat) : finType :=
  [finType of seq_sub (axis_offsets p1 K1 d1) * seq_sub (axis_offsets p2 K2 d2)].

(** The shift from a query to a key of the framed grid. *)
Definition at_shift (low1 n1 high1 low2 n2 high2 : nat) (q : bare_grid n1 n2)
    (k : framed_grid low1 n1 high1 low2 n2 high2) (z1 z2 : int) : bool :=
  ((k.1 : nat)%:Z == low1%:Z + (q.1 : nat)%:Z + z1) && ((k.2 : nat)%:Z == low2%:Z + (q.2 : nat)%:Z + z2).

(** The tokens at the keys: patches of the image, zero in the frame. *)
Definition framed_token (F : fieldType) (Channel : finType) (low1 n1 high1 low2 n2 high2 p1 p2 : nat)
    (X : image_type F Channel) (k : framed_grid low1 n1 high1 low2 n2 high2) :
    patch_feature p1 p2 Channel -> F :=
  token_at (p1 * n1) (p2 * n2) X
    (p1%:Z * ((k.1 : nat)%:Z - low1%:Z)) (p2%:Z * ((k.2 : nat)%:Z - low2%:Z)).

Lemma axis_key_bound (low n high : nat) (s : seq int) (q : 'I_n) (d : seq_sub s) :
  ring_reaches low high s -> (`|(low%:Z + (q : nat)%:Z + val d)%R|%N < low + n + high)%N.
Proof. by move=> /allP /(_ _ (valP d)); case: q => q ltq /=; lia. Qed.

Section Target.

Variables (low1 n1 high1 low2 n2 high2 p1 p2 K1 K2 d1 d2 : nat).
Hypothesis ring1 : ring_reaches low1 high1 (axis_offsets p1 K1 d1).
Hypothesis ring2 : ring_reaches low2 high2 (axis_offsets p2 K2 d2).

(** The key at an offset, which is there because of the ring. *)
Definition framed_key (q : bare_grid n1 n2) (d : grid_offset p1 p2 K1 K2 d1 d2) :
    framed_grid low1 n1 high1 low2 n2 high2 :=
  (Ordinal (axis_key_bound q.1 d.1 ring1), Ordinal (axis_key_bound q.2 d.2 ring2)).

Lemma axis_key (low high n : nat) (s : seq int) (q : 'I_n) (d : seq_sub s) :
  ring_reaches low high s ->
  (`|(low%:Z + (q : nat)%:Z + val d)%R|%N)%:Z = low%:Z + (q : nat)%:Z + val d.
Proof. by move=> /allP /(_ _ (valP d)); case: q => q ltq /=; lia. Qed.

Lemma at_shiftE (q : bare_grid n1 n2) (d : grid_offset p1 p2 K1 K2 d1 d2) k :
  at_shift q k (val d.1) (val d.2) = (k == framed_key q d).
Proof.
case: k => k1 k2; rewrite /at_shift xpair_eqE -!val_eqE /=.
by rewrite -(axis_key q.1 d.1 ring1) -(axis_key q.2 d.2 ring2).
Qed.

(** Two offsets lead to two keys. *)
Lemma framed_key_inj (q : bare_grid n1 n2) :
  injective (fun d : grid_offset p1 p2 K1 K2 d1 d2 => framed_key q d).
Proof.
move=> d d' eqk; have := at_shiftE q d (framed_key q d'); rewrite eqk eqxx /at_shift /=.
rewrite (axis_key q.1 d'.1 ring1) (axis_key q.2 d'.2 ring2).
rewrite !(inj_eq (addrI _)) => /andP [/eqP e1 /eqP e2].
by case: d d' e1 e2 {eqk} => [a b] [a' b'] /= /val_inj <- /val_inj <-.
Qed.

(** The convolution, from the tokens at the offsets. *)
Lemma convolution_of_framed (F : fieldType) (In Out : finType) (W : nat -> nat -> In -> Out -> F)
    (X : image_type F In) (q : bare_grid n1 n2) (t : patch_feature p1 p2 Out) :
  \sum_(d : grid_offset p1 p2 K1 K2 d1 d2)
      feature_map (offset_map K1 K2 d1 d2 W (val d.1) (val d.2)) (framed_token X (framed_key q d)) t =
    dilated_convolution (p1 * n1) (p2 * n2) K1 K2 d1 d2 W X
      (p1 * q.1 + t.1.1)%N (p2 * q.2 + t.1.2)%N t.2.
Proof.
rewrite -(convolution_by_tokens _ _ _ (@offsets_hold_reads F p1 K1 d1 q.1)
            (@offsets_hold_reads F p2 K2 d2 q.2)) //.
apply: eq_bigr => d _; apply: eq_feature_map => // s; rewrite /framed_token /=.
rewrite (axis_key q.1 d.1 ring1) (axis_key q.2 d.2 ring2).
have cancel (a b c : int) : a + b + c - a = b + c by lia.
by rewrite !cancel.
Qed.

End Target.
