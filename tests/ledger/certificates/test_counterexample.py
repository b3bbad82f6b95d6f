"""The exact linear algebra of the counterexamples, and what each of them says."""

from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from convattn.ledger.certificates.canonical import canonical
from convattn.ledger.certificates.counterexample import (
    border_certificate,
    combination,
    find_separator,
    head_rows,
    no_shared_map_certificate,
    null_space,
    rank_certificate,
    saturation_certificate,
)
from convattn_check import check
from convattn_check.elimination import eliminate

HARD = [{"rows": [["1", "0"], ["1", "0"]]}, {"rows": [["0", "1"], ["0", "1"]]}]
small = st.integers(-3, 3)


def accepted(made):
    return check(canonical(made) + "\n").accepted


def matrices(rows, columns):
    row = st.lists(small, min_size=columns, max_size=columns)
    return st.lists(row, min_size=rows, max_size=rows)


def fractions(rows):
    return [[Fraction(entry) for entry in row] for row in rows]


@given(matrices(3, 4), st.lists(st.fractions(-5, 5), min_size=3, max_size=3))
def test_a_combination_of_the_rows_is_found_again(rows, coefficients):
    basis = fractions(rows)
    target = [sum(c * row[k] for c, row in zip(coefficients, basis, strict=True)) for k in range(4)]
    found = combination(basis, target)
    again = [sum(c * row[k] for c, row in zip(found, basis, strict=True)) for k in range(4)]
    assert again == target


def test_what_is_outside_the_span_is_refused():
    basis = fractions([[1, 0, 0], [0, 1, 0]])
    with pytest.raises(ValueError, match="is not in the span of the 2 rows"):
        combination(basis, fractions([[0, 0, 1]])[0])
    with pytest.raises(ValueError, match="is not in the span of the 2 rows"):
        combination(fractions([[1, 1, 0], [2, 2, 0]]), fractions([[1, 0, 0]])[0])


@given(matrices(3, 5))
def test_the_null_space_is_orthogonal_and_whole(rows):
    basis = null_space(fractions(rows))
    for vector, row in product(basis, rows):
        assert sum(a * b for a, b in zip(vector, row, strict=True)) == 0
    assert len(basis) == 5 - np.linalg.matrix_rank(np.array(rows, float))


def test_rows_from_relative_weights():
    head = {"relative": [[-1, "1/9"], [0, "1"], [1, "1"]]}
    assert head_rows(head, 2) == [
        [Fraction(1, 2), Fraction(1, 2)],
        [Fraction(1, 10), Fraction(9, 10)],
    ]
    assert head_rows(HARD[0], 2) == fractions([[1, 0], [1, 0]])


def test_a_separator_separates():
    stacked = [[entry for row in head_rows(head, 2) for entry in row] for head in HARD]
    separator, tap = find_separator(stacked, 1, 2)
    assert tap == 0
    for row in stacked:
        assert sum(a * b for a, b in zip(separator, row, strict=True)) == 0
    assert separator[0] + separator[3] != 0  # the identity's entries, (0, 0) and (1, 1)


def test_where_a_shared_map_exists_there_is_no_separator():
    """One head that attends to its own pixel computes every 1 × 1 convolution."""
    identity = {"rows": [["1", "0"], ["0", "1"]]}
    with pytest.raises(ValueError, match="a shared map exists"):
        no_shared_map_certificate("A statement.", 1, 2, [identity])


def test_where_the_span_condition_fails_there_is_no_certificate():
    with pytest.raises(ValueError, match="is not in the span"):
        no_shared_map_certificate("A statement.", 1, 2, [HARD[0]])


