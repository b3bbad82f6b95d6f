"""Networks as they are read from functions, against the functions, and what is not recognised."""

import compiled_networks as networks
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compile.test_compilation import KINDS, images
from flax import nnx

import convattn as ca
from convattn.compile.evaluation import evaluate
from convattn.compile.network import NotCompiled
from convattn.compile.reader import read_network


@pytest.mark.parametrize("name", KINDS)
def test_a_network_that_was_read_computes_the_function(name):
    function, sides, patch, _ = KINDS[name]
    example = images(sides)
    network = read_network(function, (example,), (patch, patch), False)
    expected = function(example)
    size = float(jnp.abs(expected).max())
    assert jnp.allclose(evaluate(network, example), expected, rtol=0, atol=1e-13 * size)


def test_a_value_that_is_read_twice_is_stored_once():
    network = read_network(networks.residual(), (images((8, 8)),), (1, 1), False)
    assert len(network.nodes) == 5  # the stem and two blocks of two


def conv(x, *shape, **options):
    return ca.conv(x, networks.Parameters().kernel(*shape), **options)


HAND_WRITTEN = {
    "a sum over offsets": lambda x: conv(x, 3, 3, 3, 4, padding="SAME"),
    "at a stride": lambda x: conv(x, 3, 3, 3, 4, padding="SAME", stride=2),
    "of groups": lambda x: conv(x, 3, 3, 1, 6, padding="SAME", groups=3),
    "circular": lambda x: conv(x, 3, 3, 3, 4, padding="CIRCULAR"),
    "of the edge": lambda x: conv(x, 3, 3, 3, 4, padding="EDGE"),
    "rolled": lambda x: jnp.roll(x, 1, 1) / 2 + jnp.roll(x, -2, 2),
    "shifted": lambda x: jnp.pad(x, ((0, 0), (2, 0), (0, 0), (0, 0)))[:, : x.shape[1]] - x,
    "a product for each group": lambda x: (
        jnp.einsum("bhwgi,gio->bohwg", x[..., None], networks.Parameters().kernel(3, 1, 2))
        .transpose(0, 2, 3, 1, 4)
        .reshape(-1, *x.shape[1:3], 6)
    ),
}


@pytest.mark.parametrize("name", HAND_WRITTEN)
def test_convolutions_written_by_hand(name):
    example = images((4, 6))

    def function(x):
        return mean(jax.nn.relu(HAND_WRITTEN[name](x) - 0.1))

    network = read_network(function, (example,), (1, 1), False)
    assert jnp.allclose(evaluate(network, example), function(example), rtol=0, atol=1e-14)


def mean(x):
    return x.mean((1, 2))


def gated(x):
    return mean(x * jax.nn.sigmoid(x.mean((1, 2), keepdims=True)))


def layer_norm(x):
    return mean((x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True)))


def branching(x):
    return jax.lax.cond(x.sum() > 0, mean, lambda x: 2 * mean(x), x)


def dynamic(x):
    return mean(networks.convolve(x, x.transpose(1, 2, 3, 0)))


def reflected(x):
    padded = jnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)), mode="reflect")
    return mean(
        networks.convolve(padded, networks.Parameters().kernel(3, 3, 3, 4), padding="VALID")
    )


def mirrored(x):
    return mean(jax.nn.relu(x + x[:, ::-1]))


NORM = nnx.BatchNorm(3, rngs=nnx.Rngs(0))


def enlarged(x):
    return mean(networks.convolve(x, jnp.ones((2, 2, 3, 4)), padding=((2, 2), (2, 2))))


def transposed(x):
    return mean(
        networks.convolve(x, jnp.ones((2, 2, 3, 4)), lhs_dilation=(2, 2), padding=((1, 1), (1, 1)))
    )


def counted(x):
    sums = jax.lax.reduce_window(x, 0.0, jax.lax.add, (1, 3, 3, 1), (1, 1, 1, 1), "SAME")
    counts = jax.lax.reduce_window(
        jnp.ones_like(x), 0.0, jax.lax.add, (1, 3, 3, 1), (1, 1, 1, 1), "SAME"
    )
    return mean(sums / counts)


