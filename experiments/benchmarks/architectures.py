"""Networks that are timed: the forward pass in evaluation, on images `[batch, height, width, 3]`.

What stands between the layers with weights is as in torchvision and timm.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax.numpy as jnp
from flax import nnx
from jax import Array

from benchmarks.efficientnet import EfficientNetB0

BatchNorm = partial(nnx.BatchNorm, use_running_average=True, epsilon=1e-5)
LayerNorm = partial(nnx.LayerNorm, epsilon=1e-6)


def conv(
    in_channels: int,
    out_channels: int,
    size: int,
    stride: int = 1,
    *,
    rngs: nnx.Rngs,
    **options: Any,
) -> nnx.Conv:
    """A convolution padded by half its size, without bias."""
    options = {"padding": size // 2, "use_bias": False, **options}
    return nnx.Conv(in_channels, out_channels, (size, size), stride, rngs=rngs, **options)


class Identity(nnx.Module):
    """Where dropout stands in training, and a batch norm that is folded."""

    def __call__(self, features: Array) -> Array:
        """The features."""
        return features


class ResidualBlock(nnx.Module):
    """Two 3 × 3 convolutions, or 1 × 1, 3 × 3 and 1 × 1 with four times the width (He et al. 2016).

    The stride is that of the 3 × 3 convolution.
    """

    def __init__(
        self, in_channels: int, width: int, stride: int, bottleneck: bool, rngs: nnx.Rngs
    ) -> None:
        out_channels = 4 * width if bottleneck else width
        sizes = ((1, 1), (3, stride), (1, 1)) if bottleneck else ((3, stride), (3, 1))
        widths = (
            [in_channels, width, width, out_channels]
            if bottleneck
            else [in_channels, width, out_channels]
        )
        self.layers = len(sizes)
        for number, (size, step) in enumerate(sizes, start=1):
            layer = conv(widths[number - 1], widths[number], size, step, rngs=rngs)
            setattr(self, f"conv{number}", layer)
            setattr(self, f"bn{number}", BatchNorm(widths[number], rngs=rngs))
        self.downsample: Any = nnx.List([])
        if stride > 1 or in_channels != out_channels:
            self.downsample.append(conv(in_channels, out_channels, 1, stride, rngs=rngs))
            self.downsample.append(BatchNorm(out_channels, rngs=rngs))

    def __call__(self, images: Array) -> Array:
        """The block's output."""
        features = shortcut = images
        for number in range(1, self.layers + 1):
            features = getattr(self, f"bn{number}")(getattr(self, f"conv{number}")(features))
            features = features if number == self.layers else nnx.relu(features)
        for layer in self.downsample:
            shortcut = layer(shortcut)
        return nnx.relu(features + shortcut)


class ResNet(nnx.Module):
    """ResNet 18 to 152, as torchvision and timm name and build it (v1.5)."""

    def __init__(
        self, depths: Sequence[int], bottleneck: bool, classes: int = 1000, *, rngs: nnx.Rngs
    ) -> None:
        self.conv1 = conv(3, 64, 7, 2, rngs=rngs)
        self.bn1 = BatchNorm(64, rngs=rngs)
        in_channels = 64
        for stage, depth in enumerate(depths, start=1):
            width = 32 * 2**stage
            blocks: Any = nnx.List([])
            for index in range(depth):
                stride = 2 if stage > 1 and index == 0 else 1
                blocks.append(ResidualBlock(in_channels, width, stride, bottleneck, rngs))
                in_channels = 4 * width if bottleneck else width
            setattr(self, f"layer{stage}", blocks)
        self.fc = nnx.Linear(in_channels, classes, rngs=rngs)

    def __call__(self, images: Array) -> Array:
        """The logits."""
        features = nnx.relu(self.bn1(self.conv1(images)))
        features = nnx.max_pool(features, (3, 3), (2, 2), ((1, 1), (1, 1)))
        for stage in range(1, 5):
            for block in getattr(self, f"layer{stage}"):
                features = block(features)
        return self.fc(features.mean((1, 2)))


class InvertedResidual(nnx.Module):
    """1 × 1 to a larger width, 3 × 3 depthwise, 1 × 1 without activation (Sandler et al. 2018)."""

    def __init__(
        self, in_channels: int, out_channels: int, stride: int, expansion: int, rngs: nnx.Rngs
    ) -> None:
        width = in_channels * expansion
        self.conv: Any = nnx.List([])
        if expansion != 1:
            self.conv.append(conv_norm(in_channels, width, 1, rngs=rngs))
        depthwise = {"feature_group_count": width}
        self.conv.append(conv_norm(width, width, 3, stride, rngs=rngs, **depthwise))
        self.conv.append(conv(width, out_channels, 1, rngs=rngs))
        self.conv.append(BatchNorm(out_channels, rngs=rngs))
        self.residual = stride == 1 and in_channels == out_channels

    def __call__(self, images: Array) -> Array:
        """The block's output."""
        features = images
        *activated, last, norm = self.conv
        for pair in activated:
            features = nnx.relu6(pair[1](pair[0](features)))
        features = norm(last(features))
        return images + features if self.residual else features


