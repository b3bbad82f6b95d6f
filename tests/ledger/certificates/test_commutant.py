"""Certificates of commutants: made for any small grid, and accepted."""

import math

import pytest
from ledger.certificates.verdicts import accepted, make

from convattn_ledger.certificates.commutant import commutant_body


@pytest.mark.parametrize("grid", [(2,), (7,), (2, 3), (1, 4), (2, 2, 2)])
@pytest.mark.parametrize("boundary", ["bare", "torus"])
def test_it_is_accepted(grid, boundary):
    certificate = make("A19.equivariance", commutant_body, grid, boundary)
    assert accepted(certificate)
    assert certificate["body"]["dimension"] == (1 if boundary == "bare" else math.prod(grid))
