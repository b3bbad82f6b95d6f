"""Functions of JAX whose convolutions are computed as attention."""
