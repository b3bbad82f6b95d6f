"""B19 §5 as an experiment: causal MSAC on the bytes of a text."""
