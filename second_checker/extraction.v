(* Writes decisions.ml: the decisions that proofs/coq/extracted/ proves right, as OCaml programs
   over the integers of zarith. Natural numbers, which are sizes, stay in unary. *)
From Coq Require Import ZArith Extraction ExtrOcamlBasic ExtrOcamlZBigInt.
From Convattn.extracted Require Import accepted_lower_bound accepted_leaky accepted_powers.
From Convattn.extracted Require Import accepted_one_hot.

Extraction "decisions.ml" bound_accept leaky_accept powers_accept one_hot_accept enumerated_accept
  polygon_accept absolute_accept.
