"""Whole networks: their convolutions as attention, and files of their weights."""
