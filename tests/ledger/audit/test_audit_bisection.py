import math

import numpy as np
import pytest

from convattn.ledger.audit.bisection import least_representable
from convattn.ledger.audit.float_format import float_format


@pytest.mark.parametrize("name", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("threshold", [1.0001, math.pi, 46 * math.log(10), 1000.5])
def test_finds_the_least_number_of_the_format(name, threshold) -> None:
    number_format = float_format(name)
    found = least_representable(lambda x: float(x) >= threshold, 1.0, 2048.0, number_format)
    assert found >= threshold
    before = np.nextafter(
        np.array(found).astype(number_format.dtype), np.array(0, number_format.dtype)
    )
    assert float(before) < threshold


def test_ends() -> None:
    single = float_format("float32")
    assert least_representable(lambda _: True, 1.0, 2.0, single) == 1.0
    assert least_representable(lambda _: False, 1.0, 2.0, single) is None
    assert least_representable(lambda x: x >= 2, 1.0, 2.0, single) == 2.0


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (2.0, 1.0), (1.0, 1.0), (1.0, 1e9)])
def test_ends_out_of_order_or_range_are_refused(low, high) -> None:
    with pytest.raises(ValueError, match="0 < low < high"), np.errstate(over="ignore"):
        least_representable(lambda _: True, low, high, float_format("float16"))
