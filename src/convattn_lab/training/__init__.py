"""One trainer for every experiment: optimisers, compiled epochs, checkpoints, metrics."""
