import pytest
from certificate_cases import verdict_on
from kernel_cases import triangular


@pytest.mark.parametrize("patch", [2, 3, 5])
@pytest.mark.parametrize("dimension", [1, 2, 3])
@pytest.mark.parametrize("regime", ["limit", "finite"])
def test_other_sizes(patch, dimension, regime):
    certificate = triangular(regime, dimension, patch)
    verdict = verdict_on(certificate)
    assert verdict.accepted, verdict
    assert f"take at least {certificate['body']['necessary']}" in verdict.reason
