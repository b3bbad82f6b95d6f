"""What decides the architecture of a ResNet."""

from dataclasses import dataclass

from convattn.lab.models.settings.reading import hold, read_counts


@dataclass(frozen=True)
class ResNetSettings:
    """A ResNet of basic blocks for small images (He et al. 2016); by default ResNet18."""

    channels: tuple[int, ...] = (64, 128, 256, 512)
    """Channels of each stage; every stage but the first halves the sides."""

    blocks: tuple[int, ...] = (2, 2, 2, 2)
    """Basic blocks of each stage."""

    def __post_init__(self) -> None:
        """Refuse what is no architecture.

        Raises:
            ValueError: With what was expected.

        >>> ResNetSettings(blocks=(2, 0))
        Traceback (most recent call last):
        ValueError: blocks=(2, 0), but expected one integer ≥ 1 for each stage
        """
        names = ("channels", "blocks")
        hold(self, {name: read_counts(getattr(self, name), name, 1, "stage") for name in names})
        if len(self.channels) != len(self.blocks):
            raise ValueError(
                f"channels={self.channels} and blocks={self.blocks}, but expected as many of the "
                "one as of the other: one for each stage"
            )
