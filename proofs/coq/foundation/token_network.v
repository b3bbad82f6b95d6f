(** Networks on tokens that a vision transformer tends to: hard attention, ReLU and residual sums.

    A token holds values, which the image gives, and codes, which are constants of its position. A block
    adds to a token's values what its heads read, each from the mean of the tokens that it looks at,
    most often a single one; then what its hidden units return, each max(0, z) of a linear map z. Such
    maps read codes too, so that a bias is a map from a code that is 1.

    Which tokens a head looks at must show in a bilinear form of the codes of query and key. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention scores.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** The tokens that a head looks at, by query; the form that shows them; the linear maps. *)
Record network_block (R : Type) (Token : finType) (Code Value Head Hidden : Type) : Type :=
  NetworkBlock {
  looked_at : Head -> Token -> {set Token};
  code_form : Head -> Code -> Code -> R;
  head_map : Head -> Code + Value -> Value -> R;
  unit_map : Code + Value -> Hidden -> R;
  unit_return : Hidden -> Value -> R
}.

(** The values of the places are linear in their pixels; those of the class token, [None], are zero at
    first, and the logits are read from them at last. *)
Record token_network (R : Type) (Place : finType) (Pixel Code Value Head Hidden Label : Type) : Type :=
  TokenNetwork {
  position_code : option Place -> Code -> R;
  pixel_map : Pixel -> Value -> R;
  network_blocks : seq (network_block R [finType of option Place] Code Value Head Hidden);
  readout : Code + Value -> Label -> R
}.

Fixpoint every (T : Type) (P : T -> Prop) (s : seq T) : Prop :=
  if s is x :: rest then P x /\ every P rest else True.

Section Networks.

Variable R : realFieldType.

Definition rectified (z : R) : R := Num.max 0 z.

(** The row of attention that is the mean of some tokens. *)
Definition mean_row (Token : finType) (seen : {set Token}) (k : Token) : R :=
  (k \in seen)%:R / #|seen|%:R.

(** A token's codes and values. *)
Definition with_codes (Token Code Value : Type) (p : Token -> Code -> R) (f : Token -> Value -> R)
    (k : Token) (c : Code + Value) : R :=
  match c with inl code => p k code | inr value => f k value end.

Section Block.

Variables (Token Code Value Head Hidden : finType) (p : Token -> Code -> R).
Implicit Types (b : network_block R Token Code Value Head Hidden) (f : Token -> Value -> R).

Definition after_heads b f (q : Token) (o : Value) : R :=
  f q o + attention_layer (fun h q => mean_row (looked_at b h q)) (head_map b) (with_codes p f) q o.

Definition after_units b f (q : Token) (o : Value) : R :=
  f q o + feature_map (unit_return b) (fun u => rectified (feature_map (unit_map b) (with_codes p f q) u)) o.

Definition after_block b f : Token -> Value -> R := after_units b (after_heads b f).

(** A head looks at some token; the form of each is greater by one at least than that of the others,
    and if there are several it is zero at them. *)
Definition shows_targets b : Prop :=
  forall h q, [/\ exists t, t \in looked_at b h q,
    forall t k, t \in looked_at b h q -> k \notin looked_at b h q ->
      bilinear (code_form b h) (p q) (p k) + 1 <= bilinear (code_form b h) (p q) (p t)
  & forall t t', t \in looked_at b h q -> t' \in looked_at b h q ->
      t = t' \/ bilinear (code_form b h) (p q) (p t) = 0].

End Block.

Section Network.

Variables (Place Pixel Code Value Head Hidden : finType) (Label : Type).
Variable N : token_network R Place Pixel Code Value Head Hidden Label.
Implicit Type X : Place -> Pixel -> R.

Definition first_values X (t : option Place) (o : Value) : R :=
  if t is Some k then feature_map (pixel_map N) (X k) o else 0.

Definition last_values X : option Place -> Value -> R :=
  foldl (fun f b => after_block (position_code N) b f) (first_values X) (network_blocks N).

Definition network_logit X (l : Label) : R :=
  feature_map (readout N) (with_codes (position_code N) (last_values X) None) l.

(** Each head of each block looks where its position form shows. *)
Definition network_shows : Prop := every (shows_targets (position_code N)) (network_blocks N).

End Network.

End Networks.
