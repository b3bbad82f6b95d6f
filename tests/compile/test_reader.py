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
@pytest.mark.quick(4)
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


@pytest.mark.quick(2)
@pytest.mark.parametrize("name", HAND_WRITTEN)
def test_convolutions_written_by_hand(name):
    example = images((4, 6))

    def function(x):
        return mean(jax.nn.relu(HAND_WRITTEN[name](x) - 0.1))

    network = read_network(function, (example,), (1, 1), False)
    assert jnp.allclose(evaluate(network, example), function(example), rtol=0, atol=1e-14)


def mean(x):
    return x.mean((1, 2))


DRAWN = networks.Parameters()
K33, OTHER, GROUPED, WHOLE, FLAT = (
    DRAWN.kernel(*shape)
    for shape in ((3, 3, 3, 4), (3, 3, 3, 4), (3, 3, 1, 2), (6, 6, 4, 5), (144, 3))
)
relu = jax.nn.relu


def features(x):
    return networks.convolve(x, K33)


def laid(x):
    return jnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))


def valid(x, kernel=K33):
    return networks.convolve(x, kernel, padding="VALID")


READ = {
    "a batch norm's scale": lambda x: mean(relu(features(x) / np.sqrt(1 + 1e-5))),
    "averages before ReLU": lambda x: mean(relu(nnx.avg_pool(features(x), (3, 3), (2, 2)))),
    "hard sigmoid": lambda x: mean(jax.nn.hard_sigmoid(features(x))),
    "a bias of many digits": lambda x: mean(relu(features(x) + 0.12345678901234)),
    "numbers far below one": lambda x: mean(relu(features(x) * 1e-13 + 3e-13)) * 1e13,
    "a slope of a third": lambda x: mean(jax.nn.leaky_relu(features(x), 1 / 3)),
    "ReLU of zeros that were laid": lambda x: mean(relu(valid(relu(laid(x))))),
    "ReLU after flattening": lambda x: relu(features(x).reshape(len(x), -1)) @ FLAT,
    "a product with a mask": lambda x: mean((y := features(x)) * (y > 0)),
    "a choice at zero": lambda x: mean(jnp.where((y := features(x)) >= 0, y, y / 10)),
    "a mask of what is never negative": lambda x: mean(
        jnp.where(relu(y := features(x)) >= 0, y, y / 10)
    ),
    "a kernel of zeros": lambda x: mean(relu(features(x) * 0 + 1) + features(x)),
    "the larger of nothing": lambda x: mean(jnp.maximum(features(x), -jnp.inf)),
    "a part before a convolution": lambda x: mean(relu(features(x[:, ::2, 1::2]))),
    "split and joined": lambda x: mean(
        jnp.concatenate([relu((y := jnp.split(features(x), 2, -1))[0]), y[1]], -1)
    ),
    "stacked": lambda x: mean(jnp.stack([relu(features(x)), features(x)], -1).sum(-1)),
    "unstacked": lambda x: sum(jnp.unstack(relu(features(x)), axis=1)).sum(1),
    "channels by number": lambda x: mean(relu(features(x[..., jnp.array([2, 0, 1])]))),
    "means one after the other": lambda x: relu(features(x)).mean(1).mean(1),
    "a product of tensors": lambda x: jnp.tensordot(
        relu(features(x)), FLAT.reshape(6, 6, 4, 3), ((1, 2, 3), (0, 1, 2))
    ),
    "one pixel": lambda x: relu(features(x))[:, 2, 3],
    "a kernel of the map's size": lambda x: valid(relu(features(x)), WHOLE).reshape(len(x), -1),
    "a multiple of GELU": lambda x: mean(2 * jax.nn.gelu(features(x), approximate=False) + 1),
    "the larger of two maps": lambda x: mean(jnp.maximum(features(x), networks.convolve(x, OTHER))),
    "the largest of all pixels": lambda x: features(x).max((1, 2)),
    "maxima of half of ReLU": lambda x: mean(
        nnx.max_pool(relu(features(x) * 0.5), (3, 3), (2, 2), "SAME")
    ),
    "a cheap half": lambda x: mean(
        relu(
            jnp.concatenate(
                [
                    (y := features(x)[..., :2]),
                    networks.convolve(y, GROUPED, feature_group_count=2),
                ],
                -1,
            )
        )
    ),
    "channels left out": lambda x: mean(jnp.where(jnp.arange(4) > 1, relu(features(x)), 0.0)),
    "no channel is left": lambda x: (
        mean(
            (y := jnp.where(jnp.arange(4) < 0, relu(features(x)), 0.0)) - y.mean(-1, keepdims=True)
        )
        + mean(features(x))
    ),
    "an outer product": lambda x: (mean(x)[:, :, None] * jnp.arange(1.0, 5)).sum(1),
}


