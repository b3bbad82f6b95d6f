"""L21's pipeline: train a convolution, turn it into attention by Theorem 1, and go on training."""
