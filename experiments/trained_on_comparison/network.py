"""The convolutional network that is compiled, and how it is trained."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax import Array
from jaxtyping import Float

from convattn_lab.training.images import TrainingImages
from convattn_lab.training.settings import TrainingSettings
from convattn_lab.training.trainer import Outcome, train

CHANNELS, PATCH, CONVOLUTIONS, KERNEL_SIZE = 12, 4, 2, 3
EPOCHS = {1_600: 60, 4_000: 30}  # by training images; 60 for other numbers
LEARNING_RATE = 0.01


class SmallCNN(nnx.Module):
    """A convolution of patches of 4 × 4 pixels, two of 3 × 3, ReLU after each, mean, classifier.

    Args:
        classes: How many logits.
        rngs: Of the kernels.

    >>> network = SmallCNN(10, nnx.Rngs(0))
    >>> network(jnp.zeros((1, 32, 32, 3))).shape
    (1, 10)
    """

    def __init__(self, classes: int, rngs: nnx.Rngs) -> None:
        patches: Any = {"strides": PATCH, "padding": "VALID", "rngs": rngs}
        first = nnx.Conv(3, CHANNELS, (PATCH, PATCH), **patches)
        sides = (KERNEL_SIZE, KERNEL_SIZE)
        others = [nnx.Conv(CHANNELS, CHANNELS, sides, rngs=rngs) for _ in range(CONVOLUTIONS)]
        self.convolutions = nnx.List([first, *others])
        self.classifier = nnx.Linear(CHANNELS, classes, rngs=rngs)

    def __call__(
        self, images: Float[Array, "batch height width 3"], **training: Any
    ) -> Float[Array, "batch classes"]:
        """The logits; nothing is done otherwise in training."""
        for convolution in self.convolutions:
            images = jax.nn.relu(convolution(images))
        return self.classifier(jnp.mean(images, axis=(1, 2)))


def train_network(images: TrainingImages, seed: int, folder: Path) -> Outcome:
    """Train it in a folder, or go on there; `Outcome.model` is the network.

    The images are those that the vision transformer is trained on later, in the same augmentation.
    """
    epochs = EPOCHS.get(len(images.train), 60)
    settings = TrainingSettings(
        epochs=epochs,
        batch_size=min(100, len(images.train) // 4),
        optimizer="adamw",
        learning_rate=LEARNING_RATE,
        warmup=0.1,
        weight_decay=0.05,
        evaluate_every=epochs,
        seed=seed,
    )
    network = SmallCNN(len(images.train.class_names), nnx.Rngs(seed))
    return train(settings, images, network, folder)
