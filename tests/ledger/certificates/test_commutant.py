"""Certificates of commutants: made for any small grid, and accepted."""

import math

import pytest

from convattn_check import check
from convattn_ledger.certificates.canonical import canonical
from convattn_ledger.certificates.catalogue import make_certificate
from convattn_ledger.certificates.commutant import commutant_body


@pytest.mark.parametrize("grid", [(2,), (7,), (2, 3), (1, 4), (2, 2, 2)])
@pytest.mark.parametrize("boundary", ["bare", "torus"])
def test_it_is_accepted(grid, boundary):
    certificate = make_certificate("A19.equivariance", "In small.", commutant_body, grid, boundary)
    assert check(canonical(certificate) + "\n").accepted
    assert certificate["body"]["dimension"] == (1 if boundary == "bare" else math.prod(grid))
