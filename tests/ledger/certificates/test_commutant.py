"""Certificates of commutants: made for any small grid, and accepted."""

import pytest

from convattn.ledger.certificates.canonical import canonical
from convattn.ledger.certificates.catalogue import COMMUTANTS
from convattn.ledger.certificates.commutant import commutant_certificate
from convattn_check import check


@pytest.mark.parametrize("grid", [(2,), (7,), (2, 3), (1, 4), (2, 2, 2)])
@pytest.mark.parametrize("boundary", ["bare", "torus"])
def test_it_is_accepted(grid, boundary):
    certificate = commutant_certificate("A19.equivariance", "In small.", grid, boundary)
    assert check(canonical(certificate) + "\n").accepted
    nodes = 1
    for side in grid:
        nodes *= side
    assert certificate["body"]["dimension"] == (1 if boundary == "bare" else nodes)


def test_what_is_promised():
    assert {("bare", (2,)), ("bare", (3,)), ("bare", (5,)), ("bare", (2, 3))} <= set(COMMUTANTS)
    assert ("torus", (5,)) in COMMUTANTS
