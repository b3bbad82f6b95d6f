"""The commands of `experiments/`, one a file."""
