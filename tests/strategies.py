"""What the tests draw: integers so small that no sum is rounded, on shapes that tell axes apart.

**The condition.** A float with p significant bits holds every integer up to 2^p in magnitude (p = 8
for bfloat16, 11 for float16, 24 for float32, 53 for float64). Every partial sum of a convolution,
in whatever order, is an integer of magnitude at most

    Σ_t |X_(q+t)| |W_t| + |b|  ≤  max|X| · max_o Σ_(t,i) |W_(t,i,o)| + max|b|  =: `largest_sum`.

If `largest_sum` ≤ 2^p nothing is rounded, however the sums are ordered or fused, and results are
compared with ==. `fits` computes it; every case drawn here satisfies it for its dtype.

**Shapes.** A program that JAX must compile is drawn as (bucket, seed), from few buckets in which
every axis has its own size. `free_convolutions` draws any shape, for NumPy and Python paths.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import hypothesis.strategies as st
import jax.numpy as jnp
import numpy as np

FLOATS = ("float64", "float32", "bfloat16", "float16")
DTYPES = (*FLOATS, "int32")

# dtype: (largest pixel, largest magnitude of a weight). Pixels are 0 … and weights ± that.
RANGES = {
    "float64": (255, 8),
    "float32": (255, 8),
    "int32": (255, 8),
    "float16": (31, 4),
    "bfloat16": (5, 2),
}


def largest_exact_integer(dtype: Any) -> int:
    """2^p: up to here the dtype holds every integer."""
    if jnp.issubdtype(dtype, jnp.integer):
        return int(jnp.iinfo(dtype).max)
    return 2 ** (int(jnp.finfo(dtype).nmant) + 1)


def largest_sum(images: np.ndarray, kernel: np.ndarray, bias: np.ndarray | None = None) -> int:
    """max|X| · max_o Σ |W_(·,o)| + max|b|, which no partial sum exceeds."""
    columns = np.abs(kernel).reshape(-1, kernel.shape[-1]).sum(axis=0)
    top = int(np.abs(images).max(initial=0)) * int(columns.max())
    return top + (0 if bias is None else int(np.abs(bias).max()))


def fits(dtype: Any, images: np.ndarray, kernel: np.ndarray, bias: np.ndarray | None) -> bool:
    """Whether no partial sum of the convolution is rounded in `dtype`."""
    return largest_sum(images, kernel, bias) <= largest_exact_integer(dtype)


@dataclass(frozen=True)
class Bucket:
    """The sizes of one convolution; `in_channels` counts those of the images, all groups."""

    batch: int
    space: tuple[int, ...]
    kernel_size: tuple[int, ...]
    in_channels: int
    out_channels: int
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int = 1
    patch_size: tuple[int, ...] = field(default=())

    @property
    def axes(self) -> int:
        return len(self.space)

    @property
    def options(self) -> dict[str, Any]:
        """The keyword arguments that `conv` and `conv_to_attention` share."""
        return {"stride": self.stride, "dilation": self.dilation, "groups": self.groups}

    @property
    def image_shape(self) -> tuple[int, ...]:
        return (self.batch, *self.space, self.in_channels)

    @property
    def kernel_shape(self) -> tuple[int, ...]:
        return (*self.kernel_size, self.in_channels // self.groups, self.out_channels)


# Every axis of a bucket that a transposition could confuse has its own size.
CONVOLUTION_BUCKETS = (
    Bucket(2, (7,), (3,), 4, 5, (1,), (1,)),
    Bucket(3, (8,), (4,), 2, 5, (2,), (1,)),
    Bucket(2, (9,), (5,), 4, 6, (1,), (2,), groups=2),
    Bucket(2, (3,), (7,), 1, 4, (1,), (1,)),  # the kernel is larger than the image
    Bucket(2, (6, 7), (3, 5), 1, 4, (1, 1), (1, 1)),
    Bucket(3, (8, 7), (2, 4), 1, 5, (1, 2), (2, 1)),
    Bucket(2, (8, 5), (3, 1), 6, 9, (3, 2), (1, 2), groups=3),
    Bucket(1, (5, 4), (1, 2), 3, 6, (2, 1), (1, 3)),
)

# Patches divide the image; stride divides the patch in some and not in others.
CONVERSION_BUCKETS = (
    Bucket(2, (7,), (3,), 4, 5, (1,), (1,), patch_size=(1,)),
    Bucket(3, (8,), (5,), 1, 2, (2,), (1,), patch_size=(4,)),
    Bucket(2, (9,), (4,), 2, 6, (2,), (2,), groups=2, patch_size=(3,)),
    Bucket(2, (5, 4), (3, 1), 2, 6, (1, 1), (1, 1), patch_size=(1, 1)),
    Bucket(2, (6, 8), (3, 5), 1, 3, (1, 1), (1, 1), patch_size=(3, 2)),
    Bucket(3, (4, 6), (2, 3), 2, 4, (2, 1), (1, 2), groups=2, patch_size=(2, 1)),
    Bucket(1, (4, 6), (3, 2), 2, 3, (3, 2), (1, 1), patch_size=(2, 2)),
)


@dataclass(frozen=True)
class Case:
    """One convolution in integers, and the dtype in which it is exact."""

    bucket: Bucket
    seed: int
    dtype: str
    images: np.ndarray = field(repr=False)
    kernel: np.ndarray = field(repr=False)
    bias: np.ndarray = field(repr=False)

    def cast(self, *arrays: np.ndarray) -> tuple[Any, ...]:
        """The operands, or these arrays instead, as JAX arrays of `dtype`."""
        chosen = arrays or (self.images, self.kernel, self.bias)
        return tuple(jnp.asarray(array, self.dtype) for array in chosen)


def make_case(bucket: Bucket, seed: int, dtype: str = "float32") -> Case:
    """The case of a bucket and a seed.

    Raises:
        ValueError: For a bucket too large for the dtype to be exact.
    """
    generator = np.random.default_rng(seed)
    pixel, weight = RANGES[dtype]
    images = generator.integers(0, pixel, bucket.image_shape, endpoint=True)
    kernel = generator.integers(-weight, weight, bucket.kernel_shape, endpoint=True)
    bias = generator.integers(-weight, weight, bucket.out_channels, endpoint=True)
    if not fits(dtype, images, kernel, bias):
        raise ValueError(
            f"largest_sum={largest_sum(images, kernel, bias)}, but {dtype} is exact only up to "
            f"{largest_exact_integer(dtype)}; take a smaller bucket {bucket}"
        )
    return Case(bucket, seed, dtype, images, kernel, bias)


def seeds() -> st.SearchStrategy[int]:
    """What NumPy's generators start from."""
    return st.integers(0, 2**32 - 1)


