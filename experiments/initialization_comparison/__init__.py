"""One small vision transformer from several initialisations: `experiments/initialization.py`."""
