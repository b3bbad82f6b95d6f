"""Value and output maps are fused where that takes fewer products, and change nothing else."""

from dataclasses import dataclass

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal
from hypothesis import given
from jax import Array
from strategies import small_integers

from convattn.encodings.layer import AttentionLayer
from convattn.fast.chunked import mix
from convattn.fast.maps import arrange_maps, fuses, sum_dtype
from convattn.operators.attention import multi_head_self_attention
from convattn.operators.shifts import TokenGrid

FLOAT64 = np.dtype("float64")
HEADS, FEATURES, WIDTH, OUT, KEYS = 3, 4, 5, 6, 7
GRID = TokenGrid((KEYS,), ((0, 0),))


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Gained:
    """An encoding of which only the gains matter."""

    gains: Array | None

    heads = HEADS

    def head_gains(self, number_of_keys):
        return self.gains


def integer_layer(value, output, gains, width=WIDTH):
    rng = np.random.default_rng(5)
    of_value = jnp.asarray(small_integers(rng, HEADS, FEATURES, width))
    rows = width if value else FEATURES
    of_output = jnp.asarray(small_integers(rng, HEADS, rows, OUT))
    encoding = Gained(jnp.array([2.0, -3.0, 5.0]) if gains else None)
    return AttentionLayer(encoding, of_value if value else None, of_output if output else None)


@pytest.mark.parametrize("gains", [True, False])
@pytest.mark.parametrize("value", [True, False])
@pytest.mark.parametrize("output", [True, False])
@pytest.mark.parametrize(("tokens", "width"), [(10_000, 1), (10_000, 40), (1, 40)])
def test_arranged_maps_do_what_the_layer_says(gains, value, output, tokens, width):
    """In integers, so that fusing, placing and scaling round nothing."""
    layer = integer_layer(value, output, gains, width)
    rng = np.random.default_rng(6)
    images = jnp.asarray(small_integers(rng, 2, KEYS, FEATURES))
    weights = jnp.asarray(small_integers(rng, HEADS, KEYS, KEYS))
    maps = arrange_maps(layer, GRID, tokens, float(KEYS), FLOAT64)
    values = images
    if maps.before is not None:
        values = jnp.einsum("bkd,hde->bkhe", images, maps.before)
    actual = mix(weights, values, maps, FLOAT64, "highest")
    scaled = weights * layer.encoding.gains[:, None, None] if gains else weights
    assert_equal(actual, multi_head_self_attention(images, scaled, layer.value, layer.output))
    if gains:  # the planted case: the gains forgotten
        without = multi_head_self_attention(images, weights, layer.value, layer.output)
        with pytest.raises(AssertionError, match="entries differ"):
            assert_equal(actual, without)


def counted(sizes, tokens, mixing, fused):
    """The products of an application, one matrix product after the other."""
    heads, features, width, out = sizes
    if fused:
        fusing = heads * features * width * out
        return fusing + tokens * heads * mixing * features + tokens * heads * features * out
    before = tokens * heads * features * width
    return before + tokens * heads * mixing * width + tokens * heads * width * out


@given(
    st.tuples(*(st.integers(1, 64) for _ in range(4))), st.integers(1, 5000), st.integers(1, 5000)
)
def test_the_choice_is_the_cheaper_by_counting(sizes, tokens, mixing):
    heads, features, width, out = sizes
    value = np.broadcast_to(np.float32(0), (heads, features, width))
    output = np.broadcast_to(np.float32(0), (heads, width, out))
    together, separate = (counted(sizes, tokens, mixing, fused) for fused in (True, False))
    assert fuses(value, output, tokens, float(mixing)) == (together < separate)


@pytest.mark.parametrize(
    ("images", "maps", "expected"),
    [
        ("float64", "float32", "float64"),
        ("float32", "float64", "float64"),
        ("bfloat16", "bfloat16", "float32"),
        ("float16", "bfloat16", "float32"),
        ("int32", "float16", "float32"),
        ("int32", "int32", "float32"),
        ("int8", None, "float32"),
        ("bfloat16", None, "float32"),
    ],
)
def test_sums_are_at_least_float32_and_as_wide_as_tokens_and_maps(images, maps, expected):
    value = None if maps is None else jnp.zeros((HEADS, 2, 3), maps)
    layer = AttentionLayer(Gained(None), value, None)
    assert sum_dtype(layer, jnp.zeros((1, 4, 2), images)) == np.dtype(expected)
