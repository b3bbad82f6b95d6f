"""What decides the architecture of C20's self-attention encoder."""

from dataclasses import dataclass
from typing import Any, Literal

from convattn.lab.models.settings.reading import hold, read_count, read_counts, read_number

Encoding = Literal["quadratic", "gaussian", "learned", "content"]
LEAST_EPSILON, MOST = 1e-20, 1e6  # LayerNorm's gradient holds epsilon to the power -3/2
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
    """Probability with which an attention weight is dropped.

    That of the authors' code is 0.1. It is 0 here because the fast back ends, the separable one
    first, never form the weights: a rate above 0 leaves the dense and the chunked one."""

    norm_epsilon: float = 1e-12
    """Added to the variance inside LayerNorm; at least 1e-20, so that its gradient is finite."""

    center_variance: float = 2.0
    """Of each coordinate of a head's first centre, as printed; the authors' has 4."""

    spread_variance: float = 0.01
    """Of what is added to I for a head's first Σ^(-1/2), as printed; the authors' has 0.0001."""

    def __post_init__(self) -> None:
        """Refuse what is no architecture.

        Raises:
            ValueError: With what was expected.

        >>> EncoderSettings(heads=())
        Traceback (most recent call last):
        ValueError: heads=(), but expected one integer ≥ 0 for each layer, such as (9, 9, 9, 9, 9, \
9) for six layers of nine heads
        """
        if self.encoding not in ENCODINGS:
            raise ValueError(
                f"encoding={self.encoding!r}, but expected one of {', '.join(ENCODINGS)}"
            )
        layers = ", such as (9, 9, 9, 9, 9, 9) for six layers of nine heads"
        held: dict[str, Any] = {"heads": read_counts(self.heads, "heads", 0, "layer" + layers)}
        for name in ("width", "inner", "downsampling"):
            held[name] = read_count(getattr(self, name), name)
        if self.encoding == "content" and held["width"] % 2:
            raise ValueError(
                f"width={self.width}, but expected an even number: with content half of a query's "
                "features meets the row shifts and half the column shifts"
            )
        for name in ("dropout", "attention_dropout"):
            held[name] = read_number(getattr(self, name))
            if not 0 <= held[name] < 1:
                raise ValueError(
                    f"{name}={getattr(self, name)!r}, but expected a probability in [0, 1); 0 "
                    "drops nothing"
                )
        for name in ("norm_epsilon", "center_variance", "spread_variance"):
            held[name] = read_number(getattr(self, name))
            least = LEAST_EPSILON if name == "norm_epsilon" else 0
            if not least <= held[name] <= MOST:
                raise ValueError(
                    f"{name}={getattr(self, name)!r}, but expected a number from {least} to "
                    f"{MOST:.0e}, so that scores, norms and gradients are finite in float32"
                )
        hold(self, held)

    @property
    def depth(self) -> int:
        """The number of layers.

        >>> EncoderSettings().depth, EncoderSettings(heads=(3, 2)).depth
        (6, 2)
        """
        return len(self.heads)
