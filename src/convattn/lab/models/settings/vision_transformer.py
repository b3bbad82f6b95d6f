"""What decides the architecture of L21's networks, and of the ViT and DeiT beside them."""

from dataclasses import dataclass
from typing import Any, Literal

from convattn.lab.models.settings.reading import hold, read_count, read_number
from convattn.operators.integers import as_integer

Mixing = Literal["attention", "convolution"]
Projection = Literal["learned", "identity"]
Position = Literal["relative", "absolute"]
Pooling = Literal["mean", "class"]
Border = Literal["zero", "mean"]
CHOICES = {
    "mixing": ("attention", "convolution"),
    "projection": ("learned", "identity"),
    "position": ("relative", "absolute"),
    "pooling": ("mean", "class"),
    "border": ("zero", "mean"),
}


@dataclass(frozen=True)
class VisionTransformerSettings:
    """Layers of tokens mixed by attention or by a convolution of the image that they make up.

    The defaults are L21's CMHSA in the self-attention phase; `mixing="convolution"` is its
    convolution phase.
    """

    mixing: Mixing = "attention"
    """What mixes the tokens of a layer: attention, or a convolution of the unpatchified image."""

    depth: int = 6
    """Layers."""

    width: int = 768
    """Features of a token."""

    inner: int = 3072
    """Features inside the feed-forward part."""

    patch_size: int = 16
    """P: side of the squares of pixels that become one token."""

    projection: Projection = "identity"
    """Of a patch to a token; the identity needs a width of P² times the channels."""

    kernel_size: int = 3
    """K of the convolutions, which the attention phase does not have."""

    border: Border = "zero"
    """What a convolution reads outside the image: zeros, or in every pixel of a patch that is not
    there that pixel of the mean of all patches, which is what attention without a ring sees."""

    heads: int = 9
    """Of a layer of attention."""

    head_width: int | None = None
    """Features of a head's queries, keys and values; the width if not given, as in L21."""

    position: Position = "relative"
    """A bias for each head and shift of patches, or a vector added to each token (ViT)."""

    ring: int = 0
    """Zero tokens laid around the grid in attention, without which no border is zero-padded."""

    pooling: Pooling = "mean"
    """What the classifier sees: the mean of all tokens, or a class token of its own (ViT)."""

    dropout: float = 0.0
    """Probability with which a feature is dropped: of a sublayer's result, inside the feed-forward
    part, and of the tokens that the first layer is given (ViT)."""

    attention_dropout: float = 0.0
    """Probability with which an attention weight is dropped."""

    stochastic_depth: float = 0.1
    """Probability with which an image skips a sublayer of the last layer; it rises linearly over
    the layers, from 0 in the first (DeiT)."""

    norm_epsilon: float = 1e-6
    """Added to the variance inside LayerNorm."""

    def __post_init__(self) -> None:
        """Refuse what is no architecture.

        Raises:
            ValueError: With what was expected.

        >>> VisionTransformerSettings(kernel_size=4)
        Traceback (most recent call last):
        ValueError: kernel_size=4, but expected an odd number: an even kernel has no centre
        """
        held: dict[str, Any] = {}
        for name in ("depth", "width", "inner", "patch_size", "kernel_size", "heads"):
            held[name] = read_count(getattr(self, name), name)
        if held["kernel_size"] % 2 == 0:
            raise ValueError(
                f"kernel_size={self.kernel_size}, but expected an odd number: an even kernel has "
                "no centre"
            )
        if self.head_width is not None:
            held["head_width"] = read_count(self.head_width, "head_width")
        try:
            held["ring"] = as_integer(self.ring, "ring", 0)
        except ValueError as error:
            raise ValueError(f"ring={self.ring!r}, but expected tokens, 0 or more") from error
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                raise ValueError(
                    f"{name}={getattr(self, name)!r}, but expected one of {', '.join(choices)}"
                )
        for name in ("dropout", "attention_dropout", "stochastic_depth"):
            held[name] = read_number(getattr(self, name))
            if not 0 <= held[name] < 1:
                raise ValueError(
                    f"{name}={getattr(self, name)!r}, but expected a probability in [0, 1); 0 "
                    "drops nothing"
                )
        held["norm_epsilon"] = read_number(self.norm_epsilon)
        if not 1e-12 <= held["norm_epsilon"] <= 1:
            raise ValueError(
                f"norm_epsilon={self.norm_epsilon!r}, but expected a number from 1e-12 to 1"
            )
        if self.pooling == "class" and (self.mixing == "convolution" or self.ring):
            raise ValueError(
                f"pooling='class' with mixing={self.mixing!r} and ring={self.ring}, but a class "
                "token has no place in an image; take pooling='mean'"
            )
        if self.mixing == "convolution" and held["width"] % held["patch_size"] ** 2:
            raise ValueError(
                f"width={self.width} with mixing='convolution' and patch_size={self.patch_size}, "
                f"but expected a multiple of the {held['patch_size'] ** 2} pixels of a patch, so "
                "that the tokens make up an image"
            )
        if self.pooling == "class" and self.position == "relative":
            raise ValueError(
                "pooling='class' with position='relative', but a class token has no shift to the "
                "others; take position='absolute', or pooling='mean'"
            )
        hold(self, held)

    @property
    def key_width(self) -> int:
        """Features of a head's queries, keys and values.

        >>> VisionTransformerSettings(width=48, patch_size=4).key_width
        48
        """
        return self.width if self.head_width is None else self.head_width
