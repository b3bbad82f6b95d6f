"""RandAugment's magnitudes, and what each operation makes of one: a table that the host computes.

timm draws the magnitude from a normal distribution and cuts it to 0 … 10. Here it is one of the
1,024 values at the quantiles (i + ½)/1024 of that distribution, each as likely as any other, so
that all that is drawn on the device is i.
"""

import math
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist

import jax
import numpy as np
from jaxtyping import Array, Int32

from convattn.lab.data.variation.operations.blending import FACTOR_BITS
from convattn.lab.data.variation.operations.warping import MATRIX_BITS, WEIGHT_BITS

COUNT = 1024
DEVIATION = 0.5
LARGEST = 10.0


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Arguments:
    """What the operations take, for each magnitude, or for one; a pytree.

    Attributes:
        bits: That Posterize keeps, 4 … 0.
        threshold: From which Solarize inverts, 256 … 0.
        addition: Of SolarizeAdd, 0 … 110.
        more, less: Factors of Color, Contrast, Brightness and Sharpness in units of
            2⁻`FACTOR_BITS`, 1 … 1.9 and 1 … 0.1.
        cosine, sine: Of Rotate's angle, 0 … 30°, in units of 2⁻`MATRIX_BITS`.
        shear: 0 … 0.3 in the same units, rounded to multiples of 2⁻¹⁰.
        across, down: Of a translation, 0 … 0.45 of the side, in units of half of that, rounded to
            multiples of 2⁻¹¹ pixels.
    """

    bits: Int32[Array, "*magnitudes"]
    threshold: Int32[Array, "*magnitudes"]
    addition: Int32[Array, "*magnitudes"]
    more: Int32[Array, "*magnitudes"]
    less: Int32[Array, "*magnitudes"]
    cosine: Int32[Array, "*magnitudes"]
    sine: Int32[Array, "*magnitudes"]
    shear: Int32[Array, "*magnitudes"]
    across: Int32[Array, "*magnitudes"]
    down: Int32[Array, "*magnitudes"]


def magnitudes(mean: float) -> list[float]:
    """The values a magnitude has, in ascending order.

    >>> found = magnitudes(9)
    >>> len(found), round(found[512], 2), found[-1]
    (1024, 9.0, 10.0)
    """
    normal = NormalDist(mean, DEVIATION)
    quantiles = [normal.inv_cdf((number + 0.5) / COUNT) for number in range(COUNT)]
    return [min(max(value, 0.0), LARGEST) for value in quantiles]


@cache
def argument_table(mean: float, height: int, width: int) -> Arguments:
    """What the operations take at each of the `COUNT` magnitudes, severity growing with it.

    Source: timm, the functions `_…_level_to_arg` of `auto_augment`, "increasing" where there are
        two.

    >>> table = argument_table(9, 32, 32)
    >>> [int(each[512]) for each in (table.bits, table.threshold, table.addition)]
    [1, 26, 99]
    """
    rows = np.array([_arguments(value, height, width) for value in magnitudes(mean)], np.int32)
    rows.setflags(write=False)
    return Arguments(*rows.T)


def _arguments(magnitude: float, height: int, width: int) -> list[int]:
    level = magnitude / LARGEST
    angle = math.radians(30 * level)
    one, fine = 2**MATRIX_BITS, 2 ** (MATRIX_BITS + 1 - WEIGHT_BITS)
    return [
        4 - int(4 * level),
        256 - int(256 * level),
        int(110 * level),
        round((1 + 0.9 * level) * 2**FACTOR_BITS),
        round(max(0.1, 1 - 0.9 * level) * 2**FACTOR_BITS),
        round(math.cos(angle) * one),
        round(math.sin(angle) * one),
        round(0.3 * level * one / fine) * fine,
        round(0.45 * level * width * 2**WEIGHT_BITS) * fine,
        round(0.45 * level * height * 2**WEIGHT_BITS) * fine,
    ]
