From Coq Require Import ZArith Extraction ExtrOcamlBasic ExtrOcamlZBigInt.
From Convattn.extracted Require Import accepted_lower_bound.

Extraction "decisions.ml" bound_accept.
