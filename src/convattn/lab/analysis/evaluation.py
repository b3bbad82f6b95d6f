"""The test accuracy of a model, computed as the trainer does."""

import optax
from flax import nnx

from convattn.lab.training.devices import data_mesh, spread
from convattn.lab.training.images import TrainingImages, on_devices
from convattn.lab.training.program import compile_evaluation
from convattn.lab.training.settings import TrainingSettings
from convattn.lab.training.state import initial_state
from convattn.lab.training.step import Recipe

BATCH = 500


def test_accuracy(model: nnx.Module, images: TrainingImages, settings: TrainingSettings) -> float:
    """The share of the test images that the model classifies correctly.

    Args:
        images: With the statistics that they are normalised by.
        settings: Of the training; only its dtype matters.
    """
    mesh = data_mesh(BATCH, 1)
    optimizer = optax.identity()
    structure, state = initial_state(model, optimizer, settings.seed)
    recipe = Recipe(structure, optimizer, settings, images, spread(mesh))
    batch = min(BATCH, len(images.test))
    _, accuracy = compile_evaluation(recipe, mesh, batch)(state, on_devices(images.test, mesh))
    return accuracy
