import json
import sys

import device_checks
import jax.numpy as jnp
import numpy as np
import pytest
from device_checks import CASES, check_products, compare, make_layer, reference, results, serving

from convattn.fast.selection import BACK_ENDS
from convattn_ledger.audit.matmul_precision import measure_dot

LABELS = ("quadratic", "dense", "float32", "values")


@pytest.mark.slow
def test_a_difference_beyond_its_bound_is_found() -> None:
    """Planted: a product in fewer bits, a gradient with the wrong sign, a number that is none."""
    setup = make_layer("finite", "float32", 2)
    expected, allowed = reference(setup)
    values, gradients = results(setup, "shift")
    assert compare(LABELS, values, expected[0], allowed[0]).passed
    assert compare(LABELS, gradients, expected[1], allowed[1]).passed
    narrow = np.asarray(values.astype(jnp.bfloat16), np.float32)
    assert not compare(LABELS, narrow, expected[0], allowed[0]).passed
    turned = gradients[0], -gradients[1]
    assert not compare(LABELS, turned, expected[1], allowed[1]).passed
    assert not compare(LABELS, values.at[0].set(jnp.nan), expected[0], allowed[0]).passed


def test_a_product_with_fewer_bits_is_found() -> None:
    def tf32(left, right):
        left, right = (
            (array.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
            for array in (np.asarray(left, np.float32), np.asarray(right, np.float32))
        )
        return left @ right

    assert not check_products([measure_dot(tf32, "HIGHEST")]).passed
    assert check_products([measure_dot(np.matmul, "HIGHEST")]).passed


@pytest.mark.slow
def test_every_back_end_is_checked() -> None:
    assert {name for case in CASES for name in serving(make_layer(case, "float32", 1))} == {
        *BACK_ENDS
    }


@pytest.mark.slow
def test_main_writes_every_check(tmp_path, monkeypatch, capsys) -> None:
    path = tmp_path / "checks.json"
    monkeypatch.setattr(device_checks, "QUICK", ("finite",))
    monkeypatch.setattr(sys, "argv", ["device_checks.py", "--quick", "--json", str(path)])
    assert device_checks.main() == 0
    record = json.loads(path.read_text())
    assert {row["passed"] for row in record["rows"]} == {True, None}
    assert "keeps float32" in record["precision"]
    assert "0 outside their bound" in capsys.readouterr().out
