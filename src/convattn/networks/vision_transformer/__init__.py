"""State dicts of vision transformers, read as arrays and written back."""
