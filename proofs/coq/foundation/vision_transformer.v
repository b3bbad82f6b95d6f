(** The vision transformer of the textbooks, with layer normalisation in front of each part of a block.

    An image is a function from places to pixels' values; a place is a patch. Tokens are the places and
    one more, [None], the class token. [root] is a square root, [E] an exponential, and GELU is z Φ(z)
    with any function Φ in place of the Gaussian's. *)

From mathcomp Require Import all_ssreflect all_algebra.
From Convattn.foundation Require Import attention.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory.
Local Open Scope ring_scope.

(** The numbers of a block: two normalisations, the heads, and the hidden units. *)
Record transformer_block (R Feature Head Inner Hidden : Type) : Type := TransformerBlock {
  attention_gain : Feature -> R;
  attention_shift : Feature -> R;
  query_map : Head -> Feature -> Inner -> R;
  query_bias : Head -> Inner -> R;
  key_map : Head -> Feature -> Inner -> R;
  key_bias : Head -> Inner -> R;
  value_map : Head -> Feature -> Inner -> R;
  value_bias : Head -> Inner -> R;
  output_map : Head -> Inner -> Feature -> R;
  output_bias : Feature -> R;
  perceptron_gain : Feature -> R;
  perceptron_shift : Feature -> R;
  hidden_map : Feature -> Hidden -> R;
  hidden_bias : Hidden -> R;
  return_map : Hidden -> Feature -> R;
  return_bias : Feature -> R
}.

(** Those of the whole: the embedding, the blocks, the last normalisation and the classifier. *)
Record vision_transformer (R Place Pixel Feature Head Inner Hidden Label : Type) : Type :=
  VisionTransformer {
  patch_map : Pixel -> Feature -> R;
  patch_bias : Feature -> R;
  class_token : Feature -> R;
  position_embedding : option Place -> Feature -> R;
  transformer_blocks : seq (transformer_block R Feature Head Inner Hidden);
  final_gain : Feature -> R;
  final_shift : Feature -> R;
  logit_map : Feature -> Label -> R;
  logit_bias : Label -> R
}.

Section Parts.

Variables (R : fieldType) (E root Phi : R -> R).

Definition feature_mean (Feature : finType) (x : Feature -> R) : R :=
  (\sum_i x i) / #|Feature|%:R.

Definition feature_variance (Feature : finType) (x : Feature -> R) : R :=
  feature_mean (fun i => (x i - feature_mean x) ^+ 2).

Definition layer_norm (epsilon : R) (Feature : finType) (gain shift x : Feature -> R) (i : Feature) : R :=
  gain i * ((x i - feature_mean x) / root (feature_variance x + epsilon)) + shift i.

(** x M + b. *)
Definition affine_map (In : finType) (Out : Type) (M : In -> Out -> R) (b : Out -> R)
    (x : In -> R) (o : Out) : R :=
  feature_map M x o + b o.

Definition gelu (z : R) : R := z * Phi z.

(** <query, key> / √d, d being the number of entries of a query. *)
Definition scaled_product (Inner : finType) (q k : Inner -> R) : R :=
  (\sum_j q j * k j) / root #|Inner|%:R.

Section Block.

Variables (epsilon : R) (Token Feature Head Inner Hidden : finType).
Implicit Types (b : transformer_block R Feature Head Inner Hidden) (x n : Token -> Feature -> R).

(** The row of attention of a head at a query, for tokens [n]. *)
Definition attention_row b n (h : Head) (q : Token) : Token -> R :=
  softmax (fun k => E (scaled_product
    (affine_map (query_map b h) (query_bias b h) (n q)) (affine_map (key_map b h) (key_bias b h) (n k)))).

Definition multi_head_attention b n (q : Token) (i : Feature) : R :=
  \sum_h feature_map (output_map b h)
    (attend (attention_row b n h q) (fun k => affine_map (value_map b h) (value_bias b h) (n k))) i
  + output_bias b i.

Definition perceptron b (n : Feature -> R) (i : Feature) : R :=
  affine_map (return_map b) (return_bias b)
    (fun u => gelu (affine_map (hidden_map b) (hidden_bias b) n u)) i.

(** x + attention(norm(x)). *)
Definition attended b x (q : Token) (i : Feature) : R :=
  x q i + multi_head_attention b (fun k => layer_norm epsilon (attention_gain b) (attention_shift b) (x k)) q i.

(** Then y + perceptron(norm(y)). *)
Definition apply_block b x (q : Token) (i : Feature) : R :=
  let y := attended b x in
  y q i + perceptron b (layer_norm epsilon (perceptron_gain b) (perceptron_shift b) (y q)) i.

End Block.

Section Transformer.

Variables (epsilon : R) (Place Pixel Feature Head Inner Hidden : finType) (Label : Type).
Variable V : vision_transformer R Place Pixel Feature Head Inner Hidden Label.
Implicit Type X : Place -> Pixel -> R.

Definition embedded X (t : option Place) (i : Feature) : R :=
  (if t is Some k then affine_map (patch_map V) (patch_bias V) (X k) i else class_token V i)
  + position_embedding V t i.

Definition final_stream X : option Place -> Feature -> R :=
  foldl (fun x b => apply_block epsilon b x) (embedded X) (transformer_blocks V).

(** The classifier reads the class token. *)
Definition transformer_logit X (l : Label) : R :=
  affine_map (logit_map V) (logit_bias V)
    (layer_norm epsilon (final_gain V) (final_shift V) (final_stream X None)) l.

End Transformer.

End Parts.
