"""Pairs of images, for the trainer."""

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import DTypeLike

from convattn_lab.data.augmentation.settings import Augmentation
from convattn_lab.data.batches import DeviceImages, load_batch, require_crop
from convattn_lab.training.examples import TrainingExamples, checksum
from convattn_lab.training.images import fingerprint as fingerprint_of_images
from image_similarity.pairs import ImagePairs


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class DevicePairs:
    """Both images of every pair, with whether they are of one class; a pytree."""

    first: DeviceImages
    second: DeviceImages


@dataclass(frozen=True, eq=False)
class TrainingPairs(TrainingExamples):
    """What a model that compares images is trained and judged on.

    Attributes:
        train, test: Pairs of disjoint sets of images. Nothing is chosen by the test pairs.
        mean, std: Of each channel of the training images, in [0, 1].
        validation: Pairs of images apart from both, or None.
        augmentation: Of each image of the training pairs by itself, or None; without Mixup and
            CutMix.

    Raises:
        ValueError: For an augmentation that mixes images, or that they are too small for.
    """

    train: ImagePairs
    test: ImagePairs
    mean: np.ndarray
    std: np.ndarray
    validation: ImagePairs | None = None
    augmentation: Augmentation | None = None

    unit_name: ClassVar[str] = "pairs"
    validation_option: ClassVar[str] = "--pairs.validation"

    def __post_init__(self) -> None:
        """Refuse augmentations that pairs cannot have."""
        if self.augmentation is None:
            return
        if self.augmentation.mixes:
            raise ValueError(
                f"augmentation={self.augmentation}, but expected mixup=0 and cutmix=0: whether "
                "two images are of one class is not told of their mixtures with others"
            )
        require_crop(self.augmentation, *self.train.images.images.shape[1:3])

    def arrays(self, examples: ImagePairs) -> DevicePairs:
        """The images of the pairs, as the bytes they are."""
        labels, pictures = examples.labels.astype(np.int32), examples.images.images
        sides = (
            DeviceImages(pictures[examples.members[:, side]], labels)  # type: ignore[arg-type]
            for side in range(2)
        )
        return DevicePairs(*sides)

    def load(
        self, arrays: DevicePairs, indices: Array, keys: Array | None, dtype: DTypeLike
    ) -> tuple[Array, Array]:
        """Pictures `[batch, height, 2·width, channels]`, x on the left and z on the right.

        Normalised; augmented if there are keys, each image by itself.
        """
        augmented = None if keys is None else self.augmentation
        halves = []
        for number, side in enumerate((arrays.first, arrays.second)):
            own = None if keys is None else jax.vmap(jax.random.fold_in, (0, None))(keys, number)
            half, labels = load_batch(side, indices, own, self.mean, self.std, augmented, dtype)
            halves.append(half)
        return jnp.concatenate(halves, axis=2), labels

    def identity(self) -> dict[str, Any]:
        """The number and checksum of the pairs, their images, and how these are augmented."""
        augmented = self.augmentation
        return {
            "augmentation": None if augmented is None else dataclasses.asdict(augmented),
            "mean": np.asarray(self.mean, np.float64).tolist(),
            "std": np.asarray(self.std, np.float64).tolist(),
            "training pairs": fingerprint(self.train),
            "validation pairs": fingerprint(self.validation),
        }


def fingerprint(pairs: ImagePairs | None) -> list[int] | None:
    """How many, the CRC-32 of the pairs, and what tells their images apart."""
    if pairs is None:
        return None
    total = checksum(pairs.members.astype(np.int64), pairs.labels)
    return [len(pairs), total, *(fingerprint_of_images(pairs.images) or [])]
