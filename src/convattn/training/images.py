"""The images of a run: on the host, and on the devices."""

from dataclasses import dataclass

import numpy as np
from jax.sharding import Mesh

from convattn.data.batches import Augmentation, DeviceImages, put_on_device
from convattn.data.cifar10 import Images
from convattn.training.devices import replicated


@dataclass(frozen=True, eq=False)
class TrainingImages:
    """What a model is trained and judged on.

    **Fields:**

    - `train`, `test`: labelled images. Nothing is ever chosen by the test images.
    - `mean`, `std`: of each channel of the training images, in [0, 1].
    - `validation`: labelled images apart from both, or None.
    - `augmentation`: of the training images, or None.
    """

    train: Images
    test: Images
    mean: np.ndarray
    std: np.ndarray
    validation: Images | None = None
    augmentation: Augmentation | None = None

    @property
    def judged(self) -> dict[str, Images]:
        """The sets that are evaluated, by name."""
        apart = {} if self.validation is None else {"validation": self.validation}
        return {**apart, "test": self.test}


def on_devices(images: Images, mesh: Mesh) -> DeviceImages:
    """The images on every device of the mesh, as the bytes they are."""
    return put_on_device(images, replicated(mesh))
