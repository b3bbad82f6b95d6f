"""`RunSettings`: all that decides a run; what a file of experiments/configs/ holds."""

from dataclasses import field
from typing import Annotated, Any, Literal

import tyro
from pydantic import Field

from convattn.settings import Rate, Side, settings
from convattn_lab.data.augmentation.settings import Augmentation
from convattn_lab.models.settings import EncoderSettings, VisionModelSettings
from convattn_lab.settings import from_json
from convattn_lab.training.settings import TrainingSettings

# Fields that there were not at first, and whose defaults change nothing.
MIXED = ("share", "resize", "rand_augment", "mixup", "cutmix", "erasing")
LATER = (*(f"images.{name}" for name in MIXED), "model.rotary_base")


@settings
class ImageSettings(Augmentation):
    """Which images are trained on, and how they are augmented."""

    source: str | None = None
    """What --data names; the bundled slice of CIFAR-10 if not given."""
    classes: Literal["fine", "coarse"] = "fine"
    """Of CIFAR-100: its 100 classes or its 20."""
    validation: Rate = 0.0
    """The fraction of the training images that is split off for validation, by class."""
    share: Annotated[float, Field(gt=0, le=1)] = 1.0
    """The fraction of the other training images that is trained on, by class; 1 for all."""
    resize: Side | None = None
    """The side in pixels to which all pictures are brought, for training and evaluation."""


@settings
class RunSettings:
    """All that decides a run."""

    model: Annotated[
        VisionModelSettings, Field(discriminator="kind"), tyro.conf.AvoidSubcommands
    ] = field(default_factory=EncoderSettings)
    images: ImageSettings = field(default_factory=ImageSettings)
    training: TrainingSettings = field(default_factory=TrainingSettings)


def settings_from_json(stored: Any) -> RunSettings:
    """The settings of a `config.json`, also of one that was written before there were LATER.

    Raises:
        ValueError: As `from_json`.

    >>> from convattn_lab.settings import to_json
    >>> settings_from_json(to_json(RunSettings())) == RunSettings()
    True
    """
    return from_json(RunSettings, stored, later=LATER)
