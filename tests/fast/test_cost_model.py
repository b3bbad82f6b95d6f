import pytest

from convattn.fast.backend import Work
from convattn.fast.cost_model import RATES, seconds

NOTHING = Work(0.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize("platform", RATES)
@pytest.mark.parametrize(
    ("field", "rate"),
    [
        ("products", "product"),
        ("moved", "moved"),
        ("exponentials", "exponential"),
        ("calls", "call"),
    ],
)
def test_each_count_is_priced_with_its_own_rate(platform, field, rate) -> None:
    assert seconds(NOTHING._replace(**{field: 4.0}), platform) == 4 * getattr(RATES[platform], rate)


def test_an_unknown_platform_is_taken_for_a_gpu() -> None:
    work = Work(1e9, 1e6, 1e5, 10.0)
    assert seconds(work, "rocm") == seconds(work, "gpu") != seconds(work, "cpu")
