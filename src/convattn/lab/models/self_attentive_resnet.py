"""A ResNet whose convolutions are self-attentive (B19 §§3, 4, 6), beside the ordinary one.

**From the paper:** the operators, with the even bias b_(|i-r|, |j-t|), several heads joined by a
1 × 1 convolution, the ordinary convolution beside them, and the scales; and that they replace the
convolutions of a ResNet, strided ones included. **Not from the paper**, which gives no network: the
architecture, batch normalisation after each operator (as in a ResNet), the convolution that is the
stem, what the bias begins as. Attention weights number the fourth power of the side, so the stem's
stride comes first, and operators stand on the coarser grids only.
"""

from dataclasses import replace
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
from convattn.lab.models.resnet import NormalizedConvolution
from convattn.lab.models.settings import SelfAttentiveResNetSettings
from convattn.operators.integers import as_integer
from convattn.sac.from_convolution import sac_from_convolution
from convattn.sac.modules import (
    MultiscaleSelfAttentiveConvolution,
    MultiscaleSelfAttentiveLayer,
    SelfAttentiveConvolution,
    SelfAttentiveLayer,
)

Pictures = Float[Array, "batch height width channels"]


class NormalizedSelfAttention(nnx.Module):
    """A SAC or MSAC and its BatchNorm, as `NormalizedConvolution` is of a convolution.

    The operator's products and sums run in at least float32, whatever the compute dtype.
    """

    def __init__(
        self,
        operator: SelfAttentiveLayer | MultiscaleSelfAttentiveLayer,
        norm: nnx.BatchNorm,
    ) -> None:
        self.operator, self.norm = operator, norm

    def __call__(self, images: Pictures, training: bool) -> Pictures:
        """Normalised by the batch in training, else by the running statistics."""
        found = self.operator(images).astype(images.dtype)
        return self.norm(found, use_running_average=not training).astype(found.dtype)


