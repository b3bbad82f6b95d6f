"""ResNet for small images: what C20 compares its self-attention models with.

`ResidualNetwork` is what it shares with the self-attentive one, which is not a `ResNet`: only
convolutions are turned into attention.
"""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax import Array
from jax.typing import DTypeLike
from jaxtyping import Float

from convattn.nnx.layers.compute import (
    batch_norm,
    compute_dtype,
    product_precision,
    wide_dtype,
)
from convattn.nnx.layers.images import read_images, token_grid
from convattn.nnx.layers.linear import linear
from convattn.operators.integers import as_integer
from convattn_lab.models.settings import ResNetSettings, SelfAttentiveResNetSettings

he_normal = nnx.initializers.variance_scaling(2.0, "fan_out", "normal")


class NormalizedConvolution(nnx.Module):
    """A K × K convolution without bias, with ⌊K/2⌋ zeros laid on every side, and its BatchNorm.

    Zeros are laid evenly for a stride, too, where "SAME" would lay them on one side.
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        size: int,
        stride: int,
        *,
        rngs: nnx.Rngs,
        dtype: DTypeLike,
    ) -> None:
        self.convolution = nnx.Conv(
            inputs,
            outputs,
            (size, size),
            strides=stride,
            padding=size // 2,
            use_bias=False,
            dtype=dtype,
            precision=product_precision(dtype),
            kernel_init=he_normal,
            rngs=rngs,
        )
        self.norm = batch_norm(outputs, rngs=rngs, dtype=dtype)

    def __call__(
        self, images: Float[Array, "batch height width channels"], training: bool
    ) -> Float[Array, "batch rows columns out_channels"]:
        """Normalised by the batch in training, else by the running statistics."""
        outputs = self.convolution(images)
        return self.norm(outputs, use_running_average=not training).astype(outputs.dtype)


class ResidualBlock(nnx.Module):
    """Two operators with their norms, and what they are added to: the images, or their 1 × 1
    convolution where the shape changes."""

    def __init__(self, first: Any, second: Any, shortcut: NormalizedConvolution | None) -> None:
        self.first, self.second, self.shortcut = first, second, shortcut

    def __call__(
        self, images: Float[Array, "batch height width channels"], training: bool
    ) -> Float[Array, "batch rows columns out_channels"]:
        """relu(second(relu(first(images))) + shortcut(images))."""
        residual = self.second(jax.nn.relu(self.first(images, training)), training)
        shortcut = images if self.shortcut is None else self.shortcut(images, training)
        return jax.nn.relu(residual + shortcut)


def shortcut(
    inputs: int, outputs: int, stride: int, *, rngs: nnx.Rngs, dtype: DTypeLike
) -> NormalizedConvolution | None:
    """The 1 × 1 convolution beside a block; None where its shape stays."""
    if inputs == outputs and stride == 1:
        return None
    return NormalizedConvolution(inputs, outputs, 1, stride, rngs=rngs, dtype=dtype)


def block_shapes(
    settings: ResNetSettings | SelfAttentiveResNetSettings,
) -> Iterator[tuple[int, int, int]]:
    """Inputs, outputs and stride of each block: a stage begins with stride 2, a ResNet's first not.

    >>> list(block_shapes(ResNetSettings(channels=(4, 6), blocks=(1, 2))))
    [(4, 4, 1), (4, 6, 2), (6, 6, 1)]
    """
    inputs = settings.channels[0]
    for stage, (outputs, count) in enumerate(zip(settings.channels, settings.blocks, strict=True)):
        for block in range(count):
            has_shortcut = block or (not stage and isinstance(settings, ResNetSettings))
            yield inputs, outputs, 1 if has_shortcut else 2
            inputs = outputs


class ResidualNetwork(nnx.Module):
    """Images to the scores of their classes.

    A K × K stem, stages of blocks, the mean of all pixels, and a linear classifier.

    Args:
        classes, channels: Of the images.
        image_size: (height, width).
        dtype: In which it computes; parameters and statistics are float32, logits at least that.

    Raises:
        ValueError: For sizes that do not fit.
    """

    stem_shape: tuple[int, int]
    """Size and stride of the stem's kernel."""

    def __init__(
        self,
        settings: Any,
        *,
        classes: int,
        image_size: tuple[int, int],
        rngs: nnx.Rngs,
        dtype: DTypeLike = jnp.float32,
        channels: int = 3,
    ) -> None:
        classes = as_integer(classes, "classes", 1)
        channels = self.channels = as_integer(channels, "channels", 1)
        size = token_grid(image_size, 1)
        self.settings, self.dtype = settings, compute_dtype(dtype)
        how: dict[str, Any] = {"rngs": rngs, "dtype": self.dtype}
        kernel_size, stride = self.stem_shape
        self.stem = NormalizedConvolution(
            channels, settings.channels[0], kernel_size, stride, **how
        )
        self.blocks = nnx.List(self.make_blocks(size, **how))
        wide = wide_dtype(dtype)
        self.classifier = linear(settings.channels[-1], classes, rngs=rngs, dtype=wide)

    @abstractmethod
    def make_blocks(self, size: tuple[int, int], **how: Any) -> Sequence[ResidualBlock]:
        """The blocks, for images of this size."""

    def __call__(
        self,
        images: Float[Array, "batch height width channels"],
        *,
        training: bool = False,
        dropout_key: Array | None = None,
    ) -> Float[Array, "batch classes"]:
        """Logits, in at least float32.

        Args:
            images: Floats, normalised.
            training: Normalise by the batch, and gather its statistics.
            dropout_key: Taken, as by every model, and unused: nothing is dropped here.

        Raises:
            ValueError: For images that the model does not take.
        """
        images = read_images(images, self.channels)
        features = jax.nn.relu(self.stem(images.astype(self.dtype), training))
        for block in self.blocks:
            features = block(features, training)
        return self.classifier(features.astype(wide_dtype(self.dtype)).mean(axis=(1, 2)))


class ResNet(ResidualNetwork):
    """A residual network of convolutions, in blocks of two 3 × 3 convolutions.

    Args:
        As for `ResidualNetwork`; every stage but the first halves the sides.

    Source: He et al. 2016; C20 Table 1.

    >>> settings = ResNetSettings(channels=(4, 6), blocks=(1, 1))
    >>> model = ResNet(settings, classes=10, image_size=(8, 8), rngs=nnx.Rngs(0))
    >>> model(jnp.ones((2, 8, 8, 3))).shape
    (2, 10)
    """

    stem_shape = (3, 1)

    def make_blocks(self, size: tuple[int, int], **how: Any) -> Sequence[ResidualBlock]:
        """Of any size: convolutions do not know it."""
        return [
            ResidualBlock(
                NormalizedConvolution(inputs, outputs, 3, stride, **how),
                NormalizedConvolution(outputs, outputs, 3, 1, **how),
                shortcut(inputs, outputs, stride, **how),
            )
            for inputs, outputs, stride in block_shapes(self.settings)
        ]
