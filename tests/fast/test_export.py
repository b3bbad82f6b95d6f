"""jax.export with a symbolic batch: one program for every number of images."""

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest
from comparison import assert_within
from flax import nnx
from jax import export

from convattn.constructions.conversion import conv_to_attention
from convattn.fast.application import apply_attention
from convattn.fast.selection import BACK_ENDS
from convattn.nnx import AttentionConv


@pytest.fixture(autouse=True)
def unchecked_shapes():
    """jaxtyping knows no symbols."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


KERNEL = np.arange(9.0, dtype=np.float32).reshape(3, 3, 1, 1) - 4
(BATCH,) = export.symbolic_shape("batch")
ENCODINGS = {
    "auto": "bias", "dense": "bias", "shift": "bias", "windowed": "bias", "chunked": "bias",
    "separable": "quadratic",
}  # fmt: skip


def of_every_batch(function, *sides):
    """The exported function on one and on three images, against the function itself."""
    exported = export.export(jax.jit(function))(jax.ShapeDtypeStruct((BATCH, *sides), jnp.float32))
    for count in (1, 3):
        images = jnp.arange(count * np.prod(sides), dtype=jnp.float32).reshape(count, *sides) % 5
        expected = function(images)
        assert_within(exported.call(images), expected, np.full(expected.shape, 1e-4))
        assert float(jnp.abs(expected).max()) > 1


@pytest.mark.parametrize("backend", ENCODINGS)
def test_back_ends(backend):
    layer = conv_to_attention(KERNEL, encoding=ENCODINGS[backend])
    of_every_batch(lambda images: apply_attention(layer, images, backend=backend), 4, 5, 1)


def test_every_back_end_that_serves_layers_of_convolutions_is_in_the_table():
    assert {*BACK_ENDS} - {*ENCODINGS} == {"dot_product"}  # it needs content scores


@pytest.mark.slow
def test_rotary_layers_are_separable():
    layer = conv_to_attention(KERNEL, encoding="rotary")
    of_every_batch(lambda images: apply_attention(layer, images, backend="separable"), 4, 5, 1)


def test_modules_with_strides_groups_and_a_filled_ring():
    options = {"feature_group_count": 2, "padding": "REFLECT", "rngs": nnx.Rngs(0)}
    strided = AttentionConv(1, 2, (3, 3), strides=2, rngs=nnx.Rngs(0))
    net = nnx.Sequential(strided, AttentionConv(2, 2, (3, 3), **options))
    of_every_batch(net, 6, 7, 1)
