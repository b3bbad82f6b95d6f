"""What decides the architecture of a causal language model of bytes."""

from dataclasses import dataclass
from typing import Any, Literal

from convattn.lab.models.settings.reading import hold, read_count, read_counts, read_number

TokenMixing = Literal["attention", "convolution"]
MIXINGS = ("attention", "convolution")


@dataclass(frozen=True)
class LanguageModelSettings:
    """Layers of causal MSAC, or of causal convolutions, and feed-forward parts (B19 §5)."""

    operator: TokenMixing = "attention"
    """What mixes the positions: self-attentive convolutions, or ordinary ones."""

    scales: tuple[int, ...] = (1, 2, 3)
    """Widths of the filters; 1 alone is ordinary causal self-attention."""

    width: int = 64
    """Features of a position."""

    depth: int = 2
    """Layers."""

    heads: int = 2
    """Of each scale."""

    key_features: int = 16
    """Of a head's queries and keys."""

    inner: int = 128
    """Features inside the feed-forward part."""

    dropout: float = 0.0
    """Probability with which a feature of a sublayer's result is dropped."""

    norm_epsilon: float = 1e-6
    """Added to the variance inside LayerNorm."""

    def __post_init__(self) -> None:
        """Refuse what is no architecture.

        Raises:
            ValueError: With what was expected.

        >>> LanguageModelSettings(scales=())
        Traceback (most recent call last):
        ValueError: scales=(), but expected one integer ≥ 1 for each scale, such as 1 2 3
        """
        if self.operator not in MIXINGS:
            raise ValueError(
                f"operator={self.operator!r}, but expected one of {', '.join(MIXINGS)}"
            )
        held: dict[str, Any] = {
            "scales": read_counts(self.scales, "scales", 1, "scale, such as 1 2 3"),
            "dropout": read_number(self.dropout),
            "norm_epsilon": read_number(self.norm_epsilon),
        }
        for name in ("width", "depth", "heads", "key_features", "inner"):
            held[name] = read_count(getattr(self, name), name)
        if not 0 <= held["dropout"] < 1:
            raise ValueError(f"dropout={self.dropout!r}, but expected a probability in [0, 1)")
        if not 1e-12 <= held["norm_epsilon"] <= 1:
            raise ValueError(
                f"norm_epsilon={self.norm_epsilon!r}, but expected a number from 1e-12 to 1"
            )
        hold(self, held)
