"""The images of a run: on the host, and on the devices."""

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import Array
from jax.typing import DTypeLike
from jaxtyping import Int

from convattn.data.cifar10_slice import Images
from convattn_lab.data.augmentation.settings import Augmentation
from convattn_lab.data.batches import DeviceImages, load_batch, require_crop
from convattn_lab.training.examples import TrainingExamples, checksum

BATCH = 100


@dataclass(frozen=True, eq=False)
class TrainingImages(TrainingExamples):
    """What a model is trained and judged on.

    Attributes:
        train, test: Labelled images. Nothing is ever chosen by the test images.
        mean, std: Of each channel of the training images, in [0, 1].
        validation: Labelled images apart from both, or None.
        augmentation: Of the training images, or None.
        resize: The side to which all are brought, or None.
    """

    train: Images
    test: Images
    mean: np.ndarray
    std: np.ndarray
    validation: Images | None = None
    augmentation: Augmentation | None = None
    resize: int | None = None

    unit_name: ClassVar[str] = "images"
    validation_option: ClassVar[str] = "--images.validation"

    def __post_init__(self) -> None:
        """Refuse crops that might hold nothing of an image."""
        if self.augmentation is not None:
            require_crop(self.augmentation, *self.train.images.shape[1:3])

    def arrays(self, examples: Images) -> DeviceImages:
        """The images as the bytes they are, and their labels."""
        labels = examples.labels.astype(np.int32)
        return DeviceImages(examples.images, labels)  # type: ignore[arg-type]

    def load(
        self, arrays: DeviceImages, indices: Array, keys: Array | None, dtype: DTypeLike
    ) -> tuple[Array, Array]:
        """A batch, normalised; augmented if there are keys."""
        augmented = None if keys is None else self.augmentation
        how = {"resize": self.resize, "classes": len(self.train.class_names)}
        return load_batch(arrays, indices, keys, self.mean, self.std, augmented, dtype, **how)

    def identity(self) -> dict[str, Any]:
        """The number and checksum of the images, their statistics, size and augmentation.

        Of those that came later only what is done is named, so that older checkpoints go on.
        """
        augmented = self.augmentation
        named = {} if augmented is None else dataclasses.asdict(augmented)
        done = {name: value for name, value in named.items() if value or name in ("crop", "flip")}
        return {
            "augmentation": None if augmented is None else done,
            **({} if self.resize is None else {"resize": self.resize}),
            "mean": np.asarray(self.mean, np.float64).tolist(),
            "std": np.asarray(self.std, np.float64).tolist(),
            "training images": fingerprint(self.train),
            "validation images": fingerprint(self.validation),
        }


def predicted_classes(model: nnx.Module, images: TrainingImages) -> Int[np.ndarray, " images"]:
    """The class of each test image: the first with the largest logit."""
    count, (graph, state) = len(images.test), nnx.split(model)
    arrays, batch = jax.device_put(images.arrays(images.test)), min(BATCH, count)

    @jax.jit
    def some(state: nnx.State, arrays: DeviceImages, first: Array) -> Array:
        indices = (first + jnp.arange(batch)) % count
        inputs, _ = images.load(arrays, indices, None, jnp.float32)
        return jnp.argmax(nnx.merge(graph, state)(inputs), axis=-1)

    starts = range(0, count, batch)
    classes = [np.asarray(some(state, arrays, jnp.asarray(start))) for start in starts]
    return np.concatenate(classes)[:count]


def test_accuracy(model: nnx.Module, images: TrainingImages) -> float:
    """The fraction of the test images that the model classifies correctly."""
    return float((predicted_classes(model, images) == images.test.labels).mean())


def fingerprint(images: Images | None) -> list[int] | None:
    """How many, and the CRC-32 of their bytes and labels."""
    if images is None:
        return None
    return [len(images), checksum(images.images, images.labels.astype(np.int32))]
