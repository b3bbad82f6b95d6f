"""Which class a model gives each of some images, all of them, computed as the trainer evaluates."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import Array
from jaxtyping import Float, Int

from convattn.lab.training.devices import data_mesh, replicated
from convattn.lab.training.images import TrainingImages
from convattn.ledger.images.cifar10_slice import Images

BATCH = 100


@dataclass(frozen=True)
class Predictions:
    """What a model says of some images.

    Attributes:
        classes: The first class with the largest logit.
        labels: The right ones.
    """

    classes: Int[np.ndarray, "images"]
    labels: Int[np.ndarray, "images"]

    @property
    def accuracy(self) -> float:
        """The share that is right."""
        return float((self.classes == self.labels).mean())

    def changed(self, other: "Predictions") -> int:
        """How many images another model gives another class."""
        return int((self.classes != other.classes).sum())


def predict(model: nnx.Module, images: TrainingImages, part: Images) -> Predictions:
    """The classes of all images of a part.

    Args:
        images: With the statistics that the part is normalised by.
    """
    held = images.put(part, replicated(data_mesh(1, 1)))
    structure, numbers = nnx.split(model)
    batch = min(BATCH, len(part))

    @jax.jit
    def some(numbers: nnx.State, held: object, first: Array) -> Array:
        indices = (first + jnp.arange(batch)) % len(part)
        inputs, _ = images.load(held, indices, None, jnp.float32)  # type: ignore[arg-type]
        return jnp.argmax(nnx.merge(structure, numbers)(inputs), axis=-1)

    starts = range(0, len(part), batch)
    found = np.concatenate([np.asarray(some(numbers, held, jnp.asarray(n))) for n in starts])
    return Predictions(found[: len(part)], np.asarray(part.labels))


def first_images(
    images: TrainingImages, part: Images, count: int
) -> tuple[Float[Array, "batch height width channels"], Int[Array, "batch"]]:
    """The first images of a part, normalised, in float32; and their labels."""
    held = images.put(part, replicated(data_mesh(1, 1)))
    indices = jnp.arange(min(count, len(part)))
    return images.load(held, indices, None, jnp.float32)
