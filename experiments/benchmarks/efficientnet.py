"""EfficientNet-B0 in Flax, to be timed: Tan and Le 2019, table 1."""

from functools import partial

import jax
from flax import nnx
from jax import Array

# Expansion, channels, layers, stride and kernel size of each stage.
STAGES = (
    (1, 16, 1, 1, 3),
    (6, 24, 2, 2, 3),
    (6, 40, 2, 2, 5),
    (6, 80, 3, 2, 3),
    (6, 112, 3, 1, 5),
    (6, 192, 4, 2, 5),
    (6, 320, 1, 1, 3),
)


class Normalized(nnx.Module):
    """A convolution without bias, and batch norm."""

    def __init__(
        self, inputs: int, outputs: int, size: int, *, stride: int = 1, groups: int, rngs: nnx.Rngs
    ) -> None:
        self.convolution = nnx.Conv(
            inputs,
            outputs,
            (size, size),
            strides=stride,
            feature_group_count=groups,
            use_bias=False,
            rngs=rngs,
        )
        self.norm = nnx.BatchNorm(outputs, rngs=rngs)

    def __call__(self, images: Array) -> Array:
        """Both."""
        return self.norm(self.convolution(images))


class InvertedResidual(nnx.Module):
    """Expansion, depthwise convolution, squeeze and excitation, projection."""

    def __init__(
        self, inputs: int, outputs: int, expansion: int, stride: int, size: int, rngs: nnx.Rngs
    ) -> None:
        width = inputs * expansion
        make = partial(Normalized, rngs=rngs)
        self.expand = make(inputs, width, 1, groups=1) if expansion > 1 else None
        self.depthwise = make(width, width, size, stride=stride, groups=width)
        self.squeeze = nnx.Conv(width, inputs // 4, (1, 1), rngs=rngs)
        self.excite = nnx.Conv(inputs // 4, width, (1, 1), rngs=rngs)
        self.project = make(width, outputs, 1, groups=1)

    def __call__(self, images: Array) -> Array:
        """With the images added where the shape stays."""
        wide = images if self.expand is None else nnx.silu(self.expand(images))
        wide = nnx.silu(self.depthwise(wide))
        mean = wide.mean((1, 2), keepdims=True)
        wide = wide * jax.nn.sigmoid(self.excite(nnx.silu(self.squeeze(mean))))
        result = self.project(wide)
        return images + result if images.shape == result.shape else result


class EfficientNetB0(nnx.Module):
    """For 1000 classes."""

    def __init__(self, *, rngs: nnx.Rngs) -> None:
        self.stem = Normalized(3, 32, 3, stride=2, groups=1, rngs=rngs)
        blocks, inputs = [], 32
        for expansion, outputs, layers, stride, size in STAGES:
            for number in range(layers):
                step = 1 if number else stride
                blocks.append(InvertedResidual(inputs, outputs, expansion, step, size, rngs))
                inputs = outputs
        self.blocks = nnx.List(blocks)
        self.last = Normalized(inputs, 1280, 1, groups=1, rngs=rngs)
        self.classes = nnx.Linear(1280, 1000, rngs=rngs)

    def __call__(self, images: Array) -> Array:
        """Logits of images `[batch, height, width, 3]`."""
        images = nnx.silu(self.stem(images))
        for block in self.blocks:
            images = block(images)
        return self.classes(nnx.silu(self.last(images)).mean((1, 2)))
