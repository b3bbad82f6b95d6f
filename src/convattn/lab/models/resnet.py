"""ResNet for small images: what C20 sets its self-attention models against."""

from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax import Array
from jax.typing import DTypeLike
from jaxtyping import Float

from convattn.lab.models.compute import compute_dtype, product_precision, wide_dtype
from convattn.lab.models.downsampling import token_grid
from convattn.lab.models.initialization import linear
from convattn.lab.models.inputs import read_images
from convattn.lab.models.settings import ResNetSettings
from convattn.operators.integers import as_integer

he_normal = nnx.initializers.variance_scaling(2.0, "fan_out", "normal")


class NormalizedConvolution(nnx.Module):
    """A K × K convolution without bias, with ⌊K/2⌋ zeros laid on every side, and its BatchNorm.

    The running statistics keep 0.9 of what they were. Zeros are laid evenly for a stride, too,
    where "SAME" would lay them on one side. The norm is taken in at least float32, so that the
    gradients of its scale and bias are sums in float32 over all pixels.
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
        self.norm = nnx.BatchNorm(
            outputs, momentum=0.9, epsilon=1e-5, dtype=wide_dtype(dtype), rngs=rngs
        )

    def __call__(
        self, images: Float[Array, "batch height width channels"], training: bool
    ) -> Float[Array, "batch rows columns out_channels"]:
        """Normalised by the batch in training, else by the running statistics."""
        found = self.convolution(images)
        return self.norm(found, use_running_average=not training).astype(found.dtype)


class BasicBlock(nnx.Module):
    """Two 3 × 3 convolutions, and what they are added to: the images, or their 1 × 1 convolution
    where the shape changes."""

    def __init__(
        self, inputs: int, outputs: int, stride: int, *, rngs: nnx.Rngs, dtype: DTypeLike
    ) -> None:
        how: dict[str, Any] = {"rngs": rngs, "dtype": dtype}
        self.first = NormalizedConvolution(inputs, outputs, 3, stride, **how)
        self.second = NormalizedConvolution(outputs, outputs, 3, 1, **how)
        same = inputs == outputs and stride == 1
        self.shortcut = None if same else NormalizedConvolution(inputs, outputs, 1, stride, **how)

    def __call__(
        self, images: Float[Array, "batch height width channels"], training: bool
    ) -> Float[Array, "batch rows columns out_channels"]:
        """relu(second(relu(first(images))) + shortcut(images))."""
        found = self.second(jax.nn.relu(self.first(images, training)), training)
        kept = images if self.shortcut is None else self.shortcut(images, training)
        return jax.nn.relu(found + kept)


class ResNet(nnx.Module):
    """Images to the scores of their classes.

    A 3 × 3 stem, stages of basic blocks, the mean of all pixels, and a linear classifier.

    Args:
        classes, channels: Of the images.
        image_size: (height, width); every stage but the first halves them.
        dtype: In which it computes; parameters and statistics are float32, logits at least that.

    Raises:
        ValueError: For sizes that do not fit.

    Source: He et al. 2016; C20 Table 1.

    >>> settings = ResNetSettings(channels=(4, 6), blocks=(1, 1))
    >>> model = ResNet(settings, classes=10, image_size=(8, 8), rngs=nnx.Rngs(0))
    >>> model(jnp.ones((2, 8, 8, 3))).shape
    (2, 10)
    """

    def __init__(
        self,
        settings: ResNetSettings,
        *,
        classes: int,
        image_size: tuple[int, int],
        rngs: nnx.Rngs,
        dtype: DTypeLike = jnp.float32,
        channels: int = 3,
    ) -> None:
        classes = as_integer(classes, "classes", 1)
        channels = self.channels = as_integer(channels, "channels", 1)
        token_grid(image_size, 1)
        self.settings, self.dtype = settings, compute_dtype(dtype)
        how: dict[str, Any] = {"rngs": rngs, "dtype": self.dtype}
        self.stem = NormalizedConvolution(channels, settings.channels[0], 3, 1, **how)
        blocks, inputs = [], settings.channels[0]
        for stage, (outputs, count) in enumerate(
            zip(settings.channels, settings.blocks, strict=True)
        ):
            for block in range(count):
                stride = 2 if stage and not block else 1
                blocks.append(BasicBlock(inputs, outputs, stride, **how))
                inputs = outputs
        self.blocks = nnx.List(blocks)
        wide = wide_dtype(dtype)
        self.classifier = linear(
            inputs, classes, rngs=rngs, dtype=wide, precision=product_precision(wide)
        )

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
        found = jax.nn.relu(self.stem(images.astype(self.dtype), training))
        for block in self.blocks:
            found = block(found, training)
        return self.classifier(found.astype(wide_dtype(self.dtype)).mean(axis=(1, 2)))
