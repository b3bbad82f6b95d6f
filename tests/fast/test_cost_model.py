import json

import jax
import pytest

from convattn.fast.backend import Work
from convattn.fast.cost_model import RATES, Rates, rates_file, rates_of, seconds

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


def test_rates_of_this_device_come_first(tmp_path, monkeypatch) -> None:
    path = tmp_path / "rates.json"
    monkeypatch.setenv("CONVATTN_RATES", str(path))
    here, measured = jax.default_backend(), Rates(1.0, 2.0, 3.0, 4.0)
    assert rates_of(here) == RATES[here]
    path.write_text(json.dumps({"another": measured._asdict()}))
    assert rates_of(here) == RATES[here]
    path.write_text(json.dumps({jax.devices()[0].device_kind: measured._asdict()}))
    assert rates_of(here) == measured
    assert rates_of("another platform") == RATES["gpu"]


@pytest.mark.parametrize("content", ["{", "[]", '{"a": {"product": 1}}', '{"a": [1, 2, 3, 4]}'])
def test_a_damaged_file_of_rates_is_named(tmp_path, monkeypatch, content) -> None:
    path = tmp_path / "rates.json"
    path.write_text(content)
    monkeypatch.setenv("CONVATTN_RATES", str(path))
    with pytest.raises(ValueError, match=r"rates\.json holds no rates .*delete it, or name"):
        rates_of(jax.default_backend())


def test_negative_rates_are_refused(tmp_path, monkeypatch) -> None:
    path = tmp_path / "rates.json"
    path.write_text(json.dumps({"a": Rates(1.0, -1.0, 1.0, 1.0)._asdict()}))
    monkeypatch.setenv("CONVATTN_RATES", str(path))
    with pytest.raises(ValueError, match="negative or infinite"):
        rates_of(jax.default_backend())


def test_where_rates_stand(monkeypatch, tmp_path) -> None:
    monkeypatch.delenv("CONVATTN_RATES", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert rates_file() == tmp_path / "convattn" / "rates.json"
