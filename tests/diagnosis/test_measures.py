from itertools import product

import numpy as np
import pytest
from comparison import assert_equal, assert_within
from hypothesis import given
from hypothesis import strategies as st

from convattn.diagnosis import measures as module
from convattn.diagnosis.measures import HeadMeasures, measure_heads

CLOSE = 1e-12  # sums of at most some thousand numbers up to ten, in float64


def random_attention(seed: int, shape: tuple[int, ...]) -> np.ndarray:
    scores = np.exp(2 * np.random.default_rng(seed).normal(size=shape))
    return scores / scores.sum(axis=-1, keepdims=True)


def by_definition(attention: np.ndarray, grid: tuple[int, int]) -> dict[str, list]:
    """Each number pair by pair, as the docstrings say it."""
    images, heads, _, keys = attention.shape
    tokens, measures = grid[0] * grid[1], {}
    positions = [np.array(position) for position in np.ndindex(grid)]
    for head in range(heads):
        rows = attention[:, head, -tokens:]
        pairs = rows[..., -tokens:]
        inside, mean = pairs.sum(), pairs.mean(axis=0)
        entropy = -np.sum([a * np.log(a) for a in rows.ravel() if a > 0]) / (images * tokens)
        every = list(product(range(images), range(tokens), range(tokens)))
        center = sum(pairs[m, q, k] * (positions[k] - positions[q]) for m, q, k in every) / inside
        moment = np.zeros((2, 2))
        distance, shifts = 0.0, {}
        for m, q, k in every:
            shift = positions[k] - positions[q]
            distance += pairs[m, q, k] * np.hypot(*shift) / inside
            moment += pairs[m, q, k] * np.outer(shift - center, shift - center) / inside
            shifts.setdefault(tuple(shift.tolist()), []).append(pairs[m, q, k])
        often = {s: np.mean(a) for s, a in shifts.items() if len(a) * 4 >= images * tokens}
        best = max(often, key=lambda shift: often[shift])
        total = np.sum((pairs - pairs.mean()) ** 2)
        values = {
            "distance": distance,
            "entropy": entropy,
            "relative_entropy": entropy / np.log(keys),
            "center": center,
            "covariance": moment,
            "spread": np.sqrt(moment[0, 0] + moment[1, 1]),
            "positions": 1 - np.sum((pairs - mean) ** 2) / total,
            "shift": best,
            "one_shift": often[best],
            "elsewhere": 1 - inside / (images * tokens),
        }
        for name, value in values.items():
            measures.setdefault(name, []).append(value)
    return measures


def agree(measures: HeadMeasures, expected: dict[str, list]) -> None:
    for name, values in expected.items():
        assert_within(getattr(measures, name), np.array(values), CLOSE, name)


def check(others: int, queries: int) -> None:
    attention = random_attention(0, (3, 2, 6 + queries, 6 + others))
    agree(measure_heads(attention, (2, 3)), by_definition(attention, (2, 3)))


@pytest.mark.parametrize(("others", "queries"), [(0, 0), (1, 1), (2, 0)])
def test_the_measures_are_those_of_the_definitions(others, queries):
    check(others, queries)


WRONG = {
    "shift_sums": lambda right: lambda mean, grid: right(mean.swapaxes(1, 2), grid),
    "_explained_by_positions": lambda right: lambda pairs, mean: right(pairs[:2], mean),
    "MIN_QUERIES": lambda right: 0.9,
}


@pytest.mark.parametrize("name", WRONG)
def test_planted_errors_are_seen(monkeypatch, name):
    monkeypatch.setattr(module, name, WRONG[name](getattr(module, name)))
    with pytest.raises(AssertionError):
        check(1, 1)


