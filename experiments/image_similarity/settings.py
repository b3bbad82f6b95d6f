"""All that decides a run of `experiments/similarity.py`: model, pairs and training."""

from dataclasses import field
from typing import Annotated, Literal

import tyro
from pydantic import Field

from convattn.settings import (
    MAX_SIDE,
    MAX_WIDTH,
    Count,
    Layers,
    Natural,
    Rate,
    Sides,
    Width,
    settings,
)
from convattn_lab.training.settings import TrainingSettings

RECIPE = TrainingSettings(
    epochs=8,
    batch_size=50,
    optimizer="adamw",
    learning_rate=2e-3,
    weight_decay=0.05,
)


@settings
class SimilaritySettings:
    """Two images through one stem, layers of MSAC, and the cosine of their means (B19 §6.1)."""

    attention: Literal["cross", "own"] = "cross"
    """The patches of both images attend to those of both, or each image's to its own alone."""

    segments: Literal["add", "concatenate", "none"] = "add"
    """x^seg and z^seg, added or concatenated before the first layer of MSAC; or none."""

    segment_features: Width = 4
    """Channels of segments that are concatenated."""

    gap: Annotated[int, Field(ge=0, le=MAX_SIDE)] | None = None
    """Zero columns between the images; by default the fewest that keep the filters from mixing."""

    channels: Annotated[int, Field(ge=1, le=MAX_WIDTH, multiple_of=2)] = 24
    """Of the layers; half of it after the first convolution of the stem."""

    depth: Layers = 2
    """Layers of MSAC."""

    scales: Sides = (1, 3)
    """Sides of the square filters."""

    heads: Width = 2
    """Of each scale."""

    key_features: Width = 8
    """Of a head's queries and keys."""

    def __post_init__(self) -> None:
        if self.attention == "own" and self.segments != "none":
            raise ValueError(
                f"segments={self.segments!r} with attention='own', but expected 'none': segments "
                "tell the patches of two images apart, and here each image is by itself"
            )


@settings
class PairSettings:
    """Which images are paired, and how they are augmented."""

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
    """The fraction of the training images that is split off for validation pairs, by class."""
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
