"""The subcommands of `experiments/analyse.py`."""
