"""Patches: where each pixel goes, there and back, and the ring."""

import hypothesis.strategies as st
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_dtype, assert_equal
from hypothesis import given

from convattn.operators.patches import add_zero_ring, check_ring, patchify, unpatchify

# For each axis how many patches, and how large: few, as JAX compiles for every shape.
AXES = st.sampled_from([[(4, 3)], [(2, 3), (4, 1)], [(1, 3), (3, 2)]])


def numbered(shape: tuple[int, ...]) -> np.ndarray:
    """Every entry different, so that none can stand in for another."""
    return np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape)


@pytest.mark.parametrize("dtype", ["int32", "bfloat16"])
def test_pixels_are_row_major_and_channels_last(dtype):
    images = numbered((2, 6, 4, 3)) % 251
    tokens = patchify(jnp.asarray(images, dtype), (3, 2))
    assert_dtype(tokens, dtype)
    assert tokens.shape == (2, 2, 2, 18)
    tokens = np.asarray(tokens)
    for row, column, channel in np.ndindex(6, 4, 3):
        feature = ((row % 3) * 2 + column % 2) * 3 + channel
        pixels = tokens[:, row // 3, column // 2, feature]
        assert_equal(pixels, images[:, row, column, channel])


@given(AXES, st.integers(0, 2))
def test_there_and_back(axes, cut):
    """Zeros are laid after the image where it is cut, and cropping takes them away."""
    sizes = tuple(p for _, p in axes)
    sides = tuple(max(1, n * p - min(cut, p - 1)) for n, p in axes)
    images = 1 + numbered((2, *sides, 3))
    tokens = patchify(images, sizes, pad=cut > 0)
    assert tokens.shape == (2, *(n for n, _ in axes), int(np.prod(sizes)) * 3)
    assert_equal(unpatchify(tokens, sizes, image_size=sides if cut else None), images)
    assert int((np.asarray(unpatchify(tokens, sizes)) != 0).sum()) == images.size


def test_a_transposed_patch_would_be_noticed():
    images = numbered((1, 4, 4, 2))
    mistaken = patchify(images.swapaxes(1, 2), 2)
    with pytest.raises(AssertionError, match="entries differ"):
        assert_equal(mistaken, patchify(images, 2))


@pytest.mark.parametrize(
    ("shape", "size", "message"),
    [
        ((1, 5, 4, 1), 2, r"\(5, 4\), which patches of size \(2, 2\) do not divide.*pad=True"),
        ((4, 4), 2, r"shape=\(4, 4\), but expected .*images\[None\]"),
        ((1, 1, 4, 4, 1), 2, "but expected"),
        ((1, 4, 4, 1), 0, "patch_size=0, but expected an integer ≥ 1"),
        ((1, 4, 4, 1), (2,), r"patch_size=\(2,\), but expected"),
        ((1, 0, 4, 1), 2, "expected every axis but the batch to be ≥ 1"),
    ],
)
def test_images_that_cannot_be_cut_are_refused(shape, size, message):
    with pytest.raises(ValueError, match=message):
        patchify(np.zeros(shape, np.float32), size)


@pytest.mark.parametrize(
    ("shape", "options", "message"),
    [
        ((1, 2, 2, 5), {}, r"5 features, but a patch of size \(2, 2\) holds a multiple of 4"),
        ((2, 4), {}, "but expected"),
        ((1, 2, 2, 4), {"image_size": (2, 4)}, "at most the last patch"),
        ((1, 2, 2, 4), {"image_size": (4, 5)}, "at most the last patch"),
        ((1, 2, 2, 4), {"image_size": (4,)}, r"image_size=\(4,\), but expected"),
    ],
)
def test_tokens_that_make_no_image_are_refused(shape, options, message):
    with pytest.raises(ValueError, match=message):
        unpatchify(np.zeros(shape, np.float32), 2, **options)


def test_the_ring_is_zero_and_lies_where_it_should():
    tokens = 1 + numbered((2, 3, 2, 4))
    ringed = add_zero_ring(jnp.asarray(tokens), ((1, 2), (0, 3)))
    assert ringed.shape == (2, 6, 5, 4)
    assert_equal(ringed[:, 1:4, :2], tokens)
    assert int((ringed != 0).sum()) == tokens.size


@pytest.mark.parametrize(
    ("ring", "expected"),
    [
        (0, ((0, 0), (0, 0))),
        (2, ((2, 2), (2, 2))),
        ([(0, 1), [2, 3]], ((0, 1), (2, 3))),
        (((1, 1), (0, 0)), ((1, 1), (0, 0))),
    ],
)
def test_rings_are_read(ring, expected):
    assert check_ring(ring, 2) == expected
    assert hash(check_ring(ring, 2)) == hash(expected)


@pytest.mark.parametrize(
    "ring",
    [-1, 1.0, True, None, "1", (), (1, 1), ((1, 1),), ((1,), (1,)), ((1, -1), (0, 0)),
     ((1, 1.0), (0, 0)), ((True, 1), (0, 0)), np.ones((2, 2), int)],
)  # fmt: skip
def test_what_is_no_ring_is_refused(ring):
    with pytest.raises(ValueError, match=r"(?s)ring=.*but expected an integer ≥ 0, or 2 pairs"):
        check_ring(ring, 2)