REFUSED = {
    "batch norm in training": (lambda x: mean(NORM(x)), r"call model\.eval"),
    "a branch of Python": (lambda x: mean(x) if x.sum() > 0 else 2 * mean(x), "branches on the im"),
    "a map": (lambda x: x, "but expected logits"),
    "a constant": (lambda x: jnp.ones((1, 3)), "depends on the images"),
    "SiLU": (lambda x: mean(jax.nn.silu(x)), "neither piecewise linear nor the exact GELU"),
    "approximate GELU": (lambda x: mean(jax.nn.gelu(x)), "neither piecewise linear nor the exact"),
    "a step": (lambda x: mean(jnp.where(x > 0, 1.0, 0.0)), "a function that jumps"),
    "a gate": (gated, "multiplies two arrays|do not match"),
    "a norm of the image": (layer_norm, "over other axes than all rows and columns"),
    "a branch": (branching, "over other axes|cond at .*is not recognised"),
    "a dynamic kernel": (dynamic, "a kernel that depends on the image"),
    "a reflected border": (reflected, "reflected at its border"),
    "rows from last to first": (mirrored, "in another order or number than the map has"),
    "more pixels than the image": (enlarged, "lay fewer zeros"),
    "a transposed convolution": (transposed, "a transposed convolution"),
    "averages that count": (counted, "a constant that differs from pixel to pixel"),
    "a softmax": (lambda x: jax.nn.softmax(mean(x)), "not recognised|divides|over other axes"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_computed_is_refused(name):
    function, message = REFUSED[name]
    with pytest.raises(NotCompiled, match=message):
        read_network(function, (jnp.ones((1, 6, 6, 3)),), (1, 1), False)


def test_a_function_of_another_batch_fails_with_the_shape_it_was_given():
    with pytest.raises(TypeError) as caught:
        read_network(
            lambda x: x.reshape(2, 36, 3).mean(1), (jnp.ones((2, 6, 6, 3)),), (1, 1), False
        )
    notes = caught.value.__notes__
    assert any(note.endswith("called on one image, of shape (1, 6, 6, 3).") for note in notes)


def test_a_refusal_names_the_line():
    with pytest.raises(NotCompiled, match=r"test_reader\.py:\d+"):
        read_network(branching, (jnp.ones((1, 6, 6, 3)),), (1, 1), False)


def test_maxima_of_negative_numbers_at_the_border_of_one_axis():
    """No window leaves the map on the other axis, which says nothing of the signs."""
    size, padding = (1, 3, 3, 1), ((0, 0), (0, 0), (1, 1), (0, 0))

    def function(x):
        x = networks.convolve(x, -jnp.ones((1, 1, 3, 2)))
        return mean(jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, size, (1, 1, 1, 1), padding))

    example = 1 + jnp.asarray(np.random.default_rng(0).random((2, 6, 5, 3)))
    network = read_network(function, (example,), (1, 1), False)
    assert jnp.allclose(evaluate(network, example), function(example), rtol=0, atol=1e-13)


@pytest.mark.parametrize(
    ("kernel", "stride", "padding"),
    [(2, 1, "SAME"), (3, 2, "VALID"), (3, 3, "SAME"), (4, 2, ((1, 2), (0, 3))), (1, 2, "SAME")],
)
def test_strides_and_paddings(kernel, stride, padding):
    weights = networks.Parameters().kernel(kernel, kernel, 3, 4)

    def function(x):
        options = {"window_strides": (stride, stride), "padding": padding}
        return mean(networks.convolve(x, weights, **options))

    example = jnp.asarray(np.random.default_rng(0).random((2, 9, 8, 3)))
    network = read_network(function, (example,), (1, 1), False)
    assert jnp.allclose(evaluate(network, example), function(example), rtol=0, atol=1e-13)
