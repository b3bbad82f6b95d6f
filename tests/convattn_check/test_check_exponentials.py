from math import factorial

import pytest
from certificate_cases import CASES, verdict_on

from convattn_check.exponentials import determinant, differences


@pytest.mark.parametrize("size", range(1, 6))
def test_the_determinant_of_powers_is_the_product_of_differences(size):
    assert determinant(size) == differences(size)
    assert len(determinant(size)) == factorial(size)


def test_another_determinant_is_refused(monkeypatch):
    monkeypatch.setattr("convattn_check.exponentials.differences", lambda size: {})
    assert verdict_on(CASES["exponentials"]).code == "determinant"
