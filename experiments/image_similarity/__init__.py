"""Whether two images show the same class: `experiments/similarity.py`."""
