"""What decides the architecture of a model: the self-attention encoder of C20, and ResNet18."""

from dataclasses import dataclass
from typing import Literal

Encoding = Literal["quadratic", "gaussian", "learned", "content"]
ENCODINGS = ("quadratic", "gaussian", "learned", "content")


@dataclass(frozen=True)
class EncoderSettings:
    """The self-attention models of C20 (§4, appendices B and E)."""

    encoding: Encoding = "quadratic"
    """Isotropic Gaussians, general Gaussians, learned tables, or learned tables and content."""

    heads: tuple[int, ...] = (9,) * 6
    """Heads of each layer, so that there are as many layers; 0 leaves a layer its bias alone."""

    width: int = 400
    """Features of a token."""

    inner: int = 512
    """Features inside the feed-forward part."""

    downsampling: int = 2
    """Side of the squares of pixels that become one token."""

    dropout: float = 0.1
    """Probability with which a feature of a sublayer's result is dropped."""

    attention_dropout: float = 0.0
    """Probability with which an attention weight is dropped."""

    norm_epsilon: float = 1e-12
    """Added to the variance inside LayerNorm."""

    center_variance: float = 2.0
    """Of each coordinate of a head's first centre, as printed; the authors' has 4."""

    spread_variance: float = 0.01
    """Of what is added to I for a head's first Σ^(-1/2), as printed; the authors' has 0.0001."""

    def __post_init__(self) -> None:
        """Refuse what is no architecture.

        **Raises:** `ValueError` with what was expected.

        >>> EncoderSettings(heads=())
        Traceback (most recent call last):
        ValueError: heads=(), but expected one integer ≥ 0 for each layer, such as (9, 9, 9, 9, 9, \
9) for six layers of nine heads
        """
        if self.encoding not in ENCODINGS:
            raise ValueError(
                f"encoding={self.encoding!r}, but expected one of {', '.join(ENCODINGS)}"
            )
        if not self.heads or any(not is_count(count, 0) for count in self.heads):
            raise ValueError(
                f"heads={self.heads!r}, but expected one integer ≥ 0 for each layer, such as "
                "(9, 9, 9, 9, 9, 9) for six layers of nine heads"
            )
        object.__setattr__(self, "heads", tuple(self.heads))
        for name in ("width", "inner", "downsampling"):
            require_count(getattr(self, name), name)
        if self.encoding == "content" and self.width % 2:
            raise ValueError(
                f"width={self.width}, but expected an even number: with content half of a query's "
                "features meets the row shifts and half the column shifts"
            )
        for name in ("dropout", "attention_dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(
                    f"{name}={getattr(self, name)!r}, but expected a probability in [0, 1); 0 "
                    "drops nothing"
                )
        for name in ("norm_epsilon", "center_variance", "spread_variance"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise ValueError(
                    f"{name}={getattr(self, name)!r}, but expected a finite number ≥ 0"
                )

    @property
    def depth(self) -> int:
        """The number of layers.

        >>> EncoderSettings().depth, EncoderSettings(heads=(3, 2)).depth
        (6, 2)
        """
        return len(self.heads)


@dataclass(frozen=True)
class ResNetSettings:
    """A ResNet of basic blocks for small images (He et al. 2016); by default ResNet18."""

    channels: tuple[int, ...] = (64, 128, 256, 512)
    """Channels of each stage; every stage but the first halves the sides."""

    blocks: tuple[int, ...] = (2, 2, 2, 2)
    """Basic blocks of each stage."""

    def __post_init__(self) -> None:
        """Refuse what is no architecture.

        **Raises:** `ValueError` with what was expected.

        >>> ResNetSettings(blocks=(2, 0))
        Traceback (most recent call last):
        ValueError: blocks=(2, 0), but expected one integer ≥ 1 for each stage
        """
        for name in ("channels", "blocks"):
            counts = getattr(self, name)
            if not counts or any(not is_count(count, 1) for count in counts):
                raise ValueError(f"{name}={counts!r}, but expected one integer ≥ 1 for each stage")
            object.__setattr__(self, name, tuple(counts))
        if len(self.channels) != len(self.blocks):
            raise ValueError(
                f"channels={self.channels} and blocks={self.blocks}, but expected as many of the "
                "one as of the other: one for each stage"
            )


def is_count(value: object, least: int) -> bool:
    """Whether a value is an integer, and not a truth value, of at least so much.

    >>> is_count(0, 0), is_count(True, 0), is_count(2.0, 1)
    (True, False, False)
    """
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def require_count(value: object, name: str) -> None:
    """Refuse what is no integer ≥ 1.

    **Raises:** `ValueError`.
    """
    if not is_count(value, 1):
        raise ValueError(f"{name}={value!r}, but expected an integer ≥ 1")
