"""The costs of the three ways, worked out from the table of the module."""

import jax.numpy as jnp
import pytest

from convattn.encodings.bias import BiasEncoding
from convattn.encodings.layer import AttentionLayer
from convattn.fast.shift.order import MIXED, MOVED, Cost, costs

HEADS, OFFSETS, TOKENS, D, W, OUT = 4, 3, 7, 5, 2, 11


@pytest.mark.parametrize("two_maps", [True, False])
def test_costs_are_those_of_the_table(two_maps: bool) -> None:
    encoding = BiasEncoding(jnp.zeros((HEADS, OFFSETS)), None, ((-1,), (0,), (1,)))
    value = jnp.zeros((HEADS, D, W)) if two_maps else None
    output = jnp.zeros((HEADS, W if two_maps else D, OUT))
    layer = AttentionLayer(encoding, value, output, ring=((0, 0),))
    once = HEADS * D * W * OUT if two_maps else 0
    expected = {
        "taps": (once + TOKENS * OFFSETS * D * OUT, 0, (HEADS + OFFSETS) * D * OUT),
        "heads": (once + TOKENS * HEADS * D * OUT, TOKENS * HEADS * OFFSETS * D, 0),
    }
    if two_maps:
        expected["apart"] = (TOKENS * HEADS * W * (D + OUT), TOKENS * HEADS * OFFSETS * W, 0)
    assert costs(layer, OFFSETS, TOKENS, D) == expected


def test_the_time_weighs_mixtures_and_numbers_moved() -> None:
    assert Cost(1.0, 10.0, 1000.0).total == 1 + 10 * MIXED + 1000 * MOVED
