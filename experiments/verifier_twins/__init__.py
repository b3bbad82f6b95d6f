"""Pairs of a CNN and a transformer that is the same function, for verifiers of neural networks."""
