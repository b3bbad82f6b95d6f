"""The images of a run, split and measured, the model as its seed draws it, and their record."""

import hashlib
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from flax import nnx

from convattn.data.datasets import Dataset
from convattn_lab.data.augmentation.settings import Augmentation
from convattn_lab.data.split import validation_split
from convattn_lab.data.statistics import channel_statistics
from convattn_lab.models.build import build_model
from convattn_lab.runs.settings import ImageSettings, RunSettings
from convattn_lab.training.images import TrainingImages

# Added to the seed, so that the fraction is drawn independently of the validation set.
FRACTIONS = 2**63


def training_images(dataset: Dataset, settings: RunSettings) -> TrainingImages:
    """The images of a run, split, with the statistics of those that are trained on.

    The validation images of a seed are the same whatever fraction of the others is trained on, and
    a smaller fraction is part of a larger one.

    Raises:
        ValueError: For a fraction or a validation set that leaves a class without images.
    """
    options: ImageSettings = settings.images
    train, validation, seed = dataset.train, None, settings.training.seed
    if options.validation:
        train, validation = validation_split(train, options.validation, seed=seed)
    if options.share < 1:
        try:
            _, train = validation_split(train, options.share, seed=seed + FRACTIONS)
        except ValueError as error:
            raise ValueError(
                f"share={options.share}, but a fraction is taken of each class: {error}"
            ) from error
    mean, std = channel_statistics(train)
    augmentation = augmentation_of(options)
    return TrainingImages(train, dataset.test, mean, std, validation, augmentation, options.resize)


def augmentation_of(options: ImageSettings) -> Augmentation | None:
    """How the training images of a run are augmented; None if they are not.

    >>> augmentation_of(ImageSettings(crop=0, flip=False)) is None
    True
    """
    named = {name: getattr(options, name) for name in Augmentation.__dataclass_fields__}
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


def image_metadata(
    dataset: Dataset, images: TrainingImages, settings: RunSettings
) -> dict[str, Any]:
    """What a run was made on."""
    return {
        "name": dataset.name,
        "note": dataset.note,
        "size": list(image_size_of(dataset, settings)),
        "classes": len(dataset.train.class_names),
        "train": len(images.train),
        "validation": 0 if images.validation is None else len(images.validation),
        "test": len(images.test),
        "mean": np.asarray(images.mean).tolist(),
        "std": np.asarray(images.std).tolist(),
        "sha256": digest_of(dataset),
        "archive_md5": archive_md5(settings.images.source),
    }


def archive_md5(source: str | None) -> str | None:
    """MD5, by which CIFAR's publisher names its archives, of the one that was read.

    Returns:
        Hexadecimal digits; None for a folder and for the bundled slice.

    >>> archive_md5(None) is None
    True
    """
    if source is None or not Path(source).is_file():
        return None
    with Path(source).open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def digest_of(dataset: Dataset) -> str:
    """SHA-256 of all pixels and labels, training images first.

    >>> from convattn.data.datasets import read_dataset
    >>> digest_of(read_dataset())[:16]
    'f9aa71f92bdecb1f'
    """
    digest = hashlib.sha256()
    for images in (dataset.train, dataset.test):
        digest.update(np.ascontiguousarray(images.images).data)
        digest.update(np.ascontiguousarray(images.labels).data)
    return digest.hexdigest()
