"""What is said of networks of one's own, against the streams and attention of their compilations.

Strides, borders, patches, maps that fill a part of the grid, and logits of other values.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from convattn.compile import CompiledTransformer, to_vision_transformer
from convattn.known_answers import KnownHead, known_heads, known_values
from convattn.known_answers.layers import above, conv


def weights(*shape: int) -> np.ndarray:
    """Multiples of 1/8, most of them not 0."""
    return np.random.default_rng(shape).integers(-4, 5, shape).astype(np.float32) / 8


def features(images: Any, **options: Any) -> Any:
    return above(conv(images, weights(3, 3, images.shape[-1], 2), **options), 0.125)


def without_padding(images: Any) -> Any:
    kernel, order = weights(3, 3, images.shape[-1], 2), ("NHWC", "HWIO", "NHWC")
    return above(
        jax.lax.conv_general_dilated(images, kernel, (1, 1), "VALID", dimension_numbers=order),
        0.125,
    )


def with_edges_repeated(images: Any) -> Any:
    return without_padding(jnp.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)), mode="edge"))


def classified(maps: Any) -> Any:
    return maps.mean((1, 2)) @ weights(2, 3)


def by_mlp(maps: Any) -> Any:
    return above(classified(maps), -0.5) @ weights(3, 2) + weights(2)


def by_two_vectors(maps: Any) -> Any:
    """Logits that read two values and a bias."""
    rows = above(maps.mean((1, 2)), -0.25)
    return above(rows @ weights(2, 3), -0.5) @ weights(3, 2) + rows @ weights(2, 2) + weights(2)


def by_points(maps: Any) -> Any:
    return maps.reshape(len(maps), -1) @ weights(maps[0].size, 3)


def torus(images: Any, **options: Any) -> Any:
    return features(images, border="circular", **options)


CASES: dict[str, tuple[tuple[int, int], int, Callable[[Any], Any]]] = {
    "MLP": ((6, 6), 1, lambda x: by_mlp(features(x))),
    "MLP, patches": ((8, 8), 2, lambda x: by_mlp(features(x))),
    "two vectors": ((6, 6), 1, lambda x: by_two_vectors(features(x))),
    "all points": ((8, 8), 2, lambda x: by_points(features(x, stride=4))),
    "logits at a bend": ((6, 6), 1, lambda x: above(classified(features(x)), -0.25)),
    "torus, strided": ((8, 8), 1, lambda x: classified(torus(torus(x, stride=2), stride=2))),
    "torus, strided, patches": ((16, 8), 2, lambda x: by_mlp(torus(torus(x, stride=4)))),
    "edges, strided": ((8, 8), 1, lambda x: classified(with_edges_repeated(features(x, stride=2)))),
    "no padding": ((7, 6), 1, lambda x: classified(without_padding(without_padding(x)))),
    "zeros around a part": ((7, 6), 1, lambda x: classified(features(without_padding(x)))),
    "torus of a part": ((7, 6), 1, lambda x: by_points(torus(without_padding(x)))),
    "edges of a part": ((6, 6), 1, lambda x: by_mlp(with_edges_repeated(without_padding(x)))),
    "torus, a row of tokens": ((2, 8), 2, lambda x: classified(torus(x))),
    "torus, a column of tokens": ((6, 1), 1, lambda x: by_mlp(torus(x))),
    "torus, one token": ((4, 4), 4, lambda x: classified(torus(x))),
}
QUICK = ("two vectors", "torus, strided, patches", "edges of a part", "torus, a row of tokens")


def images_of(size: tuple[int, int]) -> np.ndarray:
    return np.random.default_rng(size).integers(0, 257, (2, *size, 1)).astype(np.float32) / 256


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in CASES],
)
def case(request: Any) -> tuple[Callable[[Any], Any], np.ndarray, CompiledTransformer]:
    size, patch, function = CASES[request.param]
    images = images_of(size)
    compiled = to_vision_transformer(function, images, patch_size=patch, channels_first=False)
    assert compiled.report is not None
    assert compiled.report.passed
    return function, images, compiled


def agree(actual: Any, expected: Any, factor: float = 2.0**-18) -> bool:
    expected = np.asarray(expected, np.float64)
    largest = np.abs(expected).max(initial=2.0**-10)
    return bool((np.abs(np.asarray(actual) - expected) <= factor * largest).all())


@pytest.mark.quick(1)
def test_values_are_those_of_the_stream_and_the_logits_those_of_the_function(case) -> None:
    function, images, compiled = case
    *stored, logits = known_values(compiled.plan, images)
    streams = compiled.streams(images)
    after = [*streams.before[1:], streams.last]
    half = compiled.plan.width // 2
    for value in (*stored, *([logits] if logits.channels.size else [])):
        stream = np.asarray(after[value.blocks - 1], np.float64)[:, value.tokens]
        numbers = (stream[..., value.channels] - stream[..., half + value.channels]) / 2
        assert value.numbers.shape == numbers.shape
        assert agree(value.numbers, numbers), value.name
    assert agree(logits.numbers[:, 0], function(images))
    assert logits.blocks == len(compiled.plan.blocks)
    assert logits.tokens.tolist() == [0]


@pytest.mark.quick(1)
def test_the_jacobian_of_the_logits_is_that_of_jax(case) -> None:
    function, images, compiled = case
    logits = known_values(compiled.plan, images)[-1]
    of_one = jax.jacobian(lambda image: function(image[None])[0])
    expected = np.stack([np.asarray(of_one(jnp.asarray(image))) for image in images])
    assert agree(logits.jacobian[:, 0].transpose(0, 1, 3, 4, 2), expected)
    assert np.abs(expected).max() > 0
    inside = (logits.jacobian != 0).any((0, 1, 2, 3))
    assert not (inside & ~logits.field[0]).any()


def expected_attention(head: KnownHead, grid: tuple[int, int]) -> np.ndarray:
    """`[queries, keys]`, as `KnownHead` says it."""
    tokens = 1 + grid[0] * grid[1]
    rows = np.full((tokens, tokens), 1 / tokens)

    def place(at: Any) -> int:
        return 1 + int(at[0]) * grid[1] + int(at[1])

    every, count = np.array(head.every), np.array(head.count)
    lattice = {place(every * at) for at in np.ndindex(*head.count)}
    if head.kind == "mean":
        rows[0] = 0
        rows[0, sorted(lattice)] = 1 / len(lattice)
    elif head.kind == "point":
        rows[0] = np.eye(tokens)[place(head.where)]
    elif head.kind != "unused":
        looked_at = np.eye(tokens)
        rows[0] = looked_at[0]
        for at in np.ndindex(*grid):
            own = place(at)
            there = np.array(at) + head.where
            if head.border == "circular":
                there = there % (every * count)
            if head.border == "edge":
                there = there.clip(0, every * (count - 1))
            outside = place(there) not in lattice or not ((there >= 0) & (there < grid)).all()
            if own in lattice:
                rows[own] = looked_at[0 if outside else place(there)]
            elif head.border == "zeros":
                rows[own] = looked_at[0]
            else:
                rows[own] = np.r_[0, np.full(tokens - 1, 1 / (tokens - 1))]
    return rows


def test_heads_attend_as_is_said_of_them(case) -> None:
    _, images, compiled = case
    streams, plan = compiled.streams(images), compiled.plan
    arrays = {name: np.asarray(array, np.float64) for name, array in compiled.timm.items()}
    lattice = plan.network.image.lattice
    assert lattice is not None
    kinds = set()
    for number, (heads, before) in enumerate(zip(known_heads(plan), streams.before, strict=True)):
        stream = np.asarray(before, np.float64)
        spread = np.sqrt(stream.var(-1, keepdims=True) + compiled.constants.epsilon)
        read = (stream - stream.mean(-1, keepdims=True)) / spread
        read = read * arrays[f"blocks.{number}.norm1.weight"]
        parts = read @ arrays[f"blocks.{number}.attn.qkv.weight"].T
        parts = parts.reshape(*read.shape[:2], 3, plan.num_heads, plan.head_dim)
        queries, keys, _ = np.moveaxis(parts, 2, 0)
        scores = np.einsum("bqhd,bkhd->hbqk", queries, keys) / np.sqrt(plan.head_dim)
        exponentials = np.exp(scores - scores.max(-1, keepdims=True))
        attention = exponentials / exponentials.sum(-1, keepdims=True)
        for head, own in zip(heads, attention, strict=True):
            kinds.add(head.kind)
            expected = expected_attention(head, lattice.tokens)
            assert np.abs(own - expected).max() <= 2.0**-10 / expected.shape[0], (number, head)
    assert kinds & {"mean", "point"}


@pytest.mark.slow
def test_a_value_that_nothing_reads_has_no_tokens() -> None:
    def function(images):
        return images.mean((1, 2)) + 0 * jax.nn.relu(images - 0.5).mean((1, 2))

    images = jnp.ones((2, 4, 4, 1))
    unread, logits = known_values(to_vision_transformer(function, images).plan, images)
    assert len(unread.tokens) == 0
    assert unread.jacobian.shape[:2] == (1, 0)
    assert logits.jacobian.any()
