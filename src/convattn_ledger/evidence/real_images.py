"""Whole real images for floating-point evidence."""

import numpy as np
from jaxtyping import Int

from convattn.data.cifar10_slice import load_cifar10_slice
from convattn_ledger.claim import Run

COUNT = 16


def whole_images(run: Run, count: int | None = None) -> Int[np.ndarray, "images 32 32 3"]:
    """Distinct CIFAR-10 test images, `COUNT` or `count` of them, as integers 0 to 255.

    The run's seed draws them. Integers up to 255 are exact in float64, float32, float16 and
    bfloat16 alike, so an image means the same numbers in each.
    """
    test = load_cifar10_slice("test").images
    chosen = run.rng("images").choice(len(test), size=count or COUNT, replace=False)
    return test[np.sort(chosen)].astype(np.int64)
