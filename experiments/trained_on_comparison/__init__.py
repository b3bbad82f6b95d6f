"""A small CNN, compiled and trained on as a vision transformer: `experiments/trained_on.py`."""
