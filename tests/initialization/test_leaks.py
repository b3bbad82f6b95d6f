"""The largest leak is a bound, and each of its terms is as large as the formula says."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from convattn.initialization.leaks import (
    Deviations,
    deviations,
    leaks,
    position_norms,
    stored_leaks,
)
from convattn.initialization.positions import CHANNELS, PositionCode
from convattn.networks.vision_transformer.state_dicts import VisionTransformer

ROUNDED = 1 + 2.0**-28  # a square of one factor 1 + 2⁻³⁰ and the roundings in float64
CONTENT, EPSILON, BEFORE = 0.75, 0.125, 2  # BEFORE: channels that are not set apart


def squares(row) -> Fraction:
    return sum((Fraction(entry) ** 2 for entry in row), Fraction(0))


def assert_just_below(bound: float, square: Fraction) -> None:
    assert Fraction(bound) ** 2 < square < Fraction(bound) ** 2 * Fraction(ROUNDED)


def assert_just_above(bound: float, square: Fraction) -> None:
    assert square < Fraction(bound) ** 2 < square * Fraction(ROUNDED)


def test_norms_of_stored_tokens_are_enclosed() -> None:
    """The least without the mean, the largest with it, in exact fractions."""
    tokens = np.array([[3.0, -1.0], [5.0, -4.0], [0.25, -4.0]])
    enclosed = position_norms(tokens)
    assert_just_below(enclosed.least, squares([2, -2]))
    assert_just_above(enclosed.most, squares([5, -4]))
    assert enclosed.leaning == 3.75


@pytest.mark.parametrize(("width", "content", "norm"), [(3, 0.7, 1.1), (7, 2.3, 0.2)])
def test_deviations_are_enclosed(width: int, content: float, norm: float) -> None:
    enclosed = deviations(width, EPSILON, content, norm)
    low = squares([norm]) / width + Fraction(EPSILON)
    assert_just_below(enclosed.lowest, low)
    assert_just_above(enclosed.highest, low + squares([content]) / width)


@pytest.mark.parametrize("scores", [*product((-1.5, 0.25, 2.0), repeat=2)])
def test_of_two_keys_the_leak_is_the_largest_at_any_corner(scores: tuple[float, float]) -> None:
    """With each score and each deviation at either end; more only by the roundings."""
    slack, ends = (0.5, 0.25), (0.8, 1.7)
    worst = 0.0
    for signs in product((-1, 1), repeat=2):
        target, other = (v + s * e for v, s, e in zip(scores, slack, signs, strict=True))
        for of_query, of_target, of_other in product(ends, repeat=3):
            ahead = (other / of_other - target / of_target) / of_query
            worst = max(worst, 1 / (1 + np.exp(-ahead)))
    args = np.array([scores]), np.array([slack]), np.array([0]), Deviations(*ends)
    assert worst < leaks(*args).item() < worst * ROUNDED


def small_block(seed: int):
    """One head on 1 × 2 tokens, whose maps do not cancel the mean: model, code and block."""
    rng = np.random.default_rng(seed)
    width = BEFORE + CHANNELS
    query, key = rng.normal(size=(2, 3, width))
    query[:, :BEFORE] = key[:, :BEFORE] = 0
    model = VisionTransformer(
        naming="timm",
        heads=1,
        assumed=False,
        epsilon=EPSILON,
        patch=np.zeros((width, 3, 1, 1)),
        patch_bias=np.zeros(width),
        prefix=np.zeros((0, width)),
        positions=np.pad(rng.normal(size=(2, CHANNELS)), [(0, 0), (BEFORE, 0)]),
        table=None,
        blocks=(),
    )
    code = PositionCode.of((1, 2), (0, 0), "circular")
    return model, code, {"query.weight": query, "key.weight": key}


@pytest.mark.parametrize("seed", range(6))
def test_the_leak_of_a_block_is_that_of_its_formula(seed: int) -> None:
    """Loops over queries and keys; 2⁻⁴⁰ of the absolute terms is seen, as 10⁻¹³ is less."""
    model, code, block = small_block(seed)
    actual = stored_leaks(model, code, block, ((0, 0),), CONTENT)
    stored, width = model.positions[:, BEFORE:], BEFORE + CHANNELS
    query, key = (block[f"{part}.weight"][:, BEFORE:] for part in ("query", "key"))
    mean = (BEFORE**0.5 * CONTENT + max(abs(sum(row)) for row in stored)) / width
    up = 1 + 2.0**-30
    spread = [sum((x - sum(row) / CHANNELS) ** 2 for x in row) ** 0.5 for row in stored]
    norms = [sum(x * x for x in row) ** 0.5 for row in stored]
    low = ((min(spread) / up) ** 2 / width + EPSILON) ** 0.5 / up
    high = ((CONTENT**2 + (max(norms) * up) ** 2) / width + EPSILON) ** 0.5 * up
    worst = 0.0
    for at in range(2):
        ends = []
        for k, sign in ((at, -1), (1 - at, 1)):
            score = slack = absolute = 0.0
            for q_row, k_row in zip(query, key, strict=True):
                component = sum(a * b for a, b in zip(stored[at], q_row, strict=True))
                met = sum(a * b for a, b in zip(stored[k], k_row, strict=True))
                score += component * met
                absolute += sum(abs(stored[at] * q_row)) * sum(abs(stored[k] * k_row))
            sums = [sum(part.T) for part in (query, key)]
            slack = mean * abs(sum((query @ stored[at]) * sums[1]))
            slack += mean * abs(sum((key @ stored[k]) * sums[0]))
            slack += mean**2 * abs(sum(sums[0] * sums[1])) + 2.0**-40 * absolute
            ends.append((score + sign * slack * up) / 3**0.5)
        target, other = min(ends[0] / low, ends[0] / high), max(ends[1] / low, ends[1] / high)
        ahead = max((other - target) / low, (other - target) / high)
        total = np.exp(ahead) * up
        worst = max(worst, total / (1 + total))
    assert actual.item() == pytest.approx(worst, rel=1e-13, abs=0)


@pytest.mark.parametrize("seed", range(6))
def test_no_content_leaks_more(seed: int) -> None:
    """Content along the ones, against them, across them and none, of the largest norm."""
    model, code, block = small_block(seed)
    bound = stored_leaks(model, code, block, ((0, 0),), CONTENT).item()
    size = CONTENT / BEFORE**0.5
    contents = np.array([(0, 0), (size, size), (-size, -size), (size, -size)])
    worst = 0.0
    for chosen in product(contents, repeat=2):
        tokens = model.positions.copy()
        tokens[:, :BEFORE] = chosen
        centred = tokens - tokens.mean(axis=1, keepdims=True)
        normal = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + EPSILON)
        queries, keys = (normal @ block[f"{part}.weight"].T for part in ("query", "key"))
        scores = queries @ keys.T / 3**0.5
        ahead = scores[[0, 1], [1, 0]] - np.diag(scores)
        worst = max(worst, float((1 / (1 + np.exp(-ahead))).max()))
    assert worst < bound
