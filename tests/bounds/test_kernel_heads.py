"""How many heads a given kernel takes, against other ways to find out."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from strategies import seeds

from convattn.bounds.flattened_kernel import exact_rank, flattened_kernel
from convattn.bounds.kernel_heads import (
    KernelHeads,
    combination,
    count_heads_of_kernel,
    nonnegative_vectors_span,
)
from convattn.bounds.nonnegative_vector import nonnegative_vector


def fractions(matrix):
    return [[Fraction(int(entry)) for entry in row] for row in matrix]


def matrices():
    shapes = st.tuples(st.integers(1, 4), st.integers(1, 6))
    return st.tuples(shapes, seeds()).map(
        lambda case: np.random.default_rng(case[1]).integers(-3, 4, case[0])
    )


def brute_force(matrix):
    """Whether a combination with coefficients of the vertices of a grid is ≥ 0 and not 0."""
    for coefficients in product(range(-4, 5), repeat=len(matrix)):
        y = np.array(coefficients) @ matrix
        if y.min() >= 0 and y.any():
            return True
    return False


@given(matrices())
def test_one_of_the_alternatives_is_proved(matrix):
    rows = fractions(matrix)
    coefficients, positive = nonnegative_vector(rows)
    assert (coefficients is None) != (positive is None)
    if coefficients is not None:
        y = combination(coefficients, rows)
        assert min(y) >= 0
        assert any(y)
    else:
        assert min(positive) > 0
        assert not any(combination(positive, list(zip(*rows, strict=True))))
        if len(matrix) < 4:
            assert not brute_force(matrix)


@given(matrices())
def test_span_of_the_nonnegative_vectors_against_linear_programming(matrix):
    """y ≥ 1 wherever the space does not vanish: floats decide, for small integers."""
    live = matrix[:, np.abs(matrix).max(axis=0) > 0].T
    if not live.size:
        return
    solved = linprog(
        np.zeros(len(matrix)), A_ub=-live, b_ub=-np.ones(len(live)), bounds=(None, None)
    )
    assert nonnegative_vectors_span(fractions(matrix)) == (solved.status == 0)


CASES = [  # kernel, patch size: (rank, limit, bounded, exact)
    (np.ones((3, 3, 1, 1)), 1, (1, 1, 1, 2)),
    (np.ones((3, 3, 1, 1)), 2, (9, 9, 9, 10)),
    ([[[1]], [[0]], [[-1]]], 1, (1, 2, 2, 2)),
    ([[[-1]], [[0]], [[-1]]], 1, (1, 1, 1, 2)),
    ([[[1, 0]], [[0, 1]], [[0, -1]]], 1, (2, 2, 3, 3)),
    (np.zeros((3, 1, 1)), 1, (0, 0, 0, 0)),
    ([[[Fraction(1, 3)]], [[Fraction(-2, 3)]]], 1, (1, 2, 2, 2)),
]


@pytest.mark.parametrize(("kernel", "patch", "expected"), CASES)
def test_known_kernels(kernel, patch, expected):
    heads = count_heads_of_kernel(kernel, patch)
    assert (heads.rank, heads.limit, heads.bounded, heads.exact) == expected


@pytest.mark.parametrize(
    ("shape", "patch", "dilation"), [((3, 2, 2), 2, 2), ((3, 3, 1, 2), 1, 1), ((4, 3, 1, 1), 2, 1)]
)
def test_rank_and_vectors_are_those_of_f(shape, patch, dilation):
    for seed in range(5):
        kernel = np.random.default_rng(seed).integers(-1, 2, shape)
        flattened = np.asarray(flattened_kernel(kernel, patch, dilation=dilation))
        heads = count_heads_of_kernel(kernel, patch, dilation=dilation)
        assert heads.rank == exact_rank(flattened)
        if heads.positive is not None:
            assert not (flattened.astype(object) @ np.array(heads.positive)).any()
        elif heads.nonnegative is not None:
            scale = np.lcm.reduce([entry.denominator for entry in heads.nonnegative])
            whole = [int(entry * scale) for entry in heads.nonnegative]
            assert exact_rank(np.concatenate([flattened, [whole]])) == heads.rank


def test_a_tolerance_takes_the_numerical_rank():
    box = np.ones((3, 3, 1, 2)) + 1e-9 * np.random.default_rng(0).normal(size=(3, 3, 1, 2))
    assert count_heads_of_kernel(box).exact == 3
    near = count_heads_of_kernel(box, tolerance=1e-6)
    assert (near.rank, near.limit, near.exact, near.tolerance) == (1, 1, 2, 1e-6)


def test_numbers_are_exact_unless_a_tolerance_is_said():
    heads = KernelHeads(1, 2, 2, 2, None, (Fraction(1),))
    assert (heads.tolerance, heads.claim) == (0.0, "S.kernel")
    assert count_heads_of_kernel([[[1]], [[0]], [[-1]]]).tolerance == 0


@pytest.mark.parametrize("tolerance", [-1e-9, float("inf"), float("nan"), "0", None])
def test_what_is_no_tolerance(unchecked, tolerance):
    with pytest.raises(ValueError, match=f"tolerance={tolerance!r}, but expected a finite number"):
        count_heads_of_kernel([[[1]]], tolerance=tolerance)


@pytest.mark.parametrize(
    "kernel", [np.ones(3), [[[float("nan")]]], [[["a"]]], np.ones((0, 1, 1)), [[[1j]]]]
)
def test_what_is_no_kernel(kernel):
    with pytest.raises(ValueError, match="kernel"):
        count_heads_of_kernel(kernel)
