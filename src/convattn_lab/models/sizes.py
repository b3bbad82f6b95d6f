"""How many parameters a model has, and how many products it takes: C20's Tables 1 and 4.

Parameters are counted from the shapes of the module's own arrays, of which none is allocated. One
FLOP is one multiplication or one addition, so that a product counts two; linear maps, convolutions
and the products of tokens with tokens are counted, and what is done element by element is not.

On a grid of Q queries and K keys, a SAC of C heads with n × n filters, d channels in and d_o out
takes the products

    maps      n²·d·C·(Q·d_a + K·d_a + K·d_o)  filters of queries, keys, values
              Q·C·d_o²                        the 1 × 1 convolution that joins the heads
              Q·(n²·d·d_o + 2·d_o²)           the ordinary convolution, and its merge
    matching  C·Q·K·d_a
    mixing    C·Q·K·d_o

and an MSAC of L scales those of each, and Q·L·d_o² for the 1 × 1 convolution that joins them.
"""

import math
from typing import Any, NamedTuple

import jax
from flax import nnx

from convattn.nnx.layers.images import token_grid
from convattn.nnx.vision_transformer.settings import VisionTransformerSettings
from convattn_lab.models.build import build_model
from convattn_lab.models.resnet import block_shapes
from convattn_lab.models.settings import (
    ResNetSettings,
    SelfAttentiveResNetSettings,
    VisionModelSettings,
)


class FlopCount(NamedTuple):
    """FLOPs of the forward pass of one image.

    Attributes:
        maps: Linear maps and convolutions, which is what C20 prints.
        mixing: A·X, tokens mixed by attention.
        matching: Q·Kᵀ, queries with keys.
        relating: Q·Rᵀ, each query with the shifts of its rows and columns.
    """

    maps: int
    mixing: int = 0
    matching: int = 0
    relating: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.maps + self.mixing + self.matching + self.relating


def abstract_model(
    settings: Any,
    *,
    classes: int = 10,
    image_size: tuple[int, int] = (32, 32),
    **options: Any,
) -> Any:
    """The model with shapes and dtypes in place of arrays.

    Args:
        Those of `build_model`, but for `rngs`. It gives what `build_model` gives.

    >>> from convattn_lab.models.settings import EncoderSettings
    >>> abstract_model(EncoderSettings()).embedding.kernel.shape
    (12, 400)
    """

    def build() -> Any:
        rngs: Any = nnx.Rngs(0)
        rngs.default = _OneKey(rngs.default.key[...], tag="default")
        return build_model(settings, classes=classes, image_size=image_size, rngs=rngs, **options)

    return nnx.eval_shape(build)


class _OneKey(nnx.RngStream):
    """The same key each time, as shapes need no more.

    To count keys under a trace takes JAX a time in proportion to all operations before: minutes for
    a model of 256 layers.
    """

    def __call__(self) -> jax.Array:
        return self.key[...]

    def fork(self, **options: Any) -> nnx.RngStream:
        return nnx.RngStream(self.key[...], tag=self.tag)


def parameter_count(model: Any) -> int:
    """All numbers that training changes; batch statistics are none.

    Args:
        model: A module, with arrays or abstract, or its state.

    >>> from convattn_lab.models.settings import EncoderSettings
    >>> parameter_count(abstract_model(EncoderSettings()))
    12086844
    """
    state = model if isinstance(model, nnx.State) else nnx.state(model)
    leaves = jax.tree.leaves(nnx.filter_state(state, nnx.Param))
    return sum(math.prod(leaf.shape) for leaf in leaves)


def flop_count(
    settings: VisionModelSettings,
    *,
    classes: int = 10,
    image_size: tuple[int, int] = (32, 32),
    channels: int = 3,
    zeros: bool = True,
) -> FlopCount:
    """What a model takes for one image.

    Args:
        zeros: Count the products of a convolution, and of attention, with the zeros around their
            images, too.

    >>> from convattn_lab.models.settings import EncoderSettings
    >>> flop_count(EncoderSettings()).maps, flop_count(EncoderSettings()).total
    (6175956800, 9007112000)
    """
    if isinstance(settings, ResNetSettings | SelfAttentiveResNetSettings):
        return _residual_flops(settings, classes, image_size, channels, zeros)
    if isinstance(settings, VisionTransformerSettings):
        return _transformer_flops(settings, classes, image_size, channels, zeros)
    rows, columns = token_grid(image_size, settings.downsampling)
    tokens, width = rows * columns, settings.width
    total_heads = sum(settings.heads)
    maps = settings.downsampling**2 * channels * width * tokens + width * classes
    maps += total_heads * width**2 * tokens * (3 if settings.encoding == "content" else 1)
    for heads in settings.heads:  # without heads one vector, the bias, goes through the dense map
        maps += width**2 * (tokens if heads else 1) + 2 * width * settings.inner * tokens
    pairs = total_heads * tokens**2 * width
    if settings.encoding != "content":
        return FlopCount(2 * maps, 2 * pairs)
    return FlopCount(
        2 * maps, 2 * pairs, 2 * pairs, total_heads * tokens * (rows + columns) * width
    )


