"""A ResNet whose convolutions are self-attentive (B19 §§3, 4, 6), beside the ordinary one.

**From the paper:** the operators, with the even bias b_(|i-r|, |j-t|), several heads joined by a
1 × 1 convolution, the ordinary convolution beside them, and the scales; and that they replace the
convolutions of a ResNet, strided ones included. **Not from the paper**, which gives no network: the
architecture, batch normalisation after each operator (as in a ResNet), the convolution that is the
stem, what the bias begins as. Attention weights number the fourth power of the side, so the stem's
stride comes first, and operators stand on the coarser grids only.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from flax import nnx
from jax import Array
from jax.typing import DTypeLike
from jaxtyping import Float

from convattn.nnx.layers.compute import batch_norm
from convattn.sac.from_convolution import sac_from_convolution
from convattn.sac.modules import (
    MultiscaleSelfAttentiveConvolution,
    MultiscaleSelfAttentiveLayer,
    SelfAttentiveConvolution,
    SelfAttentiveLayer,
)
from convattn_lab.models.resnet import (
    NormalizedConvolution,
    ResidualBlock,
    ResidualNetwork,
    block_shapes,
    shortcut,
)
from convattn_lab.models.settings import SelfAttentiveResNetSettings

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
        outputs = self.operator(images).astype(images.dtype)
        return self.norm(outputs, use_running_average=not training).astype(outputs.dtype)


def _normalized_operator(
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
    options: dict[str, Any] = {
        "heads": settings.heads,
        "key_features": settings.key_features,
        "image_size": strided_size(size, key_stride),
        "ordinary": settings.ordinary,
        "stride": stride,
        "key_stride": key_stride,
        "rngs": rngs,
    }
    operator: SelfAttentiveLayer | MultiscaleSelfAttentiveLayer
    if settings.operator == "sac":
        operator = SelfAttentiveConvolution(inputs, outputs, settings.kernel_size, **options)
    else:
        operator = MultiscaleSelfAttentiveConvolution(inputs, outputs, settings.scales, **options)
    for scale in [operator] if isinstance(operator, SelfAttentiveLayer) else operator.scales:
        position = scale.position[...].at[:, 0, 0].set(settings.center_bias)
        scale.position = nnx.Param(position)
    return NormalizedSelfAttention(operator, batch_norm(outputs, rngs=rngs, dtype=dtype))


class SelfAttentiveResNet(ResidualNetwork):
    """A residual network of SAC, MSAC or, for comparison, convolutions.

    Args:
        As for `ResidualNetwork`; `image_size` at most, as beyond the bias tables the bias is 0, and
        the operators compute in at least float32.

    Source: B19 §§3, 4, 6; He et al. 2016.

    >>> import jax.numpy as jnp
    >>> settings = SelfAttentiveResNetSettings("msac", channels=(4, 6), blocks=(1, 1))
    >>> model = SelfAttentiveResNet(settings, classes=10, image_size=(16, 16), rngs=nnx.Rngs(0))
    >>> model(jnp.ones((2, 16, 16, 3))).shape
    (2, 10)
    """

    @property
    def stem_shape(self) -> tuple[int, int]:  # type: ignore[override]
        """K, and by how much the stem makes the sides smaller."""
        return self.settings.kernel_size, self.settings.stem_stride

    def make_blocks(self, size: tuple[int, int], **how: Any) -> Sequence[ResidualBlock]:
        """Bias tables as large as the grids after the stem."""
        settings, blocks = self.settings, []
        size = strided_size(size, settings.stem_stride)
        for inputs, outputs, stride in block_shapes(settings):
            block_size = strided_size(size, stride)
            blocks.append(
                ResidualBlock(
                    _normalized_operator(settings, inputs, outputs, stride, size, **how),
                    _normalized_operator(settings, outputs, outputs, 1, block_size, **how),
                    shortcut(inputs, outputs, stride, **how),
                )
            )
            size = block_size
        return blocks


def strided_size(size: tuple[int, int], stride: int) -> tuple[int, int]:
    """⌈n/s⌉ on both axes."""
    return -(-size[0] // stride), -(-size[1] // stride)


def with_self_attention(
    model: SelfAttentiveResNet,
    *,
    form: str = "exact",
    uniform_weight: float = 0.5,
    sharpness: float | None = None,
) -> SelfAttentiveResNet:
    """The network of convolutions with SAC in place of those in its blocks, and the same logits.

    Each convolution becomes `sac_from_convolution` of its kernel: two heads at a finite b_00, or,
    in the limit form, one head at b_00 = M, which tends to it as M → ∞.

    Args:
        model: With `operator="convolution"`; it is left as it is.
        form, uniform_weight, sharpness: As `sac_from_convolution` takes them.

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
    result.settings = replace(model.settings, operator="sac", heads=2 if form == "exact" else 1)
    for block, (_, _, first_stride) in zip(
        result.blocks, block_shapes(model.settings), strict=True
    ):
        for name, stride in (("first", first_stride), ("second", 1)):
            layer = getattr(block, name)
            kernel = layer.convolution.kernel[...]
            parameters = sac_from_convolution(
                kernel,
                form=form,
                uniform_weight=uniform_weight,
                sharpness=sharpness,
                stride=stride,
            )
            setattr(
                block, name, NormalizedSelfAttention(SelfAttentiveLayer(parameters), layer.norm)
            )
    return result
