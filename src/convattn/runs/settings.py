"""`RunSettings`: all that decides a run; what a file of experiments/configs/ holds."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

import tyro

from convattn.models.settings import EncoderSettings, ResNetSettings
from convattn.training.settings import TrainingSettings


@dataclass(frozen=True)
class ImageSettings:
    """Which images are trained on, and how they are varied."""

    source: str | None = None
    """What --data names; the bundled slice of CIFAR-10 if not given."""
    classes: Literal["fine", "coarse"] = "fine"
    """Of CIFAR-100: its 100 classes or its 20."""
    crop: int = 4
    """Training pictures are padded by so many pixels and cropped at random; 0 for none."""
    flip: bool = True
    """Half of the training pictures are mirrored."""
    validation: float = 0.0
    """The share of the training images that is split off for validation, by class."""

    def __post_init__(self) -> None:
        """Refuse values out of their ranges.

        **Raises:** `ValueError` for a value out of its range.

        >>> ImageSettings(crop=-1)
        Traceback (most recent call last):
        ValueError: crop=-1, but expected pixels, 0 or more
        """
        if self.crop < 0:
            raise ValueError(f"crop={self.crop}, but expected pixels, 0 or more")
        if not 0 <= self.validation < 1:
            raise ValueError(f"validation={self.validation}, but expected a share, 0 ≤ share < 1")


@dataclass(frozen=True)
class RunSettings:
    """All that decides a run."""

    model: Annotated[EncoderSettings | ResNetSettings, tyro.conf.AvoidSubcommands] = field(
        default_factory=EncoderSettings
    )
    images: ImageSettings = field(default_factory=ImageSettings)
    training: TrainingSettings = field(default_factory=TrainingSettings)