@pytest.mark.parametrize("name", READ)
@pytest.mark.quick(10)
def test_what_is_read(name):
    example = images((6, 6)) - 0.3
    expected = READ[name](example)
    size = float(jnp.abs(expected).max())
    for patch in (1, 2):
        network = read_network(READ[name], (example,), (patch, patch), False)
        assert jnp.allclose(evaluate(network, example), expected, rtol=0, atol=1e-13 * size)


def gated(x):
    return mean(x * jax.nn.sigmoid(x.mean((1, 2), keepdims=True)))


def layer_norm(x):
    return mean((x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True)))


def batch_norm(x):
    return mean(jax.nn.relu(x - x.mean((0, 1, 2))))


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
    "a constant": (lambda x: jnp.ones((len(x), 3)), "do not depend on the images"),
    "SiLU": (lambda x: mean(jax.nn.silu(x)), "neither piecewise linear nor the exact GELU"),
    "approximate GELU": (lambda x: mean(jax.nn.gelu(x)), "neither piecewise linear nor the exact"),
    "a step": (lambda x: mean(jnp.where(x > 0, 1.0, 0.0)), "a function that jumps"),
    "a gate": (gated, "multiplies two arrays|do not match"),
    "a norm over channels": (layer_norm, "neither piecewise linear nor the exact GELU .*squares"),
    "batch norm of the batch": (batch_norm, r"joins numbers of different images.*model\.eval"),
    "a branch": (branching, "joins numbers of different images, .*a branch"),
    "a dynamic kernel": (dynamic, "a kernel that depends on the image"),
    "a reflected border": (reflected, "reflected at its border"),
    "rows from last to first": (mirrored, "in another order or number than the map has"),
    "more pixels than the image": (enlarged, "lay fewer zeros"),
    "a transposed convolution": (transposed, "a transposed convolution"),
    "averages that count": (counted, "a constant that differs from pixel to pixel"),
    "zeros that become ones": (
        lambda x: mean(valid(laid(x) + 1)),
        "changes the zeros that were la",
    ),
    "zeros that are clipped": (
        lambda x: mean(valid(jnp.clip(laid(x), 0.5, 2))),
        "changes the zeros that were laid",
    ),
    "zeros with a bias": (
        lambda x: mean(valid(laid(x) + jnp.arange(3.0))),
        "changes the zeros that were laid",
    ),
    "bytes": (lambda x: mean(relu(features(x.astype(jnp.uint8)))), "rounds what .* to uint8"),
    "bfloat16": (lambda x: mean(x.astype(jnp.bfloat16)), "rounds what .* to bfloat16"),
    "a dictionary": (lambda x: {"logits": mean(x)}, "one array .*, in no container"),
    "an array of NumPy": (lambda x: mean(jnp.asarray(np.asarray(x))), "an array of NumPy of it"),
    "a kernel larger than the grid": (
        lambda x: mean(networks.convolve(x, jnp.ones((7, 7, 3, 4)), padding="VALID")),
        "a window of 7 pixels on an axis of 6",
    ),
    "pixels of a map": (lambda x: relu(features(x)).reshape(len(x), -1), "mixed in one axis"),
    "another bias for each pixel": (
        lambda x: relu(features(x).reshape(len(x), -1) + jnp.arange(144.0)) @ FLAT,
        "a constant that differs from pixel to pixel",
    ),
    "a loop over rows": (
        lambda x: jax.lax.scan(
            lambda carry, row: (carry + row, None), 0 * x[:, 0], x.swapaxes(0, 1)
        )[0].sum(1),
        "goes over rows, columns, channels or images",
    ),
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
            lambda x: x.reshape(3, 36, 3).mean(1), (jnp.ones((3, 6, 6, 3)),), (1, 1), False
        )
    notes = caught.value.__notes__
    assert any(note.endswith("called on 2 images, of the shape (2, 6, 6, 3).") for note in notes)


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
