"""Certificates of commutants: made for any small grid, and accepted."""

import math

import pytest

from convattn.ledger.certificates.canonical import canonical
from convattn.ledger.certificates.commutant import commutant_certificate
from convattn_check import check


@pytest.mark.parametrize("grid", [(2,), (7,), (2, 3), (1, 4), (2, 2, 2)])
@pytest.mark.parametrize("boundary", ["bare", "torus"])
def test_it_is_accepted(grid, boundary):
    certificate = commutant_certificate("A19.equivariance", "In small.", grid, boundary)
    assert check(canonical(certificate) + "\n").accepted
    assert certificate["body"]["dimension"] == (1 if boundary == "bare" else math.prod(grid))
