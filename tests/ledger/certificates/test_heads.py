"""Certificates of S.heads, S.headdim and S.width: what they say, and what is refused."""

import numpy as np
import pytest
from ledger.certificates.verdicts import make, verdict

from convattn.bounds.flattened_kernel import exact_rank, flattened_kernel
from convattn.bounds.heads import count_heads
from convattn_ledger.certificates import lower_bound
from convattn_ledger.certificates.head_dimension import (
    head_dimension_body,
    triangular_kernel,
)
from convattn_ledger.certificates.lower_bound import generic_bound_body
from convattn_ledger.certificates.narrow_heads import narrow_heads_body


@pytest.mark.parametrize(
    ("size", "patch", "inputs", "outputs", "axes", "expected"),
    [
        (3, 1, 2, 3, 2, 6),
        (3, 1, 9, 2, 2, 9),
        (3, 4, 1, 1, 2, 9),
        (9, 2, 1, 1, 2, 9),
        (9, 2, 1, 2, 2, 18),
        (9, 2, 3, 1, 2, 25),
        (9, 2, 1, 1, 1, 3),
        (9, 2, 2, 1, 1, 5),
    ],
)
def test_generic_bounds(size, patch, inputs, outputs, axes, expected):
    certificate = make("S.heads", generic_bound_body, size, patch, inputs, outputs, axes=axes)
    body = certificate["body"]
    assert body["heads"] == len(body["rows"]) == len(body["columns"]) == expected
    kernel = np.array(body["kernel"]).reshape(*(size,) * axes, inputs, outputs)
    assert exact_rank(flattened_kernel(kernel, patch)) == expected
    result = verdict(certificate)
    assert result.accepted, result
    assert result.claim == "S.heads"


def test_generic_bounds_that_are_refused(monkeypatch):
    with pytest.raises(ValueError, match="kernel_size=4, but should be odd"):
        generic_bound_body(4, 2, 1, 1)
    with pytest.raises(ValueError, match="at most 128 heads"):
        generic_bound_body(13, 1, 13, 13)
    with pytest.raises(ValueError, match="50000 numbers"):
        generic_bound_body(3, 16, 100, 100)
    monkeypatch.setattr(lower_bound, "independent_rows", lambda *args: ([], []))
    with pytest.raises(ValueError, match="none of 20 kernels has rank 9"):
        generic_bound_body(3, 2, 1, 1)


@pytest.mark.parametrize("regime", ["limit", "finite"])
@pytest.mark.parametrize(
    ("size", "patch", "inputs", "outputs", "width"),
    [(3, 16, 3, 3, 64), (5, 16, 3, 3, 64), (3, 4, 3, 3, 5), (5, 3, 2, 2, 7), (3, 2, 1, 3, 2)],
)
def test_head_dimensions_say_what_heads_says(size, patch, inputs, outputs, width, regime):
    certificate = make(
        "S.headdim", head_dimension_body, size, patch, inputs, outputs, width, regime
    )
    body = certificate["body"]
    counts = count_heads(
        size, patch_size=patch, in_channels=inputs, out_channels=outputs, head_dim=width
    )
    part = counts.limit if regime == "limit" else counts.exact
    necessary = part.bounded or part.necessary  # in the limit for value maps that stay bounded
    assert body["necessary"] == necessary
    if regime == "limit":
        assert body["sufficient"] == (part.bounded_sufficient or part.sufficient)
    else:  # S.width has fewer
        assert body["sufficient"] >= part.sufficient
    result = verdict(certificate)
    assert result.accepted, result
    assert result.claim == "S.headdim"


@pytest.mark.parametrize("regime", ["limit", "finite"])
@pytest.mark.parametrize(
    ("size", "patch", "inputs", "outputs", "width", "axes"),
    [
        (3, 16, 3, 3, 64, 2),
        (3, 4, 2, 3, 5, 2),
        (5, 3, 3, 2, 4, 2),
        (7, 4, 2, 2, 3, 1),
        (3, 9, 1, 1, 3, 1),
    ],
)
def test_narrow_heads_are_those_that_heads_counts(
    size, patch, inputs, outputs, width, axes, regime
):
    sizes = (size, patch, inputs, outputs, width)
    certificate = make("S.width", narrow_heads_body, *sizes, regime, axes=axes)
    names = ("patch_size", "in_channels", "out_channels", "head_dim")
    options = dict(zip(names, sizes[1:], strict=True))
    counts = count_heads((size,) * axes, **options, attention="shared")
    part = counts.limit if regime == "limit" else counts.exact
    assert certificate["body"]["count"] == part.sufficient
    result = verdict(certificate)
    as_one_hot = (size, patch, regime) in ((5, 3, "limit"), (7, 4, "limit"), (7, 4, "finite"))
    assert result.accepted != as_one_hot, result
    assert result.code == ("heads" if as_one_hot else "")  # no case of S.width


@pytest.mark.parametrize(("inputs", "outputs"), [(3, 3), (2, 4), (4, 2), (1, 3)])
def test_triangular_kernels(inputs, outputs):
    kernel = triangular_kernel(3, inputs, outputs)
    square = kernel[..., : min(inputs, outputs), : min(inputs, outputs)]
    assert (np.diagonal(square[1, 1]) == 1).all()
    away = square.copy()
    away[1, 1] -= np.eye(len(away[1, 1]), dtype=int)
    assert not np.tril(away).any()
    assert kernel.any(axis=(2, 3)).all()


def test_head_dimensions_that_are_refused():
    for arguments in ((3, 2, 1, 1, 1, "limit"), (1, 2, 3, 3, 1, "limit")):
        with pytest.raises(ValueError, match="take more channels or a larger kernel"):
            head_dimension_body(*arguments)