def test_no_value_maps_fit_the_two_hard_heads():
    """Least squares over all Φ: the residual of the identity is not zero, as the separator says."""
    rows = np.array([[[1, 0], [1, 0]], [[0, 1], [0, 1]]]).reshape(2, 4).T
    identity = np.eye(2).reshape(4)
    _, residual, rank, _ = np.linalg.lstsq(rows, identity, rcond=None)
    assert rank == 2
    assert residual[0] > 0.9  # exactly one
    made = no_shared_map_certificate("A statement.", 1, 2, HARD)
    assert accepted(made)
    made["body"]["separator"] = ["0"] * 4
    assert not check(canonical(made) + "\n", ignore_digests=True).accepted


@given(matrices(3, 2), matrices(2, 4))
def test_the_rank_is_that_of_the_product(value, output):
    made = rank_certificate("A statement.", value, output)
    body = made["body"]
    product = (np.array(value, object) @ np.array(output, object)).tolist()
    assert body["rank"] == eliminate(product)[0]
    assert (body["in_channels"], body["head_dimension"], body["out_channels"]) == (3, 2, 4)


def test_a_rank_is_recomputed():
    made = rank_certificate("A statement.", [[1], [2], [3]], [[1, 1, 1]])
    assert accepted(made)
    made["body"]["rank"] = 2  # D_out - D_h, as printed
    assert not check(canonical(made) + "\n", ignore_digests=True).accepted


def weights_between(alpha):
    """e^-α/θ² and e^-α, to 60 digits."""
    with localcontext(prec=60):
        theta = 1 + 2 * sum((-Decimal(alpha) * n * n).exp() for n in range(1, 9))
        return (-Decimal(alpha)).exp() / theta**2, (-Decimal(alpha)).exp()


@pytest.mark.parametrize(
    ("alpha", "exponent", "conclusion"),
    [
        (46, -149, "survives"),
        (102, -149, "survives"),
        (86, -126, "survives"),
        (104, -150, "vanishes"),
        (88, -126, "vanishes"),
    ],
)
def test_a_weight_survives_or_vanishes(alpha, exponent, conclusion):
    low, high = weights_between(alpha)
    threshold = Decimal(2) ** exponent
    assert low > threshold if conclusion == "survives" else high < threshold
    made = saturation_certificate("A statement.", alpha, exponent, conclusion)
    assert accepted(made)
    other = {"survives": "vanishes", "vanishes": "survives"}[conclusion]
    assert not accepted(saturation_certificate("A statement.", alpha, exponent, other))
    e = Decimal(1).exp()
    assert Fraction(made["body"]["e_lower"]) < Fraction(e) < Fraction(made["body"]["e_upper"])


def test_computed_float32_weights_agree():
    """What the certificates say of float32, in NumPy's float32."""
    for alpha, zero in ((46, False), (102, False), (104, True)):
        assert (np.exp(np.float32(-alpha)) == 0) == zero
    tiny = np.finfo(np.float32).tiny
    assert np.exp(np.float32(-86)) > tiny > np.exp(np.float64(-88))


@pytest.mark.parametrize("patch", [1, 2])
@pytest.mark.parametrize("kernel", [[[1, 1, 1]] * 3, [[1, -2, 0], [3, 5, 1], [0, 0, 7]]])
def test_the_sums_are_those_of_the_convolution_of_ones(patch, kernel):
    queries = ((0, 0), (1, 2))
    made = border_certificate("L21.theorem1", "A statement.", kernel, (6, 8), patch, queries)
    for (row, column), sums in zip(queries, made["body"]["sums"], strict=True):
        expected = []
        for p, q in product(range(patch), repeat=2):
            y, x = row * patch + p, column * patch + q
            expected.append(
                sum(
                    kernel[i][j]
                    for i, j in product(range(3), repeat=2)
                    if 0 <= y + i - 1 < 6 and 0 <= x + j - 1 < 8
                )
            )
        assert sums == expected
    assert accepted(made)


def test_two_inner_queries_are_no_border():
    box = [[1, 1, 1]] * 3
    made = border_certificate("C20.theorem1", "A statement.", box, (6, 8), 1, ((1, 1), (2, 3)))
    assert made["body"]["sums"] == [[9], [9]]
    assert not accepted(made)
