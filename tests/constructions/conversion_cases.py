"""The table of conversions: buckets × encodings and regimes, the other choices spread over them."""

from dataclasses import dataclass
from functools import cache

import jax
from strategies import CONVERSION_BUCKETS, FLOATS, Bucket

from convattn.constructions.conversion import conv_to_attention
from convattn.constructions.geometry import ConvolutionGeometry
from convattn.constructions.linear_map import linear_map
from convattn.constructions.recovery import attention_to_conv
from convattn.fast.application import apply_attention, attention_maps
from convattn.operators.convolution import conv

BUCKETS = (
    *CONVERSION_BUCKETS,
    Bucket(2, (3,), (6,), 2, 4, (2,), (1,), groups=2, patch_size=(1,)),  # smaller than the kernel
    Bucket(2, (1, 1), (3, 3), 2, 3, (2, 1), (1, 2), patch_size=(1, 1)),  # one pixel
    Bucket(2, (2, 3), (5, 3), 1, 2, (1, 3), (1, 1), patch_size=(2, 3)),  # one token a side
    Bucket(1, (6, 4), (2, 2), 1, 2, (1, 2), (3, 1), patch_size=(2, 2)),
    Bucket(2, (6,), (3,), 2, 4, (4,), (3,), groups=2, patch_size=(2,)),
)
# encoding, exact
REGIMES = (
    ("bias", True),
    ("bias", False),
    ("quadratic", False),
    ("enumerated", False),
    ("polygon", False),
    ("rotary", False),
    ("scalar", True),
    ("scalar", False),
)
HEAD_DIMS = (None, 1, 4)


def geometry_of(b: Bucket) -> ConvolutionGeometry:
    return ConvolutionGeometry.of(b.kernel_size, b.patch_size, b.stride, b.dilation)


@dataclass(frozen=True)
class Row:
    bucket: Bucket
    encoding: str
    exact: bool
    dtype: str
    head_dim: int | None
    bias: bool

    def __str__(self) -> str:
        b = self.bucket
        sizes = [b.space, b.kernel_size, b.patch_size, b.stride, b.dilation]
        size = "-".join("x".join(map(str, each)) for each in sizes)
        regime = f"{self.encoding}-{'exact' if self.exact else 'limit'}"
        return f"{regime}-{size}-g{b.groups}-{self.dtype}-d{self.head_dim}-b{int(self.bias)}"

    @property
    def geometry(self) -> ConvolutionGeometry:
        return geometry_of(self.bucket)

    @property
    def one_hot(self) -> bool:
        """Whether every weight is exactly zero or one, so that the layer has no rounding at all."""
        return not self.exact and self.encoding != "scalar"

    def convert(self, kernel, bias, **changes):
        options = {
            "patch_size": self.bucket.patch_size,
            "encoding": self.encoding,
            "form": "exact" if self.exact else "limit",
            "head_dim": self.head_dim,
            **self.bucket.options,
            **changes,
        }
        return conv_to_attention(kernel, bias if self.bias else None, **options)


def rows() -> tuple[Row, ...]:
    table = []
    for i, bucket in enumerate(BUCKETS):
        for j, (encoding, exact) in enumerate(REGIMES):
            dtype = FLOATS[(i + j) % 4]
            if encoding == "scalar":
                narrow = geometry_of(bucket).heads <= 6 and i % 2
                dtype = "float32" if narrow else "float64"  # κu is too large otherwise
            head_dim = HEAD_DIMS[(i + 2 * j + i // 4) % 3]
            table.append(Row(bucket, encoding, exact, dtype, head_dim, bool((i + j // 2) % 2)))
    return tuple(table)


ROWS = rows()


@cache
def layer_program(row: Row):
    """Images, kernel and bias in, the layer's images, the convolution's, and the heads out."""

    def run(images, kernel, bias):
        layer = row.convert(kernel, bias)
        expected = conv(images, kernel, bias if row.bias else None, **row.bucket.options)
        return apply_attention(layer, images), expected, layer.heads

    return jax.jit(run)


STATIC = ("patch_size", "encoding", "form", "stride", "dilation", "groups", "head_dim")
converted = jax.jit(conv_to_attention, static_argnames=(*STATIC, "padding", "border", "causal"))
recovered = jax.jit(attention_to_conv, static_argnames=("kernel_size", "image_size"))
linear_map_of = jax.jit(linear_map, static_argnames="image_size")
maps_of = jax.jit(attention_maps, static_argnums=1)
reference = jax.jit(conv, static_argnames=("stride", "dilation", "groups", "padding"))
applied = jax.jit(apply_attention, static_argnames=("border", "backend", "precision"))
