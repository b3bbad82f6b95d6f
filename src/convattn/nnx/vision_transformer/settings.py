"""What decides the architecture of a vision transformer."""

from dataclasses import field
from typing import Annotated, Literal

from pydantic import Field

from convattn.settings import MAX_SIDE, Layers, Odd, Rate, Side, Width, settings

Mixing = Literal["attention", "convolution"]
Border = Literal["zero", "mean"]
Epsilon = Annotated[float, Field(ge=1e-12, le=1)]


@settings
class VisionTransformerSettings:
    """Layers of tokens mixed by attention or by a convolution of the image that they make up.

    The defaults are L21's CMHSA in the self-attention phase; `mixing="convolution"` is its
    convolution phase.
    """

    kind: Literal["vision-transformer"] = field(
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

    ring: Annotated[int, Field(ge=0, le=MAX_SIDE)] = 0
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
