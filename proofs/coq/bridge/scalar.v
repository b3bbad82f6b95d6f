(** S.dp1's weights, normalisers and Lagrange coefficients in a form that computes.

    The numbers t_δ are whole here, as those of the construction are. *)

From Coq Require Import BinInt.
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp Require Import ssrZ zify.
From Convattn.foundation Require Import attention image grid lagrange scalar_heads.
From Convattn.sharpened Require Import dp1 dp1_limit.
From Convattn.bridge Require Import sums.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** The coefficients of the polynomial (z - root) times the one with coefficients [c]. *)
Definition times_root (root : Z) (c : seq Z) : seq Z :=
  [seq p.1 - root * p.2 | p <- zip (0 :: c) (rcons c 0)].

Lemma nth_times_root root c h :
  nth 0 (times_root root c) h = (if h is h'.+1 then nth 0 c h' else 0) - root * nth 0 c h.
Proof.
have same : size (0 :: c) = size (rcons c 0) by rewrite size_rcons.
have width : size (zip (0 :: c) (rcons c 0)) = (size c).+1 by rewrite size_zip -same minnn.
case: (ltnP h (size c).+1) => [lt | ge].
  rewrite (nth_map (0, 0)) ?width // nth_zip //= nth_rcons.
  have -> : (if (h < size c)%N then nth 0 c h else if h == size c then 0 else 0) = nth 0 c h.
    by case: ltnP => // le; rewrite nth_default //; case: eqP.
  by case: h {lt}.
rewrite nth_default ?size_map ?width // (nth_default _ (ltnW ge)) mulr0 subr0.
by case: h ge => // h; rewrite ltnS => /(nth_default 0) ->.
Qed.

(** Numerators of Lagrange's coefficients for one base, and their common denominator. *)
Fixpoint numerators (nodes : seq Z) (base : Z) : seq Z :=
  if nodes is node :: rest then
    let below := numerators rest base in
    if node == base then below else times_root node below
  else [:: 1].

Definition denominator (nodes : seq Z) (base : Z) : Z :=
  foldr (fun node product => if node == base then product else (base - node) * product) 1 nodes.

Lemma lagrange_coefficient_value (F : numFieldType) (nodes : seq Z) (base : Z) (h : nat) :
  lagrange_coefficient [seq number_in F z | z <- nodes] (number_in F base) h =
    number_in F (nth 0 (numerators nodes base) h) / number_in F (denominator nodes base).
Proof.
elim: nodes h => [|node rest IH] h /=.
  by rewrite rmorph1 divr1; case: h => [|[|h]]; rewrite /= ?rmorph1 ?rmorph0.
rewrite (inj_eq (@number_inj F)); case: eqP => // _; rewrite nth_times_root !rmorphM !rmorphB rmorphM /=.
rewrite invfM mulrA mulrAC; congr (_ / _); rewrite IH mulrBl mulrA; congr (_ - _).
by case: h => [|h]; rewrite ?IH // rmorph0 mul0r.
Qed.

Section Bases.

Variables (F : numFieldType) (m n : nat) (base : nat -> nat -> Z) (outside : Z).

(** t_δ for the offset (i - m, j - n), and for all other keys. *)
Definition base_number (d : token_offset m n) : F := number_in F (base d.1 d.2).

Definition base_nodes : seq Z := outside :: [seq base ij.1 ij.2 | ij <- places m.*2.+1 n.*2.+1].

Lemma offset_coefficient_value (d : token_offset m n) (h : nat) :
  offset_coefficient base_number (number_in F outside) d h =
    number_in F (nth 0 (numerators base_nodes (base d.1 d.2)) h)
      / number_in F (denominator base_nodes (base d.1 d.2)).
Proof.
rewrite -lagrange_coefficient_value /offset_coefficient /base_nodes /= -map_comp.
by rewrite (codom_places (fun i j => number_in F (base i j))).
Qed.

(** Σ_δ (t_δ^h - z). *)
Definition power_sum (h : nat) (z : Z) : Z :=
  listed_sum (fun ij => base ij.1 ij.2 ^+ h - z) (places m.*2.+1 n.*2.+1).

Lemma power_sumE h z : number_in F (power_sum h z) = \sum_d (base_number d ^+ h - number_in F z).
Proof.
rewrite (listed_sum_places (fun i j => number_in F (base i j) ^+ h - number_in F z)) number_sum.
by rewrite -!listed_sumE; apply: eq_bigr => ij _; rewrite rmorphB rmorphX.
Qed.

Definition weight_sum (keys h : nat) : Z := Z_of_int keys%:Z + power_sum h 1.

Lemma scalar_normaliser_value keys h :
  scalar_normaliser base_number keys h = number_in F (weight_sum keys h).
Proof. by rewrite rmorphD /= power_sumE rmorph1 number_nat. Qed.

Lemma limit_normaliser_value h : limit_normaliser base_number h = number_in F (power_sum h 0).
Proof. by rewrite power_sumE rmorph0; apply: eq_bigr => d _; rewrite subr0. Qed.

(** The place of a key among the offsets of an axis, or [m.*2.+1] if it is none. *)
Definition offset_place (m y key : nat) : nat :=
  if (y <= key)%N && (key - y < m.*2.+1)%N then (key - y)%N else m.*2.+1.

Lemma axis_offset_place (r y key : nat) :
  (if axis_offset r y key is Some i then nat_of_ord i else r.*2.+1) = offset_place r y key.
Proof.
rewrite /axis_offset /offset_place; case: ifP => //= _.
by case: insubP => [i -> <-|/negbTE ->].
Qed.

(** The weight of a key for the head of power h. *)
Definition key_power (h y x key_y key_x : nat) : Z :=
  let i := offset_place m y key_y in
  let j := offset_place n x key_x in
  (if (i == m.*2.+1) || (j == n.*2.+1) then outside else base i j) ^+ h.

Lemma key_power_value (rows columns h : nat) (q : bare_grid rows columns)
    (k : ringed_grid rows columns m n) :
  key_number base_number (number_in F outside) (@ringed_offset rows columns m n) q k ^+ h =
    number_in F (key_power h q.1 q.2 k.1 k.2).
Proof.
rewrite /key_power rmorphX /key_number /ringed_offset -!axis_offset_place; congr (_ ^+ h).
case: (axis_offset m q.1 k.1) => [i|]; last by rewrite eqxx.
case: (axis_offset n q.2 k.2) => [j|]; last by rewrite eqxx orbT.
by rewrite !ltn_eqF.
Qed.

End Bases.
