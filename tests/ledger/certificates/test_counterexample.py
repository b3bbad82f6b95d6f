"""The exact linear algebra of the counterexamples, and what each of them says."""

from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ledger.certificates.verdicts import accepted, make

from convattn_check.elimination import eliminate
from convattn_ledger.certificates.counterexample import (
    border_body,
    head_rows,
    no_shared_map_body,
    rank_body,
    saturation_body,
)

HARD = [{"rows": [["1", "0"], ["1", "0"]]}, {"rows": [["0", "1"], ["0", "1"]]}]
small = st.integers(-3, 3)


def matrices(rows, columns):
    row = st.lists(small, min_size=columns, max_size=columns)
    return st.lists(row, min_size=rows, max_size=rows)


def test_rows_from_relative_weights():
    head = {"relative": [[-1, "1/9"], [0, "1"], [1, "1"]]}
    assert head_rows(head, 2) == [
        [Fraction(1, 2), Fraction(1, 2)],
        [Fraction(1, 10), Fraction(9, 10)],
    ]
    assert head_rows(HARD[0], 2) == [[1, 0], [1, 0]]


@pytest.mark.parametrize(
    ("heads", "message"),
    [
        ([{"rows": [["1", "0"], ["0", "1"]]}], "a shared map exists"),  # every 1 × 1 convolution
        ([HARD[0]], "is not in the span"),
    ],
)
def test_where_a_shared_map_exists_or_the_spans_do_not_hold_there_is_no_certificate(heads, message):
    with pytest.raises(ValueError, match=message):
        no_shared_map_body(1, 2, heads)


def test_no_value_maps_fit_the_two_hard_heads():
    """Least squares over all Φ: the residual of the identity is not zero, as the separator says."""
    rows = np.array([[[1, 0], [1, 0]], [[0, 1], [0, 1]]]).reshape(2, 4).T
    identity = np.eye(2).reshape(4)
    _, residual, rank, _ = np.linalg.lstsq(rows, identity, rcond=None)
    assert rank == 2
    assert residual[0] > 0.9  # exactly one
    assert accepted(make("C20.lemma3", no_shared_map_body, 1, 2, HARD))


@given(matrices(3, 2), matrices(2, 4))
def test_the_rank_is_that_of_the_product(value, output):
    body = rank_body(value, output)
    product = (np.array(value, object) @ np.array(output, object)).tolist()
    assert body["rank"] == eliminate(product)[0]
    assert (body["in_channels"], body["head_dimension"], body["out_channels"]) == (3, 2, 4)


def test_a_rank_that_is_not_the_printed_difference_is_accepted():
    assert accepted(make("C20.rank", rank_body, [[1], [2], [3]], [[1, 1, 1]]))  # 1, not 3 - 1


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
    certificate = make("C20.alpha46", saturation_body, alpha, exponent, conclusion)
    assert accepted(certificate)
    other = {"survives": "vanishes", "vanishes": "survives"}[conclusion]
    assert not accepted(make("C20.alpha46", saturation_body, alpha, exponent, other))
    low, high = (Fraction(certificate["body"][f"e_{end}"]) for end in ("lower", "upper"))
    assert low < Fraction(Decimal(1).exp()) < high


@pytest.mark.parametrize("patch", [1, 2])
@pytest.mark.parametrize("size", [3, 5])
def test_the_sums_are_those_of_the_convolution_of_ones(size, patch):
    tokens, queries = (6 // patch, 8 // patch), ((0, 0), (1, 2))
    body = border_body(size, patch, tokens, queries)
    for (row, column), sums in zip(queries, body["sums"], strict=True):
        taps = list(product(range(-(size // 2), size // 2 + 1), repeat=2))
        assert sums == [
            sum(0 <= y + i < 6 and 0 <= x + j < 8 for i, j in taps)
            for y in range(row * patch, (row + 1) * patch)
            for x in range(column * patch, (column + 1) * patch)
        ]
    assert accepted(make("S.padding", border_body, size, patch, tokens, queries))


def test_two_inner_queries_are_no_border():
    certificate = make("C20.theorem1", border_body, 3, 1, (6, 8), ((1, 1), (2, 3)))
    assert certificate["body"]["sums"] == [[9], [9]]
    assert not accepted(certificate)
