"""Machine-checked proofs: reading Coq sources, compiling them, and what a claim may quote of them."""
