"""S.heads: the flattened kernel of the box, its minor and the minor's inverse."""

from itertools import product

import numpy as np
import pytest
from comparison import assert_equal

from convattn.bounds.flattened_kernel import flattened_kernel
from convattn_ledger.certificates.lower_bound import box_bound_body

SIZES = [((3, 5), (2, 3)), ((5, 3), (2, 2)), ((7, 5), (3, 4))]  # kernel, patch: 3 ≤ K ≤ 2P + 1


def box(kernel: tuple[int, int], channels: tuple[int, int], pair: tuple[int, int]) -> np.ndarray:
    """Ones in the middle 3 × 3, in one pair of channels."""
    weights = np.zeros((*kernel, *channels), int)
    (r1, r2) = (k // 2 for k in kernel)
    weights[r1 - 1 : r1 + 2, r2 - 1 : r2 + 2, pair[0], pair[1]] = 1
    return weights


def printed_axis(coq_value, kernel: int, patch: int) -> np.ndarray:
    """[output pixel t, input pixel s, offset]: the flattened kernel of one axis."""
    entry = f"nat_of_bool (box_bit {patch} {kernel // 2} s t d)"
    pixels = f"[seq [seq {entry} | d <- iota 0 3] | s <- iota 0 {patch}]"
    return np.array(coq_value(f"[seq {pixels} | t <- iota 0 {patch}]"))


@pytest.mark.parametrize(("kernel", "patch"), SIZES)
def test_the_flattened_box(coq_value, kernel, patch):
    """Every entry: the product of both axes in the pair of channels, zero in all others."""
    axes = [printed_axis(coq_value, k, p) for k, p in zip(kernel, patch, strict=True)]
    both = np.einsum("ace,bdf->abcdef", *axes)  # [t, t, s, s, δ, δ]
    expected = np.zeros((*both.shape[:4], 2, 3, *both.shape[4:]), int)
    expected[:, :, :, :, 1, 2] = both
    expected = expected.reshape(-1, 9)
    assert_equal(flattened_kernel(box(kernel, (2, 3), (1, 2)), patch), expected)
    with pytest.raises(AssertionError):
        assert_equal(flattened_kernel(box(kernel, (2, 3), (1, 1)), patch), expected)


def printed_minor(coq_value, kernel: int, patch: int) -> tuple[np.ndarray, np.ndarray, list]:
    """The minor of one axis, its inverse, and the pixels (t, s) of its rows."""
    row = f"(far_pixel {patch} a) (near_pixel {patch} a)"
    bit = f"nat_of_bool (box_bit {patch} {kernel // 2} {row} d)"
    minor, inverse, pixels = coq_value(
        f"([seq [seq {bit} | d <- iota 0 3] | a <- iota 0 3], "
        f"[seq [seq inverse_entry {patch} a b | b <- iota 0 3] | a <- iota 0 3], "
        f"[seq (near_pixel {patch} a, far_pixel {patch} a) | a <- iota 0 3])"
    )
    return np.array(minor), np.array(inverse), pixels


@pytest.mark.parametrize(("kernel", "patch"), [(3, 2), (5, 2), (3, 3), (5, 4), (9, 4)])
def test_minor_and_inverse(coq_value, kernel, patch):
    """The certificate's rows and columns, its minor entry by entry, and the inverse of that."""
    minor, inverse, pixels = printed_minor(coq_value, kernel, patch)
    assert_equal(inverse @ minor, np.eye(3, dtype=int))
    body = box_bound_body(kernel, patch)
    rows = [[t1, t2, s1, s2, 0, 0] for (t1, s1), (t2, s2) in product(pixels, pixels)]
    assert body["rows"] == rows
    assert body["columns"] == [[i, j] for i in (-1, 0, 1) for j in (-1, 0, 1)]
    weights = box((kernel, kernel), (1, 1), (0, 0))
    assert body["kernel"] == weights.reshape(-1).tolist()
    flattened = np.asarray(flattened_kernel(weights, patch)).reshape(*4 * (patch,), 9)
    actual = np.array([flattened[t1, t2, s1, s2] for t1, t2, s1, s2, _, _ in rows])
    assert_equal(actual, np.kron(minor, minor))
    with pytest.raises(AssertionError):
        assert_equal(actual, np.kron(minor, minor[::-1]))
