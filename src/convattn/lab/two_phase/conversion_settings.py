"""What decides how a convolution is turned into attention between the two phases."""

import math
from dataclasses import dataclass
from typing import Any, Literal

from convattn.lab.models.settings import hold, read_number

Kind = Literal["limit", "exact"]
Content = Literal["key", "none"]
ConvertedBorder = Literal["kept", "mean"]
CHOICES = {"kind": ("limit", "exact"), "content": ("key", "none"), "border": ("kept", "mean")}


@dataclass(frozen=True)
class ConversionSettings:
    """How the attention phase begins."""

    kind: Kind = "limit"
    """L21's own, (2m + 1)² heads that are one-hot in the limit M → ∞; or S.finite's, one head more
    and exact at any leak."""

    logit: float = 40.0
    """M > 0 of the limit: a head's bias at its shift. 40 is L21's; ignored if exact."""

    leak: float = 0.5
    """ε in (0, 1) of the exact one: the share of each head that attends uniformly; rounding
    grows like 1/(1 - ε). Ignored in the limit."""

    content: Content = "key"
    """W_Q = 0 and W_K drawn, so that W_Q learns from the first step; or both zero, as in L21's
    proof, where neither ever learns. The function is the same."""

    border: ConvertedBorder = "kept"
    """What the convolution has outside its images: zero tokens laid around the grid if it has
    zeros. Or, without them, the mean of all tokens whatever the convolution had (L21)."""

    def __post_init__(self) -> None:
        """Refuse what is no conversion.

        Raises:
            ValueError: With what was expected.

        >>> ConversionSettings(leak=1.0)
        Traceback (most recent call last):
        ValueError: leak=1.0, but expected a share in (0, 1); 1 leaves attention uniform, and for \
0 take kind='limit'
        """
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                raise ValueError(
                    f"{name}={getattr(self, name)!r}, but expected one of {', '.join(choices)}"
                )
        held: dict[str, Any] = {name: read_number(getattr(self, name)) for name in NUMBERS}
        if not (0 < held["logit"] < math.inf):
            raise ValueError(
                f"logit={self.logit!r}, but expected M > 0, and finite; 0 leaves attention uniform"
            )
        if not 0 < held["leak"] < 1:
            raise ValueError(
                f"leak={self.leak!r}, but expected a share in (0, 1); 1 leaves attention uniform, "
                "and for 0 take kind='limit'"
            )
        hold(self, held)

    def total_variation(self, number_of_keys: int) -> float:
        """How far a converted head is from what the convolution reads: (N - 1)/(e^M + N - 1).

        The exact kind leaks as much, and takes it back: 0.

        Args:
            number_of_keys: N, the ring included.

        Source: L21 eq. 10; S.saturation of this project's ledger.

        >>> round(ConversionSettings(logit=10.0).total_variation(256), 4)
        0.0114
        """
        if self.kind == "exact":
            return 0.0
        others = (number_of_keys - 1) * math.exp(-self.logit)
        return others / (1 + others)


NUMBERS = ("logit", "leak")