def normalized_operator(
    settings: SelfAttentiveResNetSettings,
    inputs: int,
    outputs: int,
    stride: int,
    size: tuple[int, int],
    *,
    rngs: nnx.Rngs,
    dtype: DTypeLike,
) -> NormalizedConvolution | NormalizedSelfAttention:
    """What stands in a block in place of a convolution.

    Args:
        size: (height, width) of its images; the bias table is as large as the grid of the keys.
    """
    if settings.operator == "convolution":
        return NormalizedConvolution(
            inputs, outputs, settings.kernel_size, stride, rngs=rngs, dtype=dtype
        )
    key_stride = 1 if settings.fine_keys else stride
    given: dict[str, Any] = {
        "heads": settings.heads,
        "key_features": settings.key_features,
        "image_size": tuple(-(-side // key_stride) for side in size),
        "ordinary": settings.ordinary,
        "stride": stride,
        "key_stride": key_stride,
        "rngs": rngs,
    }
    operator: SelfAttentiveLayer | MultiscaleSelfAttentiveLayer
    if settings.operator == "sac":
        operator = SelfAttentiveConvolution(inputs, outputs, settings.kernel_size, **given)
    else:
        operator = MultiscaleSelfAttentiveConvolution(inputs, outputs, settings.scales, **given)
    for scale in [operator] if isinstance(operator, SelfAttentiveLayer) else operator.scales:
        scale.position[...] = scale.position[...].at[:, 0, 0].set(settings.center_bias)
    norm = nnx.BatchNorm(outputs, momentum=0.9, epsilon=1e-5, dtype=wide_dtype(dtype), rngs=rngs)
    return NormalizedSelfAttention(operator, norm)


class SelfAttentiveBlock(nnx.Module):
    """Two operators, and what they are added to: the images, or their 1 × 1 convolution where the
    shape changes."""

    def __init__(
        self,
        settings: SelfAttentiveResNetSettings,
        inputs: int,
        outputs: int,
        stride: int,
        size: tuple[int, int],
        *,
        rngs: nnx.Rngs,
        dtype: DTypeLike,
    ) -> None:
        how: dict[str, Any] = {"rngs": rngs, "dtype": dtype}
        height, width = (-(-side // stride) for side in size)
        self.stride = stride
        self.first = normalized_operator(settings, inputs, outputs, stride, size, **how)
        self.second = normalized_operator(settings, outputs, outputs, 1, (height, width), **how)
        same = inputs == outputs and stride == 1
        self.shortcut = None if same else NormalizedConvolution(inputs, outputs, 1, stride, **how)

    def __call__(self, images: Pictures, training: bool) -> Pictures:
        """relu(second(relu(first(images))) + shortcut(images))."""
        found = self.second(jax.nn.relu(self.first(images, training)), training)
        kept = images if self.shortcut is None else self.shortcut(images, training)
        return jax.nn.relu(found + kept)


class SelfAttentiveResNet(nnx.Module):
    """Images to the scores of their classes.

    A K × K stem, stages of blocks, the mean of all pixels, and a linear classifier.

    Args:
        classes, channels: Of the images.
        image_size: (height, width) at most; beyond the bias tables the bias is 0.
        dtype: In which it computes; the operators in at least float32.

    Raises:
        ValueError: For sizes that do not fit.

    Source: B19 §§3, 4, 6; He et al. 2016.

    >>> settings = SelfAttentiveResNetSettings("msac", channels=(4, 6), blocks=(1, 1))
    >>> model = SelfAttentiveResNet(settings, classes=10, image_size=(16, 16), rngs=nnx.Rngs(0))
    >>> model(jnp.ones((2, 16, 16, 3))).shape
    (2, 10)
    """

    def __init__(
        self,
        settings: SelfAttentiveResNetSettings,
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
        inputs, stride = settings.channels[0], settings.stem_stride
        self.stem = NormalizedConvolution(channels, inputs, settings.kernel_size, stride, **how)
        blocks = []
        for outputs, count in zip(settings.channels, settings.blocks, strict=True):
            for block in range(count):
                size = (-(-size[0] // stride), -(-size[1] // stride))
                stride = 1 if block else 2
                blocks.append(SelfAttentiveBlock(settings, inputs, outputs, stride, size, **how))
                inputs = outputs
        self.blocks = nnx.List(blocks)
        wide = wide_dtype(dtype)
        self.classifier = linear(
            inputs, classes, rngs=rngs, dtype=wide, precision=product_precision(wide)
        )

    def __call__(
        self,
        images: Pictures,
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


def with_self_attention(
    model: SelfAttentiveResNet, *, exact: bool = True, leak: float = 0.5, logit: float | None = None
) -> SelfAttentiveResNet:
    """The network of convolutions with SAC in place of those in its blocks, and the same logits.

    Each convolution becomes `sac_from_convolution` of its kernel: two heads at a finite b_00, or,
    where not `exact`, one head at b_00 = M, which tends to it as M → ∞.

    Args:
        model: With `operator="convolution"`; it is left as it is.
        exact, leak, logit: As `sac_from_convolution` takes them.

    Raises:
        ValueError: For a network of SAC.

    Source: B19 §3, and `convattn.sac.from_convolution`.

    >>> settings = SelfAttentiveResNetSettings("convolution", channels=(4,), blocks=(1,))
    >>> model = SelfAttentiveResNet(settings, classes=10, image_size=(16, 16), rngs=nnx.Rngs(0))
    >>> with_self_attention(model).blocks[0].first.operator.parameters.heads
    2
    """
    if model.settings.operator != "convolution":
        raise ValueError(
            f"operator={model.settings.operator!r}, but expected a network of convolutions, whose "
            "kernels make the SAC"
        )
    result = nnx.clone(model)
    result.settings = replace(model.settings, operator="sac", heads=2 if exact else 1)
    for block in result.blocks:
        for name, stride in (("first", block.stride), ("second", 1)):
            part = getattr(block, name)
            kernel = part.convolution.kernel[...]
            parameters = sac_from_convolution(
                kernel, exact=exact, leak=leak, logit=logit, stride=stride
            )
            setattr(block, name, NormalizedSelfAttention(SelfAttentiveLayer(parameters), part.norm))
    return result
