import math

import numpy as np
import pytest
from comparison import assert_within
from hypothesis import given
from hypothesis import strategies as st

from convattn import count_heads_of_kernel
from convattn.diagnosis import nearest_convolution as module
from convattn.diagnosis.nearest_convolution import (
    nearest_convolution,
    triangular_factor,
    weighted_taps,
)

CLOSE = 1e-11
SIDES = (4, 5)


def shift_heads(shifts: list[tuple[int, int]]) -> np.ndarray:
    """One head a shift, which pays nothing where the key is not there."""
    attention = np.zeros((len(shifts), *SIDES, *SIDES))
    for head, (down, right) in enumerate(shifts):
        for row, column in np.ndindex(SIDES):
            if 0 <= row + down < SIDES[0] and 0 <= column + right < SIDES[1]:
                attention[head, row, column, row + down, column + right] = 1
    return attention


NINE = [(row, column) for row in (-1, 0, 1) for column in (-1, 0, 1)]


@pytest.mark.parametrize(
    "kernel",
    [
        [[1, 0, -1], [2, 0, -2], [1, 0, -1]],
        [[1, 2, 1], [2, 4, 2], [1, 2, 1]],
        np.random.default_rng(0).integers(-3, 4, (3, 3, 2, 3)),
        np.array([[1, 0, -1], [2, 0, -2], [1, 0, -1]]) / 2.0**10,
        np.zeros((3, 3)),
    ],
    ids=["sobel", "blur", "general", "small", "zero"],
)
def test_one_hot_heads_are_a_convolution_and_take_what_heads_of_says(kernel):
    kernel = np.asarray(kernel, float).reshape(3, 3, *np.shape(kernel)[2:] or (1, 1))
    nearest = nearest_convolution(shift_heads(NINE), kernel.reshape(9, *kernel.shape[2:]))
    expected = count_heads_of_kernel(kernel)
    assert nearest.relative == 0
    assert_within(nearest.heads, np.zeros(9), 0)
    for count in (nearest.whole, nearest.as_near):
        assert (count.rank, count.limit, count.exact) == (
            expected.rank,
            expected.limit,
            expected.exact,
        )


def test_a_kernel_as_near_has_the_least_rank_within_the_distance():
    """On one row of four tokens the tap 0 joins 4 pairs and the tap 1 three, by maps of size 1.

    The third head looks two to the right in 2 pairs, by a map of size w; so |L - C|² = 2 w².
    """
    eye, right, far = (np.eye(4, k=k).reshape(1, 4, 1, 4) for k in (0, 1, 2))
    attention = np.stack([eye, right, far])
    for weight, rank in ((1.0, 2), (1.5, 1), (2.5, 0)):  # of 3 and of 3 + 4
        maps = np.zeros((3, 1, 3))
        maps[range(3), 0, range(3)] = 1.0, 1.0, weight
        nearest = nearest_convolution(attention, maps, (1, 3))
        assert nearest.whole.rank == 2
        assert nearest.as_near.rank == rank
        size = math.sqrt(4 + 3 + 2 * weight**2)
        assert_within(nearest.relative, math.sqrt(2) * weight / size, CLOSE)
        assert_within(nearest.norms, [[0, 1, 1]], CLOSE)
        assert_within(nearest.taps, [[[0, 1, 0]], [[0, 0, 1]], [[0, 0, 0]]], CLOSE)
        assert_within(nearest.heads, [0, 0, 1], CLOSE)


def test_maps_are_taken_in_parts_of_so_many_numbers(monkeypatch):
    """Of two heads with three columns 20 numbers are three rows; at least one row, of any width."""
    maps = np.random.default_rng(0).normal(size=(2, 7, 3))
    expected = np.einsum("gio,hio->gh", maps, maps)
    factored, qr = [], np.linalg.qr
    spy = lambda block, mode: factored.append(block.shape) or qr(block, mode=mode)  # noqa: E731
    monkeypatch.setattr(np.linalg, "qr", spy)
    for most, shapes in (
        (20, [(9, 2), (2 + 9, 2), (2 + 3, 2)]),
        (1, [(3, 2), *[(2 + 3, 2)] * 6]),
        (2**26, [(21, 2)]),
    ):
        factored.clear()
        monkeypatch.setattr(module, "MAPS_AT_ONCE", most)
        factor = triangular_factor(maps)
        assert factored == shapes
        assert_within(factor.T @ factor, expected, CLOSE)


def random_layer(seed: int, heads: int) -> tuple[np.ndarray, np.ndarray]:
    """Attention near shifts, and maps."""
    rng = np.random.default_rng(seed)
    near = shift_heads([NINE[i] for i in rng.permutation(9)[:heads]])
    noise = np.exp(3 * rng.normal(size=near.shape))
    noise /= noise.sum(axis=(3, 4), keepdims=True)
    weight = rng.uniform(0.02, 0.7)
    return (1 - weight) * near + weight * noise, rng.normal(size=(heads, 3, 4))


