"""What a run is made from: its images, split and measured, and its model as the seed draws it."""

import jax.numpy as jnp
from flax import nnx

from convattn.lab.data.augmentation.settings import Augmentation
from convattn.lab.data.datasets import Dataset
from convattn.lab.data.split import validation_split
from convattn.lab.data.statistics import channel_statistics
from convattn.lab.models.build import build_model
from convattn.lab.runs.settings import ImageSettings, RunSettings
from convattn.lab.training.images import TrainingImages

FRACTIONS = (
    2**63
)  # added to the seed, so that the fraction is drawn independently of the validation set


def training_images(dataset: Dataset, settings: RunSettings) -> TrainingImages:
    """The images of a run, split, with the statistics of those that are trained on.

    The validation images of a seed are the same whatever fraction of the others is trained on, and
    a smaller fraction is part of a larger one.

    Raises:
        ValueError: For a fraction or a validation set that leaves a class without images.
    """
    given: ImageSettings = settings.images
    train, validation, seed = dataset.train, None, settings.training.seed
    if given.validation:
        train, validation = validation_split(train, given.validation, seed=seed)
    if given.share < 1:
        try:
            _, train = validation_split(train, given.share, seed=seed + FRACTIONS)
        except ValueError as error:
            raise ValueError(
                f"share={given.share}, but a fraction is taken of each class: {error}"
            ) from error
    mean, std = channel_statistics(train)
    augmentation = augmentation_of(given)
    return TrainingImages(train, dataset.test, mean, std, validation, augmentation, given.resize)


def augmentation_of(given: ImageSettings) -> Augmentation | None:
    """How the training images of a run are augmented; None if they are not.

    >>> augmentation_of(ImageSettings(crop=0, flip=False)) is None
    True
    """
    named = {name: getattr(given, name) for name in Augmentation.__dataclass_fields__}
    return Augmentation(**named) if any(named.values()) else None


def make_model(settings: RunSettings, dataset: Dataset) -> nnx.Module:
    """The model of a run, with the parameters that its seed draws."""
    return build_model(
        settings.model,
        classes=len(dataset.train.class_names),
        image_size=image_size_of(dataset, settings),
        rngs=nnx.Rngs(settings.training.seed),
        dtype=jnp.dtype(settings.training.compute_dtype),
    )


def image_size_of(dataset: Dataset, settings: RunSettings) -> tuple[int, int]:
    """(height, width) of the images as the model sees them."""
    side = settings.images.resize
    _, height, width, _ = dataset.train.images.shape
    return (height, width) if side is None else (side, side)
