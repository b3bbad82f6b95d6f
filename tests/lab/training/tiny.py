"""Tiny models and images for the tests of the trainer, and a run of them."""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from comparison import assert_equal
from flax import nnx

from convattn.data.cifar10_slice import Images
from convattn.nnx.layers.dropout import dropout
from convattn_lab.data.augmentation.settings import Augmentation
from convattn_lab.data.batches import DeviceImages
from convattn_lab.training.devices import data_mesh, place, spread
from convattn_lab.training.images import TrainingImages
from convattn_lab.training.metrics import read_metrics
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
        options = {"param_dtype": dtype, "dtype": dtype, "precision": "highest"}
        self.dense = nnx.Linear(3 * SIDE**2, CLASSES, rngs=nnx.Rngs(seed), **options)

    def __call__(self, images, *, training=False, dropout_key=None):
        flat = images.reshape(len(images), -1).astype(self.dense.dtype)
        return self.dense(dropout(flat, self.dropout, dropout_key if training else None))


class Normalized(nnx.Module):
    """BatchNorm of all pixels, dropout, and a linear map."""

    def __init__(self, seed: int = 0, dropout: float = 0.25, dtype: Any = jnp.float32) -> None:
        rngs = nnx.Rngs(seed)
        self.norm = nnx.BatchNorm(3 * SIDE**2, rngs=rngs, param_dtype=dtype, dtype=dtype)
        # Its running statistics are float32 whatever is asked for.
        self.norm.mean[...] = self.norm.mean[...].astype(dtype)
        self.norm.var[...] = self.norm.var[...].astype(dtype)
        self.last = Dense(seed, dropout, dtype)

    def __call__(self, images, *, training=False, dropout_key=None):
        flat = images.reshape(len(images), -1).astype(self.norm.dtype)
        normal = self.norm(flat, use_running_average=not training)
        return self.last(normal, training=training, dropout_key=dropout_key)


class Convolved(nnx.Module):
    """A convolution before the linear map."""

    def __init__(self, seed: int = 0) -> None:
        rngs = nnx.Rngs(seed)
        self.convolution = nnx.Conv(3, 3, (3, 3), precision="highest", rngs=rngs)
        self.last = Dense(seed)

    def __call__(self, images, *, training=False, dropout_key=None):
        features = jax.nn.relu(self.convolution(images))
        return self.last(features, training=training, dropout_key=dropout_key)


def pictures(count: int, seed: int = 0) -> Images:
    """Noise whose brightness tells the class."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, CLASSES, count)
    light = rng.integers(0, 160, (count, SIDE, SIDE, 3)) + 40 * labels[:, None, None, None]
    return Images(light.astype(np.uint8), labels.astype(np.uint8), tuple("abc"))


def training_images(count: int = 70, **changes: Any) -> TrainingImages:
    """Of `count` images the training part, with 12 to test on."""
    statistics = np.full(3, 0.5), np.full(3, 0.25)
    splits = pictures(count), pictures(12, 1), *statistics
    return replace(TrainingImages(*splits, augmentation=Augmentation(1, True)), **changes)


def images_with_validation(**changes: Any) -> TrainingImages:
    return training_images(validation=pictures(24, 2), **changes)


def settings(**changes: Any) -> TrainingSettings:
    """Three epochs of four steps on one device, checkpointed at every step."""
    usual = {"epochs": 3, "batch_size": 16, "devices": 1, "learning_rate": 0.05}
    usual |= {"checkpoint_minutes": 0.0, "steps_per_call": 1}
    return TrainingSettings(**{**usual, **changes})


def set_up(
    model: nnx.Module, chosen: TrainingSettings, images: TrainingImages | None = None
) -> tuple[Recipe, Any, TrainState, DeviceImages, int]:
    """Recipe, mesh, fresh state on it, images on it, and the steps of an epoch."""
    images = images or training_images()
    mesh = data_mesh(chosen.batch_size, chosen.devices)
    steps = len(images.train) // chosen.batch_size
    optimizer = make_optimizer(chosen, chosen.epochs * steps)
    structure, state = initial_state(model, optimizer, chosen.seed)
    recipe = Recipe(structure, optimizer, chosen, images, spread(mesh))
    data = place(images.arrays(images.train), mesh)
    return recipe, mesh, placed(state, mesh), data, steps


def placed(state: TrainState, mesh: Any) -> TrainState:
    """A copy of a state, on the devices of a mesh."""
    return place(jax.tree.map(np.array, state), mesh)


def run(folder: Path, chosen: TrainingSettings | None = None, **options: Any) -> Outcome:
    """Train a tiny model in a folder."""
    model = options.pop("model", None) or Normalized()
    images = options.pop("images", None) or training_images()
    return train(chosen or settings(), images, model, folder, **options)


def assert_same_arrays(actual: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """The same names, and under each the same numbers."""
    assert actual.keys() == expected.keys()
    for name, array in actual.items():
        assert_equal(array, expected[name], name)


def metric_lines(folder: Path) -> list[dict[str, Any]]:
    """The metrics without times."""
    times = ("seconds", "images_per_second")
    return [
        {name: line[name] for name in line if name not in times} for line in read_metrics(folder)
    ]


def process_environment(**more: str) -> dict[str, str]:
    """For a Python process that imports the tests' modules and ours, with types as by default."""
    paths = [str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **more}
    environment.pop("JAX_ENABLE_X64", None)
    return environment
