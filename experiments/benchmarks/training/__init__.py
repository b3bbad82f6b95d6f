"""The parts of training_bench.py: a training step beside its PyTorch form and its plain form."""
