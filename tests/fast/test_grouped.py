import jax
import jax.numpy as jnp
import numpy as np
import pytest

from convattn.constructions.tied import tied_layer
from convattn.fast.application import apply_attention
from convattn.fast.grouped import grouped_attention
from convattn.operators.roundoff import gamma, unit_roundoff

# Every dtype and either number of groups on the first sizes.
CASES = [
    *(((5, 6), (3, 3), (1, 1), (1, 1), "SAME", *each) for each in [(2, "float16"), (2, "float64")]),
    *(((5, 6), (3, 3), (1, 1), (1, 1), "SAME", 1, dtype) for dtype in ("bfloat16", "float32")),
    ((6, 5), (3, 2), (2, 3), (2, 1), "VALID", 2, "float32"),
    ((4, 4), (5, 5), (1, 2), (1, 1), "SAME", 1, "float32"),
    ((9,), (4,), (2,), (2,), ((3, 1),), 2, "float32"),
    ((7,), (1,), (3,), (1,), "SAME", 1, "float32"),
]


@pytest.mark.quick(2)
@pytest.mark.parametrize(
    ("side", "size", "stride", "dilation", "padding", "groups", "dtype"), CASES
)
def test_tied_heads_attend_as_the_heads_do(side, size, stride, dilation, padding, groups, dtype):
    rng = np.random.default_rng(0)
    images = jnp.asarray(rng.integers(-3, 4, (2, *side, 4)), dtype)
    kernel = jnp.asarray(rng.integers(-3, 4, (*size, 4 // groups, 6)), dtype)
    layer = tied_layer(kernel, 0.5, stride, dilation, padding)
    expected = grouped_attention(layer, images, groups, backend="dense")
    result = grouped_attention(layer, images, groups)
    assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
    # Integers, which only the weights of dense attention round: sums of N keys and T maps of
    # entries up to 2·9, of softmaxes whose rounding 64 units cover, and once the result.
    keys, taps = np.prod(np.add(side, np.multiply(np.subtract(size, 1), dilation))), np.prod(size)
    unit = unit_roundoff(np.promote_types(dtype, np.float32) if dtype != "bfloat16" else np.float32)
    sums = gamma(keys + taps * 4 + 64, unit) * taps * 4 * 4 * 9
    difference = np.abs(np.asarray(result, float) - np.asarray(expected, float)).max()
    assert difference <= sums + 2 * unit_roundoff(dtype) * float(jnp.abs(result).max())


def test_whole_attention_is_computed_where_it_is_asked_for():
    layer = tied_layer(jnp.ones((3, 1, 1)), 0.5, (1,), (1,), "SAME")
    images = jnp.ones((1, 4, 1))
    assert "exp" not in str(jax.make_jaxpr(lambda x: grouped_attention(layer, x, 1))(images))
    for apply in (
        lambda x: grouped_attention(layer, x, 1, backend="chunked"),
        lambda x: apply_attention(layer, x),
        lambda x: apply_attention(layer, x, border="none"),
    ):
        assert "exp" in str(jax.make_jaxpr(apply)(images))