def convolutions(
    buckets: Sequence[Bucket] = CONVOLUTION_BUCKETS, dtypes: Sequence[str] = DTYPES
) -> st.SearchStrategy[Case]:
    """A bucket, a seed and a dtype: what JAX compiles stays few."""
    return st.builds(make_case, st.sampled_from(buckets), seeds(), st.sampled_from(dtypes))


def conversions(dtypes: Sequence[str] = FLOATS) -> st.SearchStrategy[Case]:
    """The same on buckets that have a patch size."""
    return convolutions(CONVERSION_BUCKETS, dtypes)


@st.composite
def free_convolutions(draw: st.DrawFn, axes: int | None = None, odd: bool = False) -> Case:
    """Any small shape, in int64 only: for paths that compile nothing."""
    count = draw(st.integers(1, 2)) if axes is None else axes
    sizes = [1, 3, 5] if odd else [1, 2, 3, 4, 5]

    def each(strategy: st.SearchStrategy[int]) -> tuple[int, ...]:
        return tuple(draw(strategy) for _ in range(count))

    groups = draw(st.integers(1, 3))
    bucket = Bucket(
        draw(st.integers(1, 2)),
        each(st.integers(1, 6)),
        each(st.sampled_from(sizes)),
        groups * draw(st.integers(1, 2)),
        groups * draw(st.integers(1, 2)),
        each(st.integers(1, 3)),
        each(st.integers(1, 3)),
        groups,
        each(st.integers(1, 3)),
    )
    return make_case(bucket, draw(seeds()), "float64")


def with_patches_that_divide(case: Case) -> Case:
    """The case with its images repeated at the end until patches divide the sides."""
    sides = zip(case.bucket.space, case.bucket.patch_size, strict=True)
    missing = [-n % p for n, p in sides]
    images = np.pad(case.images, [(0, 0), *((0, m) for m in missing), (0, 0)], mode="wrap")
    bucket = replace(case.bucket, space=images.shape[1:-1])
    return replace(case, bucket=bucket, images=images)


@dataclass(frozen=True)
class TokenBucket:
    """The sizes of one attention layer on tokens."""

    batch: int
    tokens: int
    features: int
    key_features: int
    heads: int
    head_features: int
    out_features: int


TOKEN_BUCKETS = (
    TokenBucket(2, 5, 3, 4, 6, 7, 8),
    TokenBucket(3, 4, 6, 2, 1, 5, 7),
    TokenBucket(1, 7, 4, 5, 3, 2, 6),
)


def token_buckets() -> st.SearchStrategy[TokenBucket]:
    """Sizes of an attention layer, every axis with its own."""
    return st.sampled_from(TOKEN_BUCKETS)


def small_integers(
    generator: np.random.Generator, *shape: int, magnitude: int = 4, dtype: Any = np.float64
) -> np.ndarray:
    """Integers in ±magnitude, held in `dtype`."""
    return generator.integers(-magnitude, magnitude, shape, endpoint=True).astype(dtype)
