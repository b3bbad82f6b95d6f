"""Planted errors for S.network."""

from dataclasses import replace

import numpy as np
from proofs.plants.changes import given, no_uniform_head, scaled, then

one_head_dropped = then(lambda result: (result[0], result[1].at[0].set(0)))


@then
def uniform_weight_halved(layer):
    """A layer with another uniform weight than its maps were made for."""
    halved = replace(layer.encoding, uniform_weight=layer.encoding.uniform_weight / 2)
    return replace(layer, encoding=halved)


def leak_not_taken_back(original):
    """All that a layer gives is a little less."""
    return lambda weight: scaled(1 - weight / 2)(original(weight))


@given
def from_the_second(spec, image):
    return spec, np.roll(image, -1, axis=0) if spec.stride > 1 else image


# Every stride-th pixel from the second on.
between_the_strides = then(from_the_second)
FINITE, TRANSFORMATION = "constructions.table.finite_construction", "networks.transformation"
LAYER = f"{TRANSFORMATION}.attention.ConversionOptions.layer"
PLANTS = [
    ("network", "fractions", "attended", leak_not_taken_back),
    ("network", "fractions", "attended", between_the_strides),
    ("network", "float32 logits", FINITE, no_uniform_head),
    ("network", "float32 logits", FINITE, one_head_dropped),
    ("network", "float32 logits", LAYER, uniform_weight_halved),
    ("network", "float32 logits", f"{TRANSFORMATION}.deviation.accumulated_error", scaled(1e6)),
]
