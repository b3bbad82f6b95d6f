"""What decides the architecture of a residual network of self-attentive convolutions."""

from dataclasses import dataclass
from typing import Any, Literal

from convattn.lab.models.settings.reading import hold, read_count, read_counts, read_number

Operator = Literal["convolution", "sac", "msac"]
OPERATORS = ("convolution", "sac", "msac")
MOST = 100.0  # of a bias


@dataclass(frozen=True)
class SelfAttentiveResNetSettings:
    """A small ResNet whose K × K convolutions are SAC, MSAC, or what they are (B19 §§3, 4, 6).

    A strided convolution as the stem, then stages that each halve the sides. The stem and the 1 × 1
    shortcuts are convolutions under every operator.
    """

    operator: Operator = "sac"
    """What stands in the blocks: a convolution, SAC, or MSAC."""

    channels: tuple[int, ...] = (16, 32)
    """Channels of each stage; every stage halves the sides."""

    blocks: tuple[int, ...] = (2, 1)
    """Basic blocks of each stage, two operators each."""

    stem_stride: int = 2
    """By how much the stem makes the sides smaller; attention costs their fourth power."""

    kernel_size: int = 3
    """K of convolutions and of SAC; odd."""

    scales: tuple[int, ...] = (1, 3)
    """Sides of the square filters of MSAC."""

    heads: int = 2
    """C of each SAC; of MSAC in each scale."""

    key_features: int = 8
    """d_a of a head."""

    center_bias: float = 0.0
    """b_00 of every head at first; the other entries of its table begin at 0."""

    ordinary: bool = False
    """An ordinary convolution beside each SAC, merged by a 1 × 1 convolution (H_R)."""

    fine_keys: bool = False
    """Under a stride, keys on every pixel; otherwise on the coarse grid of the queries."""

    def __post_init__(self) -> None:
        """Refuse what is no architecture.

        Raises:
            ValueError: With what was expected.

        >>> SelfAttentiveResNetSettings(operator="attention")
        Traceback (most recent call last):
        ValueError: operator='attention', but expected one of convolution, sac, msac
        """
        if self.operator not in OPERATORS:
            raise ValueError(
                f"operator={self.operator!r}, but expected one of {', '.join(OPERATORS)}"
            )
        held: dict[str, Any] = {
            name: read_counts(getattr(self, name), name, 1, "stage")
            for name in ("channels", "blocks")
        }
        held["scales"] = read_counts(self.scales, "scales", 1, "scale, such as (1, 3)")
        for name in ("stem_stride", "kernel_size", "heads", "key_features"):
            held[name] = read_count(getattr(self, name), name)
        if held["kernel_size"] % 2 == 0:
            raise ValueError(
                f"kernel_size={self.kernel_size}, but expected an odd number: an even filter has "
                "no centre, so its block would shift the image"
            )
        if len(held["channels"]) != len(held["blocks"]):
            raise ValueError(
                f"channels={self.channels} and blocks={self.blocks}, but expected as many of the "
                "one as of the other: one for each stage"
            )
        held["center_bias"] = read_number(self.center_bias)
        if not abs(held["center_bias"]) <= MOST:
            raise ValueError(
                f"center_bias={self.center_bias!r}, but expected a number from -{MOST:.0f} to "
                f"{MOST:.0f}; at 20 a head attends to nothing but its own place"
            )
        hold(self, held)
