"""`RunSettings`: all that decides a run; what a file of experiments/configs/ holds."""

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

import tyro

from convattn.lab.models.settings import (
    EncoderSettings,
    ResNetSettings,
    SelfAttentiveResNetSettings,
    VisionTransformerSettings,
    hold,
    read_number,
)
from convattn.lab.training.settings import TrainingSettings
from convattn.operators.integers import as_integer


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
    share: float = 1.0
    """The share of the other training images that is trained on, by class; 1 for all."""
    resize: int | None = None
    """The side in pixels to which all pictures are brought, for training and evaluation."""
    rand_augment: float = 0.0
    """RandAugment's mean magnitude, up to 10, of two operations; 0 for none, in DeiT 9."""
    mixup: float = 0.0
    """α of Mixup; 0 for none, in DeiT 0.8."""
    cutmix: float = 0.0
    """α of CutMix; 0 for none, in DeiT 1. With both, each batch has one of them."""
    erasing: float = 0.0
    """The probability that a box of a training picture is noise; 0 for none, in DeiT 0.25."""

    BEFORE: ClassVar[dict[str, Any]] = {
        **{"share": 1.0, "resize": None},
        **{"rand_augment": 0.0, "mixup": 0.0, "cutmix": 0.0, "erasing": 0.0},
    }
    """What was done before there were these fields, and so what their absence in a run's
    `config.json` says; not their defaults, should these ever change."""

    def __post_init__(self) -> None:
        """Refuse values out of their ranges.

        Raises:
            ValueError: For a value out of its range.

        >>> ImageSettings(crop=-1)
        Traceback (most recent call last):
        ValueError: crop=-1, but expected pixels, 0 or more
        """
        held: dict[str, Any] = {}
        for name, least in (("crop", 0), ("resize", 1)):
            value = getattr(self, name)
            if value is None and name == "resize":
                continue
            try:
                held[name] = as_integer(value, name, least)
            except ValueError as error:
                or_none = ", or None" if name == "resize" else ""
                raise ValueError(
                    f"{name}={value!r}, but expected pixels, {least} or more{or_none}"
                ) from error
        if not isinstance(self.flip, bool):
            raise ValueError(f"flip={self.flip!r}, but expected True or False; half are mirrored")
        if self.classes not in ("fine", "coarse"):
            raise ValueError(f"classes={self.classes!r}, but expected one of fine, coarse")
        for name in ("validation", "share", "rand_augment", "mixup", "cutmix", "erasing"):
            held[name] = read_number(getattr(self, name))
        if not 0 <= held["validation"] < 1:
            raise ValueError(f"validation={self.validation!r}, but expected a share, 0 ≤ share < 1")
        if not 0 < held["share"] <= 1:
            raise ValueError(f"share={self.share!r}, but expected a share, 0 < share ≤ 1")
        for name, largest in (("rand_augment", 10), ("mixup", 1000), ("cutmix", 1000)):
            if not 0 <= held[name] <= largest:
                raise ValueError(
                    f"{name}={getattr(self, name)!r}, but expected 0 to {largest}; 0 for none"
                )
        if not 0 <= held["erasing"] <= 1:
            raise ValueError(f"erasing={self.erasing!r}, but expected a probability, 0 to 1")
        hold(self, held)


@dataclass(frozen=True)
class RunSettings:
    """All that decides a run."""

    model: Annotated[
        EncoderSettings | ResNetSettings | SelfAttentiveResNetSettings | VisionTransformerSettings,
        tyro.conf.AvoidSubcommands,
    ] = field(default_factory=EncoderSettings)
    images: ImageSettings = field(default_factory=ImageSettings)
    training: TrainingSettings = field(default_factory=TrainingSettings)
