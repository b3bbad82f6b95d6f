"""Tiny models and images for the tests of the trainer, and a run of them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from convattn.data.cifar10_slice import Images
from convattn.nnx.layers.dropout import drop
from convattn_lab.data.augmentation.settings import Augmentation
from convattn_lab.data.batches import DeviceImages
from convattn_lab.training.devices import data_mesh, place, spread
from convattn_lab.training.images import TrainingImages
from convattn_lab.training.optimizer import make_optimizer
from convattn_lab.training.settings import TrainingSettings
from convattn_lab.training.state import TrainState, initial_state
from convattn_lab.training.step import Recipe
from convattn_lab.training.trainer import Outcome, train

CLASSES, SIDE = 3, 4


class Dense(nnx.Module):
    """Dropout and a linear map of all pixels."""

    def __init__(self, seed: int = 0, dropout: float = 0.25, dtype: Any = jnp.float32) -> None:
        self.dropout = dropout
        given = {"param_dtype": dtype, "dtype": dtype, "precision": "highest"}
        self.dense = nnx.Linear(3 * SIDE**2, CLASSES, rngs=nnx.Rngs(seed), **given)

    def __call__(self, images, *, training=False, dropout_key=None):
        flat = images.reshape(len(images), -1).astype(self.dense.dtype)
        return self.dense(drop(flat, self.dropout, dropout_key if training else None))


class Normalized(nnx.Module):
    """BatchNorm of all pixels, dropout, and a linear map."""

    def __init__(self, seed: int = 0, dropout: float = 0.25, dtype: Any = jnp.float32) -> None:
        rngs = nnx.Rngs(seed)
        given = {"param_dtype": dtype, "dtype": dtype}
        self.norm = nnx.BatchNorm(3 * SIDE**2, rngs=rngs, **given)
        # Its running statistics are float32 whatever is asked for.
        self.norm.mean[...] = self.norm.mean[...].astype(dtype)
        self.norm.var[...] = self.norm.var[...].astype(dtype)
        self.last = Dense(seed, dropout, dtype)

    def __call__(self, images, *, training=False, dropout_key=None):
        flat = images.reshape(len(images), -1).astype(self.norm.dtype)
        found = self.norm(flat, use_running_average=not training)
        return self.last(found, training=training, dropout_key=dropout_key)


class Convolved(nnx.Module):
    """A convolution before the linear map."""

    def __init__(self, seed: int = 0) -> None:
        rngs = nnx.Rngs(seed)
        self.convolution = nnx.Conv(3, 3, (3, 3), precision="highest", rngs=rngs)
        self.last = Dense(seed)

    def __call__(self, images, *, training=False, dropout_key=None):
        found = jax.nn.relu(self.convolution(images))
        return self.last(found, training=training, dropout_key=dropout_key)


def pictures(count: int, seed: int = 0) -> Images:
    """Noise whose brightness tells the class."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, CLASSES, count)
    light = rng.integers(0, 160, (count, SIDE, SIDE, 3)) + 40 * labels[:, None, None, None]
    return Images(light.astype(np.uint8), labels.astype(np.uint8), tuple("abc"))


def training_images(count: int = 70, **changes: Any) -> TrainingImages:
    """Of `count` images the training part, with 12 to test on."""
    mean, std = np.full(3, 0.5), np.full(3, 0.25)
    given = TrainingImages(
        pictures(count), pictures(12, 1), mean, std, augmentation=Augmentation(1, True)
    )
    return replace(given, **changes)


def settings(**changes: Any) -> TrainingSettings:
    """Three epochs of four steps on one device, checkpointed at every step."""
    given = {
        "epochs": 3,
        "batch_size": 16,
        "devices": 1,
        "checkpoint_minutes": 0.0,
        "steps_per_call": 1,
        "learning_rate": 0.05,
    }
    return TrainingSettings(**{**given, **changes})


def parts(
    model: nnx.Module, given: TrainingSettings, images: TrainingImages | None = None
) -> tuple[Recipe, Any, TrainState, DeviceImages, int]:
    """Recipe, mesh, fresh state on it, images on it, and the steps of an epoch."""
    images = images or training_images()
    mesh = data_mesh(given.batch_size, given.devices)
    steps = len(images.train) // given.batch_size
    optimizer = make_optimizer(given, given.epochs * steps)
    structure, state = initial_state(model, optimizer, given.seed)
    recipe = Recipe(structure, optimizer, given, images, spread(mesh))
    data = place(images.arrays(images.train), mesh)
    return recipe, mesh, placed(state, mesh), data, steps


def placed(state: TrainState, mesh: Any) -> TrainState:
    """A copy of a state, on the devices of a mesh."""
    return place(jax.tree.map(np.array, state), mesh)


def run(folder: Path, given: TrainingSettings | None = None, **options: Any) -> Outcome:
    """Train a tiny model in a folder."""
    model = options.pop("model", None) or Normalized()
    images = options.pop("images", None) or training_images()
    return train(given or settings(), images, model, folder, **options)
