"""Convolution, then attention, begun in several ways: `experiments/two_phase.py`."""
