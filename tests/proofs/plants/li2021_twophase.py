"""Planted errors for L21.twophase; those in records are in test_li2021_twophase.py."""

import jax.numpy as jnp
from proofs.plants.changes import then, with_options


def in_first_layer(field, change):
    """Of two layers of attention: a field of the first one is changed."""

    @then
    def changed(two):
        parameter = getattr(two.layers[0].mixing, field)
        parameter[...] = change(parameter[...])
        return two

    return changed


# Queries that are not zero, keys that are zero, and a head that is lost.
scores_with_content = in_first_layer("query", lambda query: jnp.full_like(query, 0.01))
no_keys = in_first_layer("key", jnp.zeros_like)
a_head_lost = in_first_layer("output", lambda output: output.at[4].set(0.0))
TRANSFER, HEIGHT = "lab.two_phase.transfer.transfer", "lab.two_phase.settings.ConversionSettings"
FUNCTION = "the conversion keeps the function"
CONTENT, BIASES = "gradients of the content", "gradients of the biases"
PLANTS = [
    ("twophase", FUNCTION, TRANSFER, scores_with_content),
    ("twophase", FUNCTION, TRANSFER, a_head_lost),
    ("twophase", CONTENT, TRANSFER, scores_with_content),
    ("twophase", CONTENT, TRANSFER, no_keys),
    # At M = 5 softmax lets a gradient through; at M = 200, in place of both, none.
    ("twophase", BIASES, HEIGHT, with_options(logit=5.0)),
    ("twophase", BIASES, HEIGHT, with_options(logit=200.0)),
]
