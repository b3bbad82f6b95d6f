"""What a run is made from: its images, split and measured, and its model as the seed draws it."""

import jax.numpy as jnp
from flax import nnx

from convattn.data.batches import Augmentation
from convattn.data.datasets import Dataset
from convattn.data.split import validation_split
from convattn.data.statistics import channel_statistics
from convattn.models.build import build_model
from convattn.runs.settings import ImageSettings, RunSettings
from convattn.training.images import TrainingImages


def training_images(dataset: Dataset, settings: RunSettings) -> TrainingImages:
    """The images of a run, split, with the statistics of those that are trained on."""
    given: ImageSettings = settings.images
    train, validation = dataset.train, None
    if given.validation:
        train, validation = validation_split(train, given.validation, seed=settings.training.seed)
    mean, std = channel_statistics(train)
    varied = Augmentation(given.crop, given.flip) if given.crop or given.flip else None
    return TrainingImages(train, dataset.test, mean, std, validation, varied)


def make_model(settings: RunSettings, dataset: Dataset) -> nnx.Module:
    """The model of a run, with the parameters that its seed draws."""
    return build_model(
        settings.model,
        classes=len(dataset.train.class_names),
        image_size=image_size_of(dataset),
        rngs=nnx.Rngs(settings.training.seed),
        dtype=jnp.dtype(settings.training.compute_dtype),
    )


def image_size_of(dataset: Dataset) -> tuple[int, int]:
    """(height, width) of the images."""
    _, height, width, _ = dataset.train.images.shape
    return height, width
