"""Machine-checked proofs: their Coq sources, compiling them, and what a claim names of them."""