def formed(attention: np.ndarray, maps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """L and the nearest convolution C as matrices [pairs, entries], formed tap by tap."""
    tokens = SIDES[0] * SIDES[1]
    linear = np.einsum("hqk,hio->qkio", attention.reshape(-1, tokens, tokens), maps)
    convolution = np.zeros_like(linear)
    for shift in NINE:
        pairs = shift_heads([shift]).reshape(tokens, tokens) == 1
        convolution[pairs] = linear[pairs].mean(axis=0)
    return linear.reshape(tokens**2, -1), convolution.reshape(tokens**2, -1)


def check(seed: int, heads: int) -> None:
    """Against the singular values of C, formed."""
    attention, maps = random_layer(seed, heads)
    nearest = nearest_convolution(attention, maps)
    linear, convolution = formed(attention, maps)
    gap = np.linalg.norm(linear - convolution)
    assert_within(nearest.relative, gap / np.linalg.norm(linear), CLOSE)
    singular = np.linalg.svd(convolution, compute_uv=False)
    tails = [np.sqrt(np.sum(singular[rank:] ** 2)) for rank in range(len(singular) + 1)]
    assert nearest.as_near.rank == next(rank for rank, tail in enumerate(tails) if tail <= gap)
    assert nearest.whole.rank == np.linalg.matrix_rank(convolution)
    assert nearest.as_near.rank <= nearest.whole.rank <= heads
    for count in (nearest.whole, nearest.as_near):
        assert count.limit in (count.rank, count.rank + 1)
        assert count.exact == count.rank + 1 or count.rank == 0


def check_many() -> None:
    for seed in range(12):
        check(seed, 7)


@given(seed=st.integers(0, 2**31), heads=st.integers(1, 9))
def test_ranks_and_distance_are_those_of_the_formed_maps(seed, heads):
    check(seed, heads)


def test_the_ranks_that_are_seen_are_not_all_alike():
    ranks = {nearest_convolution(*random_layer(seed, 6)).as_near.rank for seed in range(12)}
    assert len(ranks) > 2


WRONG = {
    "weighted_taps": lambda right: lambda *args: (right(*args)[0][:, ::-1] ** 2, right(*args)[1]),
    "triangular_factor": lambda right: lambda maps: right(maps)[:, ::-1],
    "squared_norm": lambda right: lambda *args: 0.2 * right(*args),
}


@pytest.mark.parametrize("name", WRONG)
def test_planted_errors_are_seen(monkeypatch, name):
    monkeypatch.setattr(module, name, WRONG[name](getattr(module, name)))
    with pytest.raises(AssertionError):
        check_many()


def test_the_factor_keeps_what_the_product_of_maps_would_lose(monkeypatch):
    """Two maps that differ by 1e-12: their Gram matrix has no trace of it."""
    one = np.random.default_rng(0).normal(size=(5, 4))
    other = one.copy()
    other[4, 3] += 1e-12
    for at_once in (2**26, 8):  # all rows at once, and one by one
        monkeypatch.setattr(module, "MAPS_AT_ONCE", at_once)
        factor = triangular_factor(np.stack([one, other]))
        least = np.linalg.svd(factor, compute_uv=False)[-1]
        assert 5e-13 < least < 1e-12
        assert_within(factor.T @ factor, np.full((2, 2), np.sum(one**2)), 1e-10)


def test_weighted_taps_are_the_means_over_the_pairs():
    attention, _ = random_layer(0, 2)
    rows, counts = weighted_taps(attention, (3, 3))
    for tap, shift in enumerate(NINE):
        pairs = shift_heads([shift])[0] == 1
        assert counts[tap] == pairs.sum()
        assert_within(rows[:, tap], attention[:, pairs].mean(axis=1) * pairs.sum() ** 0.5, CLOSE)


def test_without_maps_the_heads_alone_are_known():
    attention, maps = random_layer(0, 3)
    nearest = nearest_convolution(attention, None, (1, 3))
    assert (nearest.relative, nearest.whole, nearest.as_near) == (None, None, None)
    assert_within(nearest.heads, nearest_convolution(attention, maps, (1, 3)).heads, 0)
    means, counts = weighted_taps(attention, (1, 3))  # times the roots of how many pairs there are
    assert_within(nearest.taps.reshape(3, 3), means / np.sqrt(counts), 0)


@pytest.mark.usefixtures("unchecked")
def test_maps_of_another_number_of_heads_are_refused():
    attention, maps = random_layer(0, 3)
    for wrong in (maps[:2], maps[0]):
        with pytest.raises(ValueError, match=r"but expected \[heads, in, out\] for 3 heads"):
            nearest_convolution(attention, wrong)
