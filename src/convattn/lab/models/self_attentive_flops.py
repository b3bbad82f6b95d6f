"""How many products a residual network of SAC or MSAC takes for one image.

On a grid of Q queries and K keys, a SAC of C heads with n × n filters, d channels in and d_o out:

    maps      n²·d·C·(Q·d_a + K·d_a + K·d_o)  filters of queries, keys, values
              Q·C·d_o²                        the 1 × 1 convolution that joins the heads
              Q·(n²·d·d_o + 2·d_o²)           the ordinary convolution, and its merge
    matching  C·Q·K·d_a
    mixing    C·Q·K·d_o

and an MSAC of L scales those of each, and Q·L·d_o² for the 1 × 1 convolution that joins them.
Products with the zeros around the images are counted where `reads` counts them.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

from convattn.lab.models.settings import SelfAttentiveResNetSettings

Reads = Callable[[int, int, int], int]


class Products(NamedTuple):
    """Multiplications, half of the FLOPs."""

    maps: int = 0
    mixing: int = 0
    matching: int = 0


def added(*parts: Products) -> Products:
    """The sums of the parts.

    >>> added(Products(1, 2, 3), Products(4))
    Products(maps=5, mixing=2, matching=3)
    """
    return Products(*map(sum, zip(*parts, strict=True)))


def self_attentive_products(
    settings: SelfAttentiveResNetSettings,
    classes: int,
    image_size: tuple[int, int],
    channels: int,
    reads: Reads,
) -> Products:
    """Of the stem, the blocks one after the other, and the classifier.

    Args:
        reads: (side, filter size, stride) → how many pixels a filter reads on that axis, at all its
            places together.
    """

    def convolution(size: int, inputs: int, outputs: int, stride: int) -> int:
        return inputs * outputs * math.prod(reads(side, size, stride) for side in sides)

    def scale(size: int, inputs: int, outputs: int, stride: int) -> Products:
        heads, wanted = settings.heads, settings.key_features
        key_stride = 1 if settings.fine_keys else stride
        queries, keys = (
            math.prod(-(-side // step) for side in sides) for step in (stride, key_stride)
        )
        maps = heads * convolution(size, inputs, wanted, stride)
        maps += heads * convolution(size, inputs, wanted + outputs, key_stride)
        maps += queries * heads * outputs**2
        if settings.ordinary:
            maps += convolution(size, inputs, outputs, stride) + queries * 2 * outputs**2
        pairs = heads * queries * keys
        return Products(maps, pairs * outputs, pairs * wanted)

    def operator(inputs: int, outputs: int, stride: int) -> Products:
        if settings.operator == "convolution":
            return Products(convolution(settings.kernel_size, inputs, outputs, stride))
        if settings.operator == "sac":
            return scale(settings.kernel_size, inputs, outputs, stride)
        parts = [scale(size, inputs, outputs, stride) for size in settings.scales]
        queries = math.prod(-(-side // stride) for side in sides)
        return added(*parts, Products(queries * len(parts) * outputs**2))

    sides, inputs = list(image_size), settings.channels[0]
    total = [Products(convolution(settings.kernel_size, channels, inputs, settings.stem_stride))]
    sides = [-(-side // settings.stem_stride) for side in sides]
    for outputs, count in zip(settings.channels, settings.blocks, strict=True):
        for block in range(count):
            stride = 1 if block else 2
            if stride != 1 or inputs != outputs:
                total.append(Products(convolution(1, inputs, outputs, stride)))
            total.append(operator(inputs, outputs, stride))
            sides = [-(-side // stride) for side in sides]
            total.append(operator(outputs, outputs, 1))
            inputs = outputs
    return added(*total, Products(inputs * classes))
