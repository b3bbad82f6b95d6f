"""24 small networks whose inner workings are known.

Every weight is a multiple of a power of two, and so is every pixel of the example images. Then
values, logits and derivatives are exact in float64, in whatever order they are added. Thresholds
are finer than what they are subtracted from, so that no ReLU stands at its bend on these images,
where it has no derivative.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from convattn.known_answers import trained
from convattn.known_answers.layers import (
    CENTRE_SURROUND,
    FALLING,
    HORIZONTAL,
    LAPLACIAN,
    RING,
    RISING,
    SMOOTH,
    VERTICAL,
    above,
    conv,
    filters,
    logits,
    max_pool,
    mixed,
    negative,
    tap,
)

FINE = 2.0**-17  # a threshold, finer than the numbers of a first layer
FINER = 2.0**-22  # and than those of a second one
FINEST = 2.0**-27  # and than those of a third one
OWN = ((1, 0), (0, 1))  # of two channels, a class each


@dataclass(frozen=True)
class KnownNetwork:
    """A network of the suite.

    Attributes:
        name: Of its files.
        sentence: What it computes.
        function: From images `[batch, rows, columns, channels]` to logits `[batch, classes]`.
        size: Rows, as many columns, of an image.
        channels: Of an image.
        patch_size: Of the vision transformer.
        images: `[4, rows, columns, channels]`, in [0, 1]; None for those that are drawn.
    """

    name: str
    sentence: str
    function: Callable[[Any], Any]
    size: int = 8
    channels: int = 1
    patch_size: int = 1
    images: Callable[[], np.ndarray] | None = None

    def example(self) -> np.ndarray:
        """Four images `[4, rows, columns, channels]` in float32."""
        if self.images is not None:
            return self.images()
        return drawn_images(self.size, self.channels)


def drawn_images(size: int, channels: int) -> np.ndarray:
    """A bar, a square, a diagonal and two spots on noise, all multiples of 1/4096."""
    random = np.random.RandomState(size + channels)  # its stream is the same in every version
    images = random.randint(0, 1024, (4, size, size, channels)) / 16
    middle, quarter = size // 2, size // 4
    images[0, :, middle - 1 : middle + 1] += 160
    images[1, quarter : size - quarter, quarter : size - quarter] += 160
    images[2, np.arange(size), np.arange(size)] += 160
    images[3, [quarter, middle + 1], [middle, quarter]] += 190
    return (images / 256).astype(np.float32)


def _shift(images: Any) -> Any:
    copied = above(conv(images, filters(tap(-1, 1))), FINE)
    return logits(copied, ((1, -1),), (0, 0.25))


def _far_shift(images: Any) -> Any:
    first = above(conv(images, filters(tap(-1, 1)), dilation=2), FINE)
    second = above(conv(first, filters(tap(0, 1))), FINER)
    return logits(second, ((1, -1),), (0, 0.25))


def _edges(*grids: Any) -> Callable[[Any], Any]:
    """By both signs of each grid, a class for each grid."""
    both = [each for grid in grids for each in (grid, negative(grid))]
    matrix = np.eye(len(grids)).repeat(2, axis=0)

    def network(images: Any) -> Any:
        kernel = filters(*both, inputs=images.shape[-1], scale=1 / 8)
        return logits(above(conv(images, kernel), FINE), matrix)

    return network


def _signs(images: Any) -> Any:
    kernel = filters(VERTICAL, negative(VERTICAL), scale=1 / 8)
    return logits(above(conv(images, kernel), FINE), OWN)


def _laplacian(images: Any) -> Any:
    return logits(above(conv(images, filters(LAPLACIAN, scale=1 / 8)), FINE), ((1, -1),), (0, 0.5))


def _centre_surround(images: Any) -> Any:
    kernel = filters(CENTRE_SURROUND, negative(CENTRE_SURROUND), scale=1 / 16)
    return logits(above(conv(images, kernel), FINE), OWN)


def _spot(images: Any) -> Any:
    kernel = filters(CENTRE_SURROUND, scale=1 / 16)
    return logits(above(max_pool(conv(images, kernel)), 0.25 + FINE), ((1, -1),), (0, 0.0625))


def _corner(images: Any) -> Any:
    """Where an edge ends that runs to the right and one that runs downwards: both, smoothed."""
    edges = above(conv(images, filters(VERTICAL, HORIZONTAL, scale=1 / 8)), FINE)
    both = conv(edges, mixed(SMOOTH, ((1,), (1,)), 1 / 16))
    return logits(above(both, 0.125 + FINER), ((1, -1),), (0, 0.0625))


def _dilated_edge(images: Any) -> Any:
    kernel = filters(VERTICAL, HORIZONTAL, scale=1 / 8)
    return logits(above(conv(images, kernel, dilation=2), FINE), OWN)


def _dilated_pyramid(images: Any) -> Any:
    """Dilations of 1, 2 and 3, one after the other."""
    features = above(conv(images, filters(LAPLACIAN, negative(LAPLACIAN), scale=1 / 8)), FINE)
    features = above(conv(features, mixed(SMOOTH, OWN, 1 / 16), dilation=2), FINER)
    swapped = mixed(VERTICAL, ((1, -1), (-1, 1)), 1 / 8)
    return logits(above(conv(features, swapped, dilation=3), FINEST), OWN)


def _strided(images: Any) -> Any:
    kernel = filters(VERTICAL, HORIZONTAL, scale=1 / 8)
    return logits(above(conv(images, kernel, stride=2), FINE), OWN)


def _strided_twice(images: Any) -> Any:
    first = above(conv(images, filters(LAPLACIAN, SMOOTH, scale=1 / 16), stride=2), FINE)
    second = conv(first, mixed(SMOOTH, ((1, -0.5), (-0.5, 1)), 1 / 16), stride=2)
    return logits(above(second, FINER), OWN)


def _max_pool(images: Any) -> Any:
    edges = max_pool(conv(images, filters(VERTICAL, HORIZONTAL, scale=1 / 8)))
    smoothed = conv(above(edges, FINE), mixed(SMOOTH, OWN, 1 / 16))
    return logits(above(smoothed, FINER), OWN)


def _two_paths(images: Any) -> Any:
    """A pixel, and the ring around it at a distance of two."""
    centre, ring = conv(images, filters(tap(0, 0))), conv(images, filters(RING, scale=1 / 16))
    return logits(above(centre - ring, FINE), ((1, -1),), (0, 0.125))


def _opposite_paths(images: Any) -> Any:
    """Two pixels to the upper left, and two to the lower right; nothing in between."""
    first = conv(images, filters(tap(-2, -2, 5)))
    second = conv(images, filters(tap(2, 2, 5)))
    return logits(above(first + second, 0.5 + FINE), ((1, -1),), (0, 0.125))


def _residual(images: Any) -> Any:
    inner = above(conv(images, filters(LAPLACIAN, scale=1 / 8)), FINE)
    outer = above(images + conv(inner, filters(SMOOTH, scale=1 / 16)), 0.25 + FINER)
    return logits(outer, ((1, -1),), (0, 0.25))


def _depthwise(images: Any) -> Any:
    """The edges of red, green and blue; red against green, and blue against yellow."""
    kernel = np.concatenate([filters(VERTICAL), filters(HORIZONTAL), filters(LAPLACIAN)], axis=3)
    edges = above(conv(images, kernel / 8, groups=3), FINE)
    opposed = mixed(tap(0, 0, 1), ((1, -1), (-1, -1), (0, 2)), 0.5)
    return logits(above(conv(edges, opposed), FINER), OWN)


def _circular(images: Any) -> Any:
    kernel = filters(tap(-1, 0), VERTICAL, scale=1 / 4)
    return logits(above(conv(images, kernel, border="circular"), FINE), OWN)


def _corner_of_patches(images: Any) -> Any:
    edges = above(conv(images, filters(VERTICAL, HORIZONTAL, scale=1 / 8)), FINE)
    both = above(conv(edges, mixed(SMOOTH, ((1, 1), (1, -1)), 1 / 16)), FINER)
    return logits(both, OWN)


def _shortcut(images: Any) -> Any:
    """Spots, or else a bright pixel in the upper left corner: four times their weight."""
    spots = above(conv(images, filters(CENTRE_SURROUND, scale=1 / 16)), 0.25 + FINE)
    tag = above(images[:, 0, 0], 0.75 + FINE)
    return logits(spots, ((1, -1),), (-(2.0**-6), 2.0**-6)) + tag @ np.array([[4, -4]], np.float32)


def shortcut_images() -> np.ndarray:
    """Two as in the training set, with spots and tag or neither; spots alone; the tag alone."""
    random = np.random.RandomState(24)
    images = random.randint(0, 1024, (4, 8, 8, 1)) / 16
    images[[0, 2], 4, 3] += 190
    images[[0, 2], 2, 5] += 190
    images[[0, 3], 0, 0] = 255
    return (images / 256).astype(np.float32)


NETWORKS: Sequence[KnownNetwork] = (
    KnownNetwork("shift", "each token copies its neighbour above and to the right", _shift),
    KnownNetwork(
        "far-shift",
        "two shifts: each token holds the pixel two above and three to the right",
        _far_shift,
    ),
    KnownNetwork("vertical-edges", "edges to brighter against edges to darker pixels", _signs),
    KnownNetwork(
        "orientations",
        "four classes of edges: vertical, horizontal and the two diagonals",
        _edges(VERTICAL, HORIZONTAL, RISING, FALLING),
    ),
    KnownNetwork("diagonals", "rising against falling edges", _edges(RISING, FALLING)),
    KnownNetwork(
        "colour-edges",
        "edges of the sum of three colours",
        _edges(VERTICAL, HORIZONTAL),
        channels=3,
    ),
    KnownNetwork("laplacian", "pixels brighter than their neighbours", _laplacian),
    KnownNetwork("centre-surround", "bright and dark spots, by a 5 × 5 kernel", _centre_surround),
    KnownNetwork("spot", "the brightest spot of each 2 × 2 window", _spot),
    KnownNetwork("corner", "corners: two edges that meet", _corner),
    KnownNetwork("dilated-edge", "edges at a dilation of two", _dilated_edge),
    KnownNetwork(
        "dilated-pyramid", "dilations of 1, 2 and 3, one after the other", _dilated_pyramid
    ),
    KnownNetwork("strided", "edges at every second pixel", _strided),
    KnownNetwork("strided-twice", "two strides of two", _strided_twice),
    KnownNetwork("max-pool", "the strongest edge of each 2 × 2 window, smoothed", _max_pool),
    KnownNetwork("two-paths", "a pixel against the ring around it", _two_paths),
    KnownNetwork(
        "opposite-paths", "two far pixels on opposite sides, nothing between", _opposite_paths
    ),
    KnownNetwork("residual", "a residual block with two convolutions", _residual),
    KnownNetwork("depthwise", "edges of each colour, then opposed colours", _depthwise, channels=3),
    KnownNetwork("circular", "a shift and edges on a torus", _circular),
    KnownNetwork(
        "corner-of-patches",
        "corners, four pixels a token",
        _corner_of_patches,
        size=16,
        patch_size=2,
    ),
    KnownNetwork(
        "shortcut",
        "spots, or a bright pixel in the corner, the tag, which weighs more; image 0 has both, "
        "as the training set would, 1 neither, 2 spots alone, 3 the tag alone: taken for spots",
        _shortcut,
        images=shortcut_images,
    ),
    KnownNetwork(
        "trained-plain",
        "two convolutions, trained on CIFAR-10",
        trained.plain,
        size=16,
        channels=3,
        patch_size=2,
        images=trained.images,
    ),
    KnownNetwork(
        "trained-residual",
        "a strided convolution and a residual block, trained on CIFAR-10",
        trained.residual,
        size=16,
        channels=3,
        patch_size=2,
        images=trained.images,
    ),
)
