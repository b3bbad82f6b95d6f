"""scikit-learn's handwritten digits as a data set: 1,797 images of 8 × 8 pixels, ten classes."""

import numpy as np

from convattn.data.cifar10_slice import Images
from convattn.data.datasets import Dataset
from convattn.extras import require
from convattn_lab.data.split import validation_split

LEVELS = 16  # of a pixel, above 0
TEST_FRACTION, TEST_SEED = 0.28, 0  # by class: 504 test images, the same in every run


def read_digits() -> Dataset:
    """The digits, in grey: the same number in all three channels.

    Raises:
        ModuleNotFoundError: Without scikit-learn; says which extra brings it.

    Source: Alpaydin and Kaynak 1998, Optical Recognition of Handwritten Digits, of which
    scikit-learn ships the part with which its authors tested.
    """
    require("sklearn")
    from sklearn.datasets import load_digits

    stored = load_digits()
    grey = np.round(stored.images * (255 / LEVELS)).astype(np.uint8)
    names = tuple(str(name) for name in stored.target_names)
    pixels = np.repeat(grey[..., None], 3, axis=-1)
    every = Images(pixels, stored.target.astype(np.uint8), names)
    return Dataset("scikit-learn's digits", *validation_split(every, TEST_FRACTION, seed=TEST_SEED))
