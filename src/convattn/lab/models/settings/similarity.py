"""What decides the architecture of a network that compares two images."""

from dataclasses import dataclass
from typing import Any, Literal

from convattn.lab.models.settings.reading import hold, read_count, read_counts

Reach = Literal["cross", "own"]
Segments = Literal["add", "concatenate", "none"]
REACHES = ("cross", "own")
SEGMENTS = ("add", "concatenate", "none")


@dataclass(frozen=True)
class SimilaritySettings:
    """Two images through one stem, layers of MSAC, and the cosine of their means (B19 §6.1)."""

    attention: Reach = "cross"
    """The patches of both images attend to those of both, or each image's to its own alone."""

    segments: Segments = "add"
    """x^seg and z^seg, added or concatenated before the first layer of MSAC; or none."""

    segment_features: int = 4
    """Channels of segments that are concatenated."""

    gap: int | None = None
    """Zero columns between the images; by default the fewest that keep the filters from mixing."""

    channels: int = 24
    """Of the layers; half of it after the first convolution of the stem."""

    depth: int = 2
    """Layers of MSAC."""

    scales: tuple[int, ...] = (1, 3)
    """Sides of the square filters."""

    heads: int = 2
    """Of each scale."""

    key_features: int = 8
    """Of a head's queries and keys."""

    def __post_init__(self) -> None:
        """Refuse what is no architecture.

        Raises:
            ValueError: With what was expected.

        >>> SimilaritySettings(attention="own", segments="add")
        Traceback (most recent call last):
        ValueError: segments='add' with attention='own', but expected 'none': segments tell the \
patches of two images apart, and here each image is by itself
        """
        for name, choices in (("attention", REACHES), ("segments", SEGMENTS)):
            if getattr(self, name) not in choices:
                raise ValueError(
                    f"{name}={getattr(self, name)!r}, but expected one of {', '.join(choices)}"
                )
        if self.attention == "own" and self.segments != "none":
            raise ValueError(
                f"segments={self.segments!r} with attention='own', but expected 'none': segments "
                "tell the patches of two images apart, and here each image is by itself"
            )
        held: dict[str, Any] = {
            "scales": read_counts(self.scales, "scales", 1, "scale, such as (1, 3)")
        }
        for name in ("segment_features", "channels", "depth", "heads", "key_features"):
            held[name] = read_count(getattr(self, name), name)
        if held["channels"] % 2:
            raise ValueError(f"channels={self.channels}, but expected an even number")
        if self.gap is not None and (isinstance(self.gap, bool) or self.gap < 0):
            raise ValueError(f"gap={self.gap!r}, but expected columns, 0 or more, or none given")
        hold(self, held)
