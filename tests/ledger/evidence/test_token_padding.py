"""Convolutions with tokens of the image around it, against a definition in floats."""

import numpy as np
import pytest
from comparison import assert_equal
from constructions.bare_grids import token_padded_conv

from convattn_ledger.evidence.token_padding import token_padded_convolution


@pytest.mark.parametrize("outside", ["edge", "mean"])
@pytest.mark.parametrize(
    ("size", "patch", "grid"), [(3, 1, (4, 2)), (5, 2, (2, 4)), (1, 2, (1, 2))]
)
def test_it_is_the_padded_convolution(outside, size, patch, grid):
    """N is a power of two, so that dividing by it rounds nothing."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 9, (2, grid[0] * patch, grid[1] * patch, 2))
    kernel = rng.integers(-9, 10, (size, size, 2, 3))
    sums, count = token_padded_convolution(images, kernel, patch, outside)
    reach = -((1 - size) // (2 * patch))
    ring = ((reach, reach),) * 2
    assert count == (1 if outside == "edge" else grid[0] * grid[1])
    assert_equal(sums / count, token_padded_conv(images, kernel, (patch,) * 2, ring, outside))


def test_another_padding_is_refused():
    images, kernel = np.ones((1, 2, 2, 1), int), np.ones((3, 3, 1, 1), int)
    with pytest.raises(ValueError, match="outside='zero'"):
        token_padded_convolution(images, kernel, 1, "zero")
