"""Pairs of a CNN and a transformer that is the same function, for verifiers of neural networks."""

PROGRAM = "experiments/twins.py"
INSTALL = "pip install 'convattn[cli,onnx]'"
