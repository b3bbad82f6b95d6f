"""A causal language model of bytes: `experiments/language.py`."""
