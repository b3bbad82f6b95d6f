import certificate_builder as build
import pytest
from certificate_cases import verdict_on


@pytest.mark.parametrize(
    "certificate",
    [
        build.limit_equality("S.dp2", "enumerated", kernel=(32, 32)),
        build.leaky_equality(kernel=(5, 5), patch=(16, 16)),
    ],
    ids=["1024 offsets", "patches of 256"],
)
def test_the_largest_sizes_are_accepted(certificate):
    assert verdict_on(certificate).accepted
