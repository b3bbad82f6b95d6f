"""What decides the architecture of a model: one class of settings for each kind.

`kind` names the class where the settings of a run are stored; it has one value for each class, and
plays no part in comparisons.
"""

from dataclasses import field
from typing import Annotated, Literal

from pydantic import Field

from convattn.nnx.vision_transformer.settings import VisionTransformerSettings
from convattn.settings import (
    MAX_LAYERS,
    MAX_WIDTH,
    Odd,
    Rate,
    Side,
    Sides,
    Stages,
    Width,
    Widths,
    settings,
)

Encoding = Literal["quadratic", "gaussian", "learned", "content"]
Operator = Literal["convolution", "sac", "msac"]
Variance = Annotated[float, Field(ge=0, le=1e6)]
Heads = Annotated[int, Field(ge=0, le=MAX_WIDTH)]


@settings
class EncoderSettings:
    """The self-attention models of C20 (§4, appendices B and E)."""

    kind: Literal["encoder"] = field(default="encoder", kw_only=True, compare=False)

    encoding: Encoding = "quadratic"
    """Isotropic Gaussians, general Gaussians, learned tables, or learned tables and content."""

    heads: Annotated[tuple[Heads, ...], Field(min_length=1, max_length=MAX_LAYERS)] = (9,) * 6
    """Heads of each layer, so that there are as many layers; 0 leaves a layer its bias alone."""

    width: Width = 400
    """Features of a token."""

    inner: Width = 512
    """Features inside the feed-forward part."""

    downsampling: Side = 2
    """Side of the squares of pixels that become one token."""

    dropout: Rate = 0.1
    """Probability with which a feature of a sublayer's result is dropped."""

    attention_dropout: Rate = 0.0
    """Probability with which an attention weight is dropped.

    That of the authors' code is 0.1. It is 0 here because the fast back ends, the separable one
    first, never form the weights: a rate above 0 leaves the dense and the chunked one."""

    norm_epsilon: Annotated[float, Field(ge=1e-20, le=1e6)] = 1e-12
    """Added to the variance inside LayerNorm; at least 1e-20, so that its gradient is finite."""

    center_variance: Variance = 2.0
    """Of each coordinate of a head's first centre, as printed; the authors' has 4."""

    spread_variance: Variance = 0.01
    """Of what is added to I for a head's first Σ^(-1/2), as printed; the authors' has 0.0001."""

    def __post_init__(self) -> None:
        if self.encoding == "content" and self.width % 2:
            raise ValueError(
                f"width={self.width}, but expected an even number: with content half of a query's "
                "features meets the row shifts and half the column shifts"
            )

    @property
    def depth(self) -> int:
        """The number of layers.

        >>> EncoderSettings().depth, EncoderSettings(heads=(3, 2)).depth
        (6, 2)
        """
        return len(self.heads)


@settings
class ResNetSettings:
    """A ResNet of basic blocks for small images (He et al. 2016); by default ResNet18."""

    kind: Literal["resnet"] = field(default="resnet", kw_only=True, compare=False)

    channels: Widths = (64, 128, 256, 512)
    """Channels of each stage; every stage but the first halves the sides."""

    blocks: Stages = (2, 2, 2, 2)
    """Basic blocks of each stage."""

    def __post_init__(self) -> None:
        _same_stages(self.channels, self.blocks)


@settings
class SelfAttentiveResNetSettings:
    """A small ResNet whose K × K convolutions are SAC, MSAC, or what they are (B19 §§3, 4, 6).

    A strided convolution as the stem, then stages that each halve the sides. The stem and the 1 × 1
    shortcuts are convolutions under every operator.
    """

    kind: Literal["self-attentive-resnet"] = field(
        default="self-attentive-resnet", kw_only=True, compare=False
    )

    operator: Operator = "sac"
    """What stands in the blocks: a convolution, SAC, or MSAC."""

    channels: Widths = (16, 32)
    """Channels of each stage; every stage halves the sides."""

    blocks: Stages = (2, 1)
    """Basic blocks of each stage, two operators each."""

    stem_stride: Side = 2
    """By how much the stem makes the sides smaller; attention costs their fourth power."""

    kernel_size: Odd = 3
    """K of convolutions and of SAC; odd."""

    scales: Sides = (1, 3)
    """Sides of the square filters of MSAC."""

    heads: Width = 2
    """C of each SAC; of MSAC in each scale."""

    key_features: Width = 8
    """d_a of a head."""

    center_bias: Annotated[float, Field(ge=-100, le=100)] = 0.0
    """b_00 of every head at first; the other entries of its table begin at 0."""

    ordinary: bool = False
    """An ordinary convolution beside each SAC, merged by a 1 × 1 convolution (H_R)."""

    fine_keys: bool = False
    """Under a stride, keys on every pixel; otherwise on the coarse grid of the queries."""

    def __post_init__(self) -> None:
        _same_stages(self.channels, self.blocks)


VisionModelSettings = (
    EncoderSettings | ResNetSettings | SelfAttentiveResNetSettings | VisionTransformerSettings
)


def _same_stages(channels: tuple[int, ...], blocks: tuple[int, ...]) -> None:
    if sum(blocks) > MAX_LAYERS:
        raise ValueError(f"blocks={blocks}, but expected at most {MAX_LAYERS} in all")
    if len(channels) != len(blocks):
        raise ValueError(
            f"channels={channels} and blocks={blocks}, but expected as many of the one as of the "
            "other: one for each stage"
        )
