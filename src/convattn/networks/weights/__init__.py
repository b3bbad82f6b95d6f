"""Weights in files: reading and writing them, and the layouts that other libraries expect."""
