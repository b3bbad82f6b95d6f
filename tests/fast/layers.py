"""Layers of every encoding on every kind of grid, as (bucket, seed): what JAX compiles stays few.

A bucket fixes all shapes and static fields; the seed draws the numbers. Between them the buckets
hold every encoding, one to five heads, value and output maps of different widths or none, gains,
content, rings of different sizes, patches, strides, H ≠ W, one-pixel axes and sequences.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
from strategies import seeds

from convattn.encodings import (
    AbsoluteEncoding,
    AxialEncoding,
    AxialRotaryEncoding,
    BiasEncoding,
    EnumeratedEncoding,
    GaussianEncoding,
    LearnedEncoding,
    MixtureEncoding,
    PolygonEncoding,
    QuadraticEncoding,
    QuadraticGridEncoding,
    RelativeEncoding,
    RotaryEncoding,
    ScalarEncoding,
)
from convattn.encodings.layer import AttentionLayer, ContentScores
from convattn.operators.shifts import TokenGrid

Generator = np.random.Generator
Ring = tuple[tuple[int, int], ...]


def learned(rng: Generator, grid: TokenGrid, heads: int) -> LearnedEncoding:
    widths = [3, 2][: len(grid.keys)]
    tables = [rng.normal(size=(2 * n - 1, w)) for n, w in zip(grid.keys, widths, strict=True)]
    return LearnedEncoding(rng.normal(size=(heads, sum(widths))), tuple(tables))


def relative(rng: Generator, grid: TokenGrid, heads: int) -> RelativeEncoding:
    table = rng.normal(size=(*(2 * n - 1 for n in grid.keys), 3))
    return RelativeEncoding(rng.normal(size=(heads, 2)), rng.normal(size=(heads, 3, 2)), table)


def relative_sinusoids(rng: Generator, grid: TokenGrid, heads: int) -> RelativeEncoding:
    features = 4 * len(grid.keys)
    return RelativeEncoding(rng.normal(size=(heads, 2)), rng.normal(size=(heads, features, 2)))


def absolute(rng: Generator, grid: TokenGrid, heads: int) -> AbsoluteEncoding:
    maps = rng.normal(size=(2, heads, 3, 2))
    return AbsoluteEncoding(*maps, rng.normal(size=(*(n + 1 for n in grid.keys), 3)))


def absolute_sinusoids(rng: Generator, grid: TokenGrid, heads: int) -> AbsoluteEncoding:
    return AbsoluteEncoding(*rng.normal(size=(2, heads, 4 * len(grid.keys), 2)))


def axial(rng: Generator, grid: TokenGrid, heads: int) -> AxialEncoding:
    widths = [3, 4][: len(grid.keys)]
    maps = [[rng.normal(size=(heads, w, 2)) for w in widths] for _ in range(2)]
    tables = [rng.normal(size=(n + 1, w)) for n, w in zip(grid.keys, widths, strict=True)]
    return AxialEncoding(tuple(maps[0]), tuple(maps[1]), tuple(tables))


def quadratic(rng: Generator, grid: TokenGrid, heads: int) -> QuadraticEncoding:
    return QuadraticEncoding(
        rng.uniform(0.05, 2.0, heads), rng.normal(size=(heads, len(grid.keys)))
    )


def one_hot_quadratic(rng: Generator, grid: TokenGrid, heads: int) -> QuadraticEncoding:
    """Integer centres, some of them outside the image, and weights that underflow."""
    centers = rng.integers(-2, 3, (heads, len(grid.keys))).astype(float)
    return QuadraticEncoding(rng.uniform(30.0, 60.0, heads), centers)


def quadratic_grid(rng: Generator, grid: TokenGrid, heads: int) -> QuadraticGridEncoding:
    """Two centres on the first axis; as many on the second as the heads need."""
    counts = (2, (heads + 1) // 2)[: len(grid.keys)]
    alpha = tuple(rng.uniform(0.1, 2.0, n) for n in counts)
    centers = tuple(rng.normal(size=n) for n in counts)
    pairs = tuple((h % 2, h // 2)[: len(counts)] for h in range(heads))
    return QuadraticGridEncoding(alpha, centers, pairs)


def gaussian(rng: Generator, grid: TokenGrid, heads: int) -> GaussianEncoding:
    axes = len(grid.keys)
    centers, roots = rng.normal(size=(heads, axes)), rng.normal(size=(heads, axes, axes))
    return GaussianEncoding(centers, roots)


def offsets_of(grid: TokenGrid) -> tuple[tuple[int, ...], ...]:
    """Four offsets, one of them far; some lie outside small grids."""
    return ((0,), (-1,), (1,), (3,)) if len(grid.keys) == 1 else ((0, 0), (-1, 1), (0, 1), (2, -3))


def bias(rng: Generator, grid: TokenGrid, heads: int) -> BiasEncoding:
    """Scores of both signs: some offsets weigh less than the keys without an entry."""
    return BiasEncoding(rng.normal(size=(heads, 4)) * 2, None, offsets_of(grid))


def leaky_bias(rng: Generator, grid: TokenGrid, heads: int) -> BiasEncoding:
    values = np.eye(4)[np.arange(heads) % 4]
    return BiasEncoding(values, np.array(rng.choice([0.5, 0.1, 0.9])), offsets_of(grid))


def mixture(rng: Generator, grid: TokenGrid, heads: int) -> MixtureEncoding:
    return MixtureEncoding(rng.uniform(0.0, 3.0, (heads, 4)), offsets_of(grid))


def enumerated(rng: Generator, grid: TokenGrid, heads: int) -> EnumeratedEncoding:
    alpha, targets = rng.uniform(0.1, 3.0, heads), rng.integers(0, 4, heads) + 0.25
    return EnumeratedEncoding(alpha, targets, offsets_of(grid), (0, 1, 2, 3), 5)


def polygon(rng: Generator, grid: TokenGrid, heads: int) -> PolygonEncoding:
    return PolygonEncoding(rng.normal(size=(heads, 2)) * 3, offsets_of(grid))


def axial_rotary(rng: Generator, grid: TokenGrid, heads: int) -> AxialRotaryEncoding:
    parts = [tuple(rng.normal(size=(heads, 3)) for _ in grid.keys) for _ in range(3)]
    return AxialRotaryEncoding(*parts)


def rotary(rng: Generator, grid: TokenGrid, heads: int) -> RotaryEncoding:
    turns = rng.normal(size=(heads, 3, len(grid.keys))) / 4
    return RotaryEncoding(turns, *rng.normal(size=(2, heads, 3)))


def scalar(rng: Generator, grid: TokenGrid, heads: int) -> ScalarEncoding:
    """Gains that know the number of keys; bases below and above one."""
    logs = np.log(rng.permutation([0.4, 0.7, 1.3, 1.9]))
    return ScalarEncoding(np.arange(float(heads)), logs, None, offsets_of(grid))


def scalar_limit(rng: Generator, grid: TokenGrid, heads: int) -> ScalarEncoding:
    return replace(
        scalar(rng, grid, heads), logit=np.array(2.0), exponents=np.arange(1.0, heads + 1)
    )


Draw = Callable[[Generator, TokenGrid, int], Any]


@dataclass(frozen=True)
class LayerBucket:
    """The shapes and static fields of one layer and of its images.

    `value` and `output` are the widths of a head and of the result, or None for no map.
    """

    draw: Draw
    heads: int
    batch: int
    space: tuple[int, ...]
    ring: Ring
    channels: int
    value: int | None = None
    output: int | None = None
    bias: bool = False
    content: bool = False
    tables: bool = False
    patch_size: tuple[int, ...] = field(default=())
    stride: tuple[int, ...] = field(default=())

    @property
    def axes(self) -> int:
        return len(self.space)

    @property
    def patches(self) -> tuple[int, ...]:
        return self.patch_size or (1,) * self.axes

    @property
    def grid(self) -> TokenGrid:
        sides = tuple(n // p for n, p in zip(self.space, self.patches, strict=True))
        return TokenGrid(sides, self.ring)

    def __str__(self) -> str:
        extras = ("-content" if self.content else "") + ("-tables" if self.tables else "")
        return f"{self.draw.__name__}-{'x'.join(map(str, self.space))}{extras}"


NO = ((0, 0), (0, 0))
LAYER_BUCKETS = (
    LayerBucket(learned, 3, 2, (4, 3), ((1, 0), (0, 2)), 2, value=3, output=4),
    LayerBucket(relative, 2, 1, (3, 4), ((1, 1), (0, 1)), 3, output=2, bias=True),
    LayerBucket(relative_sinusoids, 2, 2, (5,), ((1, 2),), 3, value=2),
    LayerBucket(absolute, 3, 3, (3, 2), ((0, 1), (1, 0)), 3, value=1, output=5),
    LayerBucket(absolute_sinusoids, 1, 2, (1, 5), ((0, 0), (2, 1)), 2, output=3),
    LayerBucket(axial, 5, 2, (4, 5), NO, 3, value=2, output=4, bias=True),
    LayerBucket(quadratic, 3, 2, (5, 4), ((1, 0), (0, 2)), 3, value=2, output=4, bias=True),
    LayerBucket(quadratic, 2, 3, (7,), ((2, 1),), 4),
    LayerBucket(one_hot_quadratic, 4, 2, (3, 5), ((2, 1), (0, 1)), 2, output=3),
    LayerBucket(
        quadratic_grid, 4, 2, (8, 6), ((1, 1), (1, 1)), 1, output=8, patch_size=(2, 2), bias=True
    ),
    LayerBucket(gaussian, 3, 1, (4, 5), ((1, 2), (0, 0)), 2, value=4, output=3),
    LayerBucket(bias, 5, 2, (4, 6), ((0, 1), (1, 0)), 3, output=4, bias=True),
    LayerBucket(leaky_bias, 4, 2, (5, 3), ((1, 1), (2, 2)), 2, value=3, output=4),
    LayerBucket(leaky_bias, 2, 2, (1, 1), NO, 3, value=4),
    LayerBucket(mixture, 3, 3, (6,), ((0, 1),), 2),
    LayerBucket(enumerated, 2, 2, (1, 6), ((0, 1), (0, 0)), 3, value=2, stride=(1, 2)),
    LayerBucket(polygon, 3, 2, (4, 3), ((1, 0), (0, 2)), 2, output=3, bias=True),
    LayerBucket(axial_rotary, 2, 2, (4, 5), ((1, 0), (0, 1)), 2, value=3, output=2),
    LayerBucket(rotary, 3, 2, (3, 5), ((1, 0), (0, 1)), 2, value=3, output=2),
    LayerBucket(scalar, 4, 2, (4, 5), ((1, 0), (0, 1)), 2, value=3, output=3, bias=True),
    LayerBucket(scalar_limit, 2, 2, (6,), ((1, 1),), 2, output=3),
    LayerBucket(relative, 2, 2, (3, 4), ((1, 0), (0, 1)), 3, value=2, output=4, content=True),
    LayerBucket(bias, 3, 2, (5,), ((1, 2),), 3, output=2, content=True),
    LayerBucket(bias, 2, 2, (3, 4), ((1, 0), (0, 2)), 3, output=2, content=True, tables=True),
)


@dataclass(frozen=True)
class LayerCase:
    """A layer, images and a cotangent in one dtype; every number also is one of float64."""

    bucket: LayerBucket
    seed: int
    dtype: str
    layer: AttentionLayer = field(repr=False)
    images: jax.Array = field(repr=False)
    cotangent: jax.Array = field(repr=False)

    @property
    def grid(self) -> TokenGrid:
        return self.bucket.grid

    def wide(self) -> "LayerCase":
        """The same numbers in float64; integer images become floats."""
        layer, images, cotangent = jax.tree.map(
            lambda part: part.astype(jnp.float64), (self.layer, self.images, self.cotangent)
        )
        return replace(self, dtype="float64", layer=layer, images=images, cotangent=cotangent)


def make_layer_case(
    bucket: LayerBucket, seed: int, dtype: str = "float32", images: str | None = None
) -> LayerCase:
    """The case of a bucket and a seed; `images` is their dtype where it is another one."""
    rng = np.random.default_rng(seed)
    features = bucket.channels * int(np.prod(bucket.patches))
    heads = bucket.heads
    width = bucket.value or features
    stride = bucket.stride or (1,) * bucket.axes

    def cast(tree: Any) -> Any:
        return jax.tree.map(lambda part: jnp.asarray(part, jnp.dtype(dtype)), tree)

    out = bucket.output or width
    maps = rng.normal(size=(heads, features, width)), rng.normal(size=(heads, width, out))
    content = None
    if bucket.content:
        shapes = (heads, features, 2), (heads, features, 2), (heads, 2), (heads, 2)
        content = ContentScores(*(rng.normal(size=shape) for shape in shapes))
    if bucket.tables:
        sides = bucket.grid.keys  # for larger images than needed, by another number on each axis
        tables = [rng.normal(size=(2 * (n + a) + 1, 1)) for a, n in enumerate(sides)]
        content = replace(content, tables=tuple(tables))
    layer = AttentionLayer(
        encoding=bucket.draw(rng, bucket.grid, heads),
        value=None if bucket.value is None else maps[0],
        output=None if bucket.output is None else maps[1],
        bias=rng.normal(size=out) if bucket.bias else None,
        content=content,
        patch_size=bucket.patches,
        stride=stride,
        dilation=(1,) * bucket.axes,
        ring=bucket.ring,
    )
    shape = (bucket.batch, *bucket.space, bucket.channels)
    pixels = rng.normal(size=shape) if images is None else rng.integers(-9, 10, shape)
    sides = [
        n // p * q
        for n, p, q in zip(bucket.space, layer.patch_size, layer.output_patch_size, strict=True)
    ]
    sides = [-(-n // s) for n, s in zip(sides, layer.subsampling, strict=True)]
    channels = out // int(np.prod(layer.output_patch_size))
    layer = cast(layer)
    pixels = jnp.asarray(pixels, jnp.dtype(images or dtype))
    cotangent = cast(rng.normal(size=(bucket.batch, *sides, channels)))
    return LayerCase(bucket, seed, dtype, layer, pixels, cotangent)


def layer_cases(
    buckets: Sequence[LayerBucket] = LAYER_BUCKETS, dtypes: Sequence[str] = ("float64", "float32")
) -> st.SearchStrategy[LayerCase]:
    """A bucket, a seed and a dtype."""
    return st.builds(make_layer_case, st.sampled_from(buckets), seeds(), st.sampled_from(dtypes))
