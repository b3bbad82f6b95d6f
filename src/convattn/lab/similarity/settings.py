"""All that decides a run of `experiments/similarity.py`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from convattn.lab.models.settings import SimilaritySettings
from convattn.lab.settings import Count, Natural, Rate, settings
from convattn.lab.training.settings import TrainingSettings

RECIPE = TrainingSettings(
    epochs=8,
    batch_size=50,
    optimizer="adamw",
    learning_rate=2e-3,
    weight_decay=0.05,
)


@settings
class PairSettings:
    """Which images are paired, and how they are varied."""

    source: str | None = None
    """An archive of CIFAR or image folders; the bundled slice of CIFAR-10 if not given."""
    rounds: Count = 4
    """In how many training pairs each training image is."""
    test_rounds: Count = 1
    """The same of test images; with 1 the results of the test pairs are independent."""
    crop: Natural = 4
    """Training images are padded by so many pixels and cropped at random, each by itself."""
    flip: bool = True
    """Half of the training images are mirrored, each by itself."""
    validation: Rate = 0.0
    """The share of the training images that is split off for validation pairs, by class."""
    limit: Count | None = None
    """Take only the first so many training images and test images."""


@settings
class SimilarityRunSettings:
    """All that decides a run."""

    model: Annotated[SimilaritySettings, tyro.conf.arg(name="")] = field(
        default_factory=SimilaritySettings
    )
    pairs: PairSettings = field(default_factory=PairSettings)
    training: TrainingSettings = RECIPE

    def __post_init__(self) -> None:
        if self.training.select == "best" and not self.pairs.validation:
            raise ValueError(
                "--training.select best chooses by validation pairs, and none are split off; give "
                "--pairs.validation 0.1, or select last"
            )


@dataclass(frozen=True)
class Arguments:
    """Train a network that says whether two images show the same class (Barkan, section 6.1).

    Without arguments: with cross attention, on pairs of the bundled slice of CIFAR-10, in a few
    minutes on two cores. `--attention own --segments none` lets each image attend to itself alone.
    Repeating a command with its --output-dir goes on with the run.
    """

    settings: Annotated[SimilarityRunSettings, tyro.conf.arg(name="")] = field(
        default_factory=SimilarityRunSettings
    )
    output_dir: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """The folder of the run; default: runs/similarity-DATE-TIME."""