@given(seed=st.integers(0, 100), side=st.integers(1, 4), shift=st.integers(-3, 3))
def test_a_head_that_looks_at_one_shift(seed, side, shift):
    """In a row of `side` tokens, wherever that key is there; the others look at a class token."""
    attention = np.zeros((2, 1, side, side + 1))
    for query in range(side):
        key = query + shift
        attention[:, 0, query, 1 + key if 0 <= key < side else 0] = 1
    measures = measure_heads(attention, (1, side))
    there = max(side - abs(shift), 0) / side
    assert_within(measures.elsewhere[0], 1 - there, CLOSE)
    assert measures.entropy[0] == 0
    assert measures.positions[0] == 1
    if there == 0:
        assert np.isnan(measures.distance[0])
        assert np.isnan(measures.center).all()
        return
    assert_within(measures.distance[0], abs(shift), CLOSE)
    assert_within(measures.center[0], (0, shift), CLOSE)
    assert_within(measures.spread[0], 0, CLOSE)
    if there >= 0.25:
        assert measures.one_shift[0] == 1
        assert_equal(measures.shift[0], (0, shift))


def test_uniform_attention():
    """The mean distance of two of n in a row is (n² - 1)/(3n)."""
    side = 7
    measures = measure_heads(np.full((2, 1, side, side), 1 / side), (1, side))
    assert_within(measures.entropy[0], np.log(side), CLOSE)
    assert_within(measures.relative_entropy[0], 1, CLOSE)
    assert_within(measures.distance[0], (side**2 - 1) / (3 * side), CLOSE)
    assert_within(measures.center[0], (0, 0), CLOSE)
    assert_within(measures.one_shift[0], 1 / side, CLOSE)
    assert measures.positions[0] == 1  # 0/0: no variance at all


@given(seed=st.integers(0, 2**31), images=st.integers(2, 5), heads=st.integers(1, 3))
def test_the_same_maps_in_every_image_are_explained_by_positions(seed, images, heads):
    attention = np.repeat(random_attention(seed, (1, heads, 6, 7)), images, axis=0)
    assert_equal(measure_heads(attention, (2, 3)).positions, np.ones(heads))


@given(seed=st.integers(0, 2**31), images=st.integers(2, 5))
def test_every_measure_is_in_its_range(seed, images):
    measures = measure_heads(random_attention(seed, (images, 2, 6, 8)), (2, 3))
    for name in ("relative_entropy", "positions", "one_shift", "elsewhere"):
        values = getattr(measures, name)
        assert ((values >= 0) & (values <= 1)).all(), name
    assert (measures.positions < 1).all()
    assert (measures.distance <= np.hypot(1, 2)).all()
    assert (np.linalg.eigvalsh(measures.covariance) > -CLOSE).all()


def test_images_that_have_nothing_in_common_leave_one_over_their_number():
    attention = np.zeros((4, 1, 1024, 1024))
    rng = np.random.default_rng(0)
    for image, query in np.ndindex(4, 1024):
        attention[image, 0, query, rng.integers(1024)] = 1
    assert abs(measure_heads(attention, (32, 32)).positions[0] - 1 / 4) < 0.02


def test_one_image_says_nothing_of_what_positions_explain():
    assert np.isnan(measure_heads(random_attention(0, (1, 1, 4, 4)), (2, 2)).positions[0])


def test_a_single_key_has_no_entropy():
    measures = measure_heads(np.ones((1, 1, 1, 1)), (1, 1))
    assert (measures.entropy[0], measures.relative_entropy[0], measures.one_shift[0]) == (0, 0, 1)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("attention", "said"),
    [
        (np.ones((2, 3, 4)), r"attention.shape=\(2, 3, 4\), but expected \[images, heads"),
        (np.zeros((0, 1, 4, 4)), "at least one image"),
        (random_attention(0, (1, 1, 3, 4)), "the 2 × 2 tokens of the grid last"),
        (np.log(random_attention(0, (1, 1, 4, 4))), r"attention\[0, 0, 0\] has the sum -"),
        (2 * random_attention(0, (1, 1, 4, 4)), "has the sum 2 .* after the softmax"),
        (np.full((1, 1, 4, 4), np.nan), "has the sum nan"),
    ],
)
def test_what_is_no_attention_is_refused(attention, said):
    with pytest.raises(ValueError, match=said):
        measure_heads(attention, (2, 2))