def _residual_flops(
    settings: Any,
    classes: int,
    image_size: tuple[int, int],
    channels: int,
    zeros: bool,
) -> FlopCount:
    """The stem, the blocks one after the other with their shortcuts, and the classifier."""

    def convolution(size: int, inputs: int, outputs: int, stride: int) -> int:
        return inputs * outputs * math.prod(taps(side, size, stride, zeros) for side in sides)

    def cells(stride: int) -> int:
        return math.prod(-(-side // stride) for side in sides)

    def self_attention(size: int, inputs: int, outputs: int, stride: int) -> tuple[int, ...]:
        heads, key_features = settings.heads, settings.key_features
        key_stride = 1 if settings.fine_keys else stride
        maps = heads * convolution(size, inputs, key_features, stride)
        maps += heads * convolution(size, inputs, key_features + outputs, key_stride)
        maps += cells(stride) * heads * outputs**2
        if settings.ordinary:
            maps += convolution(size, inputs, outputs, stride) + cells(stride) * 2 * outputs**2
        pairs = heads * cells(stride) * cells(key_stride)
        return maps, pairs * outputs, pairs * key_features

    def operator(inputs: int, outputs: int, stride: int) -> tuple[int, ...]:
        if isinstance(settings, ResNetSettings):
            return convolution(3, inputs, outputs, stride), 0, 0
        size = settings.kernel_size
        if settings.operator == "convolution":
            return convolution(size, inputs, outputs, stride), 0, 0
        if settings.operator == "sac":
            return self_attention(size, inputs, outputs, stride)
        counts = [self_attention(size, inputs, outputs, stride) for size in settings.scales]
        counts.append((cells(stride) * len(counts) * outputs**2, 0, 0))
        return tuple(map(sum, zip(*counts, strict=True)))

    plain = isinstance(settings, ResNetSettings)
    stem, stride = (3, 1) if plain else (settings.kernel_size, settings.stem_stride)
    sides = list(image_size)
    products: list[tuple[int, ...]] = [
        (convolution(stem, channels, settings.channels[0], stride), 0, 0)
    ]
    sides = [-(-side // stride) for side in sides]
    for inputs, outputs, stride in block_shapes(settings):
        if stride != 1 or inputs != outputs:
            products.append((convolution(1, inputs, outputs, stride), 0, 0))
        products.append(operator(inputs, outputs, stride))
        sides = [-(-side // stride) for side in sides]
        products.append(operator(outputs, outputs, 1))
    products.append((settings.channels[-1] * classes, 0, 0))
    return FlopCount(*(2 * sum(kind) for kind in zip(*products, strict=True)))


def _transformer_flops(
    settings: VisionTransformerSettings,
    classes: int,
    image_size: tuple[int, int],
    channels: int,
    zeros: bool,
) -> FlopCount:
    """The projection, the layers one like the other, and the classifier.

    Value and output maps are two maps, which a back end may make one where that takes less; and
    means beyond the border are read where zeros would be.

    >>> from convattn_lab.models.presets import deit_small
    >>> flop_count(deit_small(), classes=1000, image_size=(224, 224)).total / 2  # 4.6 G products
    4598882304.0
    """
    sides = token_grid(image_size, settings.patch_size, name="patch_size")
    depth, width = settings.depth, settings.width
    patches = math.prod(sides)
    tokens = patches + (settings.pooling == "class")
    maps = width * classes + depth * 2 * width * settings.inner * tokens
    if settings.projection == "learned":
        maps += settings.patch_size**2 * channels * width * patches
    if settings.mixing == "convolution":
        within = zeros or settings.border == "mean"
        reads = math.prod(taps(side, settings.kernel_size, 1, within) for side in image_size)
        return FlopCount(2 * (maps + depth * (width // settings.patch_size**2) ** 2 * reads))
    across = settings.heads * settings.key_width
    ring = 2 * settings.ring if zeros else 0
    keys = math.prod(side + ring for side in sides) if ring else tokens
    maps += depth * 4 * across * width * tokens
    pairs = 2 * depth * across * tokens * keys
    return FlopCount(2 * maps, pairs, pairs)


def taps(side: int, size: int, stride: int, zeros: bool) -> int:
    """How many numbers an odd kernel reads on one axis, at all its places together.

    >>> taps(4, 3, 1, True), taps(4, 3, 1, False), taps(4, 3, 2, False)
    (12, 10, 5)
    """
    positions = range(0, side, stride)
    reach = range(-(size // 2), size // 2 + 1)
    return sum(zeros or 0 <= position + tap < side for position in positions for tap in reach)