class MobileNetV2(nnx.Module):
    """MobileNetV2 of width 1, as torchvision names it."""

    def __init__(self, classes: int = 1000, *, rngs: nnx.Rngs) -> None:
        self.features: Any = nnx.List([conv_norm(3, 32, 3, 2, rngs=rngs)])
        in_channels = 32
        for expansion, out_channels, count, stride in MOBILE_STAGES:
            for index in range(count):
                step = stride if index == 0 else 1
                self.features.append(
                    InvertedResidual(in_channels, out_channels, step, expansion, rngs)
                )
                in_channels = out_channels
        self.features.append(conv_norm(in_channels, 1280, 1, rngs=rngs))
        self.classifier: Any = nnx.List([Identity(), nnx.Linear(1280, classes, rngs=rngs)])

    def __call__(self, images: Array) -> Array:
        """The logits."""
        first, *blocks, last = self.features
        features = nnx.relu6(first[1](first[0](images)))
        for block in blocks:
            features = block(features)
        features = nnx.relu6(last[1](last[0](features)))
        return self.classifier[1](features.mean((1, 2)))


MOBILE_STAGES = (  # expansion, channels, blocks, stride of the first
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


class Mlp(nnx.Module):
    """Two linear maps with the exact GELU between them."""

    def __init__(self, width: int, rngs: nnx.Rngs) -> None:
        self.fc1 = nnx.Linear(width, 4 * width, rngs=rngs)
        self.fc2 = nnx.Linear(4 * width, width, rngs=rngs)

    def __call__(self, features: Array) -> Array:
        """Both."""
        return self.fc2(nnx.gelu(self.fc1(features), approximate=False))


class ConvNeXtBlock(nnx.Module):
    """7 × 7 depthwise, LayerNorm, MLP, scaled (Liu et al. 2022)."""

    def __init__(self, width: int, rngs: nnx.Rngs) -> None:
        depthwise = {"feature_group_count": width, "use_bias": True}
        self.conv_dw = conv(width, width, 7, rngs=rngs, **depthwise)
        self.norm = LayerNorm(width, rngs=rngs)
        self.mlp = Mlp(width, rngs)
        self.gamma = nnx.Param(jnp.full((width,), 1e-6))

    def __call__(self, images: Array) -> Array:
        """The block's output."""
        return images + self.gamma[...] * self.mlp(self.norm(self.conv_dw(images)))


class ConvNeXtStage(nnx.Module):
    """LayerNorm and a 2 × 2 convolution of stride 2, but for the first stage; then the blocks."""

    def __init__(self, in_channels: int, width: int, depth: int, rngs: nnx.Rngs) -> None:
        self.downsample: Any = nnx.List([])
        if in_channels != width:
            self.downsample.append(LayerNorm(in_channels, rngs=rngs))
            halving = conv(in_channels, width, 2, 2, padding="VALID", use_bias=True, rngs=rngs)
            self.downsample.append(halving)
        self.blocks = nnx.List([ConvNeXtBlock(width, rngs) for _ in range(depth)])

    def __call__(self, images: Array) -> Array:
        """The stage's output."""
        for layer in (*self.downsample, *self.blocks):
            images = layer(images)
        return images


class ConvNeXtHead(nnx.Module):
    """The mean, LayerNorm, a linear map."""

    def __init__(self, width: int, classes: int, rngs: nnx.Rngs) -> None:
        self.norm = LayerNorm(width, rngs=rngs)
        self.fc = nnx.Linear(width, classes, rngs=rngs)

    def __call__(self, images: Array) -> Array:
        """The logits."""
        return self.fc(self.norm(images.mean((1, 2))))


class ConvNeXt(nnx.Module):
    """ConvNeXt, as timm names it."""

    def __init__(
        self,
        depths: Sequence[int],
        widths: Sequence[int],
        classes: int = 1000,
        *,
        rngs: nnx.Rngs,
    ) -> None:
        patches = conv(3, widths[0], 4, 4, padding="VALID", use_bias=True, rngs=rngs)
        self.stem = nnx.List([patches, LayerNorm(widths[0], rngs=rngs)])
        before = (widths[0], *widths[:-1])
        sizes = zip(before, widths, depths, strict=True)
        self.stages = nnx.List([ConvNeXtStage(*stage, rngs) for stage in sizes])
        self.head = ConvNeXtHead(widths[-1], classes, rngs)

    def __call__(self, images: Array) -> Array:
        """The logits."""
        for layer in (*self.stem, *self.stages):
            images = layer(images)
        return self.head(images)


def conv_norm(*sizes: int, rngs: nnx.Rngs, **options: Any) -> nnx.List:
    """A convolution and its batch norm."""
    return nnx.List([conv(*sizes, rngs=rngs, **options), BatchNorm(sizes[1], rngs=rngs)])


ARCHITECTURES: dict[str, Callable[..., nnx.Module]] = {
    "resnet18": partial(ResNet, (2, 2, 2, 2), False),
    "resnet50": partial(ResNet, (3, 4, 6, 3), True),
    "mobilenet_v2": MobileNetV2,
    "convnext_tiny": partial(ConvNeXt, (3, 3, 9, 3), (96, 192, 384, 768)),
    "efficientnet_b0": EfficientNetB0,
}
