"""What decides the architecture of a model: one class of settings for each kind.

`kind` names the class where the settings of a run are stored; it is no option, and plays no part
in comparisons.
"""

from dataclasses import field
from typing import Annotated, Literal

from pydantic import Field
from tyro.conf import Suppress

from convattn.lab.settings import (
    LARGEST_SIDE,
    LARGEST_WIDTH,
    MOST_LAYERS,
    Layers,
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
Mixing = Literal["attention", "convolution"]
Border = Literal["zero", "mean"]
Variance = Annotated[float, Field(ge=0, le=1e6)]
Heads = Annotated[int, Field(ge=0, le=LARGEST_WIDTH)]
Epsilon = Annotated[float, Field(ge=1e-12, le=1)]


@settings
class EncoderSettings:
    """The self-attention models of C20 (§4, appendices B and E)."""

    kind: Annotated[Literal["encoder"], Suppress] = field(
        default="encoder", kw_only=True, compare=False
    )

    encoding: Encoding = "quadratic"
    """Isotropic Gaussians, general Gaussians, learned tables, or learned tables and content."""

    heads: Annotated[tuple[Heads, ...], Field(min_length=1, max_length=MOST_LAYERS)] = (9,) * 6
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

    kind: Annotated[Literal["resnet"], Suppress] = field(
        default="resnet", kw_only=True, compare=False
    )

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

    kind: Annotated[Literal["self-attentive-resnet"], Suppress] = field(
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


@settings
class VisionTransformerSettings:
    """Layers of tokens mixed by attention or by a convolution of the image that they make up.

    The defaults are L21's CMHSA in the self-attention phase; `mixing="convolution"` is its
    convolution phase.
    """

    kind: Annotated[Literal["vision-transformer"], Suppress] = field(
        default="vision-transformer", kw_only=True, compare=False
    )

    mixing: Mixing = "attention"
    """What mixes the tokens of a layer: attention, or a convolution of the unpatchified image."""

    depth: Layers = 6
    """Layers."""

    width: Width = 768
    """Features of a token."""

    inner: Width = 3072
    """Features inside the feed-forward part."""

    patch_size: Side = 16
    """P: side of the squares of pixels that become one token."""

    projection: Literal["learned", "identity"] = "identity"
    """Of a patch to a token; the identity needs a width of P² times the channels."""

    kernel_size: Odd = 3
    """K of the convolutions, which the attention phase does not have."""

    border: Border = "zero"
    """What a convolution reads outside the image: zeros, or in every pixel of a patch that is not
    there that pixel of the mean of all patches, which is what attention without a ring sees."""

    heads: Width = 9
    """Of a layer of attention."""

    head_width: Width | None = None
    """Features of a head's queries, keys and values; the width if not given, as in L21."""

    position: Literal["relative", "absolute", "rotary"] = "relative"
    """A bias for each head and shift of patches, a vector added to each token (ViT), or queries and
    keys turned by angles of the row and of the column (RoPE)."""

    rotary_base: Annotated[float, Field(gt=1, le=1e9)] = 100.0
    """Of rotary positions: pair j of a quarter of a head's features turns by base^(-4j/d) radians a
    token on its axis."""

    ring: Annotated[int, Field(ge=0, le=LARGEST_SIDE)] = 0
    """Zero tokens laid around the grid in attention, without which no border is zero-padded."""

    pooling: Literal["mean", "class"] = "mean"
    """What the classifier sees: the mean of all tokens, or a class token of its own (ViT)."""

    dropout: Rate = 0.0
    """Probability with which a feature is dropped: of a sublayer's result, inside the feed-forward
    part, and of the tokens that the first layer is given (ViT)."""

    attention_dropout: Rate = 0.0
    """Probability with which an attention weight is dropped."""

    stochastic_depth: Rate = 0.1
    """Probability with which an image skips a sublayer of the last layer; it rises linearly over
    the layers, from 0 in the first (DeiT)."""

    norm_epsilon: Epsilon = 1e-6
    """Added to the variance inside LayerNorm."""

    def __post_init__(self) -> None:
        if self.pooling == "class" and (self.mixing == "convolution" or self.ring):
            raise ValueError(
                f"pooling='class' with mixing={self.mixing!r} and ring={self.ring}, but a class "
                "token has no place in an image; take pooling='mean'"
            )
        if self.mixing == "convolution" and self.width % self.patch_size**2:
            raise ValueError(
                f"width={self.width} with mixing='convolution' and patch_size={self.patch_size}, "
                f"but expected a multiple of the {self.patch_size**2} pixels of a patch, so that "
                "the tokens make up an image"
            )
        if self.pooling == "class" and self.position == "relative":
            raise ValueError(
                "pooling='class' with position='relative', but a class token has no shift to the "
                "others; take position='absolute', or pooling='mean'"
            )
        if self.position == "rotary" and (
            self.pooling == "class" or self.ring or self.attention_dropout or self.key_width % 4
        ):
            raise ValueError(
                f"position='rotary' with pooling={self.pooling!r}, ring={self.ring}, "
                f"attention_dropout={self.attention_dropout} and {self.key_width} features of a "
                "head, but expected 'mean', 0, 0 and a multiple of four"
            )

    @property
    def key_width(self) -> int:
        """Features of a head's queries, keys and values.

        >>> VisionTransformerSettings(width=48, patch_size=4).key_width
        48
        """
        return self.width if self.head_width is None else self.head_width


VisionModelSettings = (
    EncoderSettings | ResNetSettings | SelfAttentiveResNetSettings | VisionTransformerSettings
)


@settings
class LanguageModelSettings:
    """Layers of causal MSAC, or of causal convolutions, and feed-forward parts (B19 §5)."""

    operator: Mixing = "attention"
    """What mixes the positions: self-attentive convolutions, or ordinary ones."""

    scales: Sides = (1, 2, 3)
    """Widths of the filters; 1 alone is ordinary causal self-attention."""

    width: Width = 64
    """Features of a position."""

    depth: Layers = 2
    """Layers."""

    heads: Width = 2
    """Of each scale."""

    key_features: Width = 16
    """Of a head's queries and keys."""

    inner: Width = 128
    """Features inside the feed-forward part."""

    dropout: Rate = 0.0
    """Probability with which a feature of a sublayer's result is dropped."""

    norm_epsilon: Epsilon = 1e-6
    """Added to the variance inside LayerNorm."""


@settings
class SimilaritySettings:
    """Two images through one stem, layers of MSAC, and the cosine of their means (B19 §6.1)."""

    attention: Literal["cross", "own"] = "cross"
    """The patches of both images attend to those of both, or each image's to its own alone."""

    segments: Literal["add", "concatenate", "none"] = "add"
    """x^seg and z^seg, added or concatenated before the first layer of MSAC; or none."""

    segment_features: Width = 4
    """Channels of segments that are concatenated."""

    gap: Annotated[int, Field(ge=0, le=LARGEST_SIDE)] | None = None
    """Zero columns between the images; by default the fewest that keep the filters from mixing."""

    channels: Annotated[int, Field(ge=1, le=LARGEST_WIDTH, multiple_of=2)] = 24
    """Of the layers; half of it after the first convolution of the stem."""

    depth: Layers = 2
    """Layers of MSAC."""

    scales: Sides = (1, 3)
    """Sides of the square filters."""

    heads: Width = 2
    """Of each scale."""

    key_features: Width = 8
    """Of a head's queries and keys."""

    def __post_init__(self) -> None:
        if self.attention == "own" and self.segments != "none":
            raise ValueError(
                f"segments={self.segments!r} with attention='own', but expected 'none': segments "
                "tell the patches of two images apart, and here each image is by itself"
            )


def _same_stages(channels: tuple[int, ...], blocks: tuple[int, ...]) -> None:
    if sum(blocks) > MOST_LAYERS:
        raise ValueError(f"blocks={blocks}, but expected at most {MOST_LAYERS} in all")
    if len(channels) != len(blocks):
        raise ValueError(
            f"channels={channels} and blocks={blocks}, but expected as many of the one as of the "
            "other: one for each stage"
        )
