import math

import jax
import pytest

from convattn.ledger.audit.bias_saturation import measure_bias_saturation
from convattn.ledger.audit.float_format import float_format


@pytest.mark.parametrize("name", ["float64", "float32", "bfloat16", "float16"])
def test_measured_agrees_with_predicted_and_with_the_subnormal_flags(
    name, check_saturation
) -> None:
    with jax.enable_x64(name == "float64"):
        score = float_format(name)
        rows = measure_bias_saturation(score, keys=(2, 28, 1024))
        assert {row.keys for row in rows} == {2, 28, 1024}
        for row in rows:
            check_saturation(row.logit, score, float_format(row.softmax_dtype))


def test_40_rounds_to_one_in_float32_for_every_practical_number_of_keys() -> None:
    for row in measure_bias_saturation(float_format("float32")):
        assert row.deficit_at_claimed == 0
        assert row.logit.rounds_to_one < 40


def test_40_does_not_in_float64() -> None:
    with jax.enable_x64(True):
        rows = {row.keys: row for row in measure_bias_saturation(float_format("float64"))}
    for keys in (256, 1024, 50176):
        assert rows[keys].logit.rounds_to_one > 40
        # Added one by one each rival raises Z by at most twice itself, then 1/Z is rounded.
        most = 2 * (keys - 1) * math.exp(-40) + 2.0**-52
        assert 0 < rows[keys].deficit_at_claimed <= most


def test_27_keys_are_the_last_for_which_40_can_round_to_one_in_float64() -> None:
    # Added up first, the N - 1 rivals leave 1 alone as long as (N - 1)·e^-40 ≤ 2^-53.
    assert 26 * math.exp(-40) <= 2.0**-53 < 27 * math.exp(-40)
    with jax.enable_x64(True):
        row = measure_bias_saturation(float_format("float64"), keys=(14,))[0]
    assert row.deficit_at_claimed == 0


def test_one_hot_does_not_depend_on_the_number_of_keys() -> None:
    rows = measure_bias_saturation(float_format("float32"), keys=(2, 27, 1024))
    assert len({row.logit.one_hot for row in rows}) == 1
