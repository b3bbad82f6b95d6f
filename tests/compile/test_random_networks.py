"""Random networks are read as what they compute, or refused."""

from collections.abc import Callable
from functools import reduce

import compiled_networks as networks
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from hypothesis import event, given, settings
from strategies import seeds

from convattn.compile.evaluation import evaluate
from convattn.compile.network import NotCompiled
from convattn.compile.reader import read_network

Draw = np.random.Generator


def kernel(rng: Draw, *shape: int) -> jax.Array:
    return jnp.asarray(rng.normal(size=shape) / np.sqrt(np.prod(shape[:-1])))


def convolved(rng: Draw, channels: int) -> Callable[..., jax.Array]:
    groups = int(rng.choice([1, channels]))
    outputs = groups * int(rng.integers(1, 3))
    weights = kernel(rng, *rng.integers(1, 4, 2), channels // groups, outputs)
    padding = [tuple(rng.integers(0, 3, 2)) for _ in range(2)]
    options = {
        "window_strides": tuple(map(int, rng.integers(1, 3, 2))),
        "rhs_dilation": tuple(map(int, rng.integers(1, 3, 2))),
        "padding": ["SAME", "VALID", padding][rng.integers(3)],
        "feature_group_count": groups,
    }
    return lambda x: networks.convolve(x, weights, **options)


def added(rng: Draw, channels: int) -> Callable[..., jax.Array]:
    weights = kernel(rng, 3, 3, channels, channels)
    return lambda x: x + networks.convolve(jax.nn.relu(x), weights)


def laid_around(rng: Draw, channels: int) -> Callable[..., jax.Array]:
    one, other = rng.integers(0, 2, 2)
    mode = str(rng.choice(["constant", "edge", "wrap"]))
    return lambda x: jnp.pad(x, ((0, 0), (one, other), (other, one), (0, 0)), mode=mode)


def cut(rng: Draw, channels: int) -> Callable[..., jax.Array]:
    row, column, step = int(rng.integers(2)), int(rng.integers(2)), int(rng.integers(1, 3))
    return lambda x: x[:, row::step, column:]


def permuted(rng: Draw, channels: int) -> Callable[..., jax.Array]:
    order = rng.permutation(channels)
    return lambda x: x[..., order]


def of_tokens(rng: Draw, channels: int) -> Callable[..., jax.Array]:
    weights = kernel(rng, channels, 3)
    return lambda x: (x.reshape(len(x), -1, channels) @ weights).reshape(*x.shape[:3], 3)


def shifted(rng: Draw, channels: int) -> Callable[..., jax.Array]:
    scales, shifts = jnp.asarray(rng.normal(size=(2, channels)))
    return lambda x: scales * x + shifts


def always(function: Callable[..., jax.Array]) -> Callable[..., Callable[..., jax.Array]]:
    return lambda rng, channels: function


OPERATIONS = [
    *[convolved] * 3, added, laid_around, cut, permuted, of_tokens, shifted,
    *map(always, [
        jax.nn.relu, jnp.abs, jax.nn.relu6, jax.nn.hard_sigmoid,
        lambda x: jnp.where(x >= 0.2, x, 0.5 * x + 0.1),
        lambda x: jax.nn.gelu(x, approximate=False),
        lambda x: jnp.roll(x, 1, 1),
        lambda x: jnp.concatenate([jax.nn.relu(x[..., :1]), x[..., 1:]], -1),
        lambda x: jnp.stack([x, 2 * x], 3).reshape(*x.shape[:3], -1),
        lambda x: x - x.mean(-1, keepdims=True),
        lambda x: jnp.where(jnp.arange(x.shape[3]) % 2 == 0, x, 0.0),
        lambda x: nnx.avg_pool(x, (2, 2), (2, 2), "VALID"),
        lambda x: nnx.max_pool(x, (2, 2), (1, 1), "SAME"),
    ]),
]  # fmt: skip
HEADS = [
    lambda x: x.mean((1, 2)),
    lambda x: x.max((1, 2)),
    lambda x: jax.nn.relu(x.sum((1, 2))),
    lambda x: x.mean(1).mean(1),
    lambda x: x[:, x.shape[1] // 2, 0],
    lambda x: x.reshape(len(x), -1) @ jnp.cos(jnp.arange(float(x[0].size)))[:, None],
]


def drawn(rng: Draw, sides: tuple[int, int, int]) -> list[Callable[..., jax.Array]]:
    """Operations that go with each other, and a head."""
    chosen: list[Callable[..., jax.Array]] = []
    for _ in range(rng.integers(1, 6)):
        given = jax.ShapeDtypeStruct((2, *sides), jnp.float64)
        step = OPERATIONS[rng.integers(len(OPERATIONS))](rng, sides[-1])
        try:
            shape = jax.eval_shape(step, given).shape
        except ValueError:  # a kernel that is larger than what is left
            continue
        if 0 not in shape and shape[-1] <= 40:
            chosen, sides = [*chosen, step], shape[1:]
    return [*chosen, HEADS[rng.integers(len(HEADS))]]


@pytest.mark.slow
@settings(max_examples=40)
@given(seeds())
def test_a_network_is_what_it_computes_or_is_refused(seed):
    rng = np.random.default_rng(seed)
    sides = tuple(map(int, (*rng.integers(4, 9, 2), rng.integers(1, 5))))
    steps = drawn(rng, sides)

    def function(x):
        return reduce(lambda held, step: step(held), steps, x)

    images = jnp.asarray(rng.normal(size=(2, *sides)))
    try:
        network = read_network(function, (images,), (1, 1), False)
    except NotCompiled:
        event("refused")
        return
    event("read")
    expected = function(images)
    size = max(1.0, float(jnp.abs(expected).max()))
    assert np.allclose(evaluate(network, images), expected, rtol=0, atol=1e-11 * size)
