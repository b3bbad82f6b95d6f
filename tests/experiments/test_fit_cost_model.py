import json

import fit_cost_model
from comparison import assert_within, gamma
from experiments.synthetic_rows import row
from fit_cost_model import choices, fitted_rates

from convattn.fast.cost_model import Rates

RATES = Rates(1e-11, 2e-10, 3e-9, 4e-6)
WORK = ([1e9, 1e6, 1e5, 10.0], [1e7, 1e8, 1e6, 20.0], [1e6, 1e6, 1e7, 30.0], [1e4, 1e4, 1e3, 90.0])


def seconds(work, rates=RATES):
    return sum(rate * count for rate, count in zip(rates, work, strict=True))


def measured_rows():
    return [
        row("dense", seconds(work), side=16 * (index + 1), work=work)
        for index, work in enumerate(WORK)
    ]


def test_rates_that_made_the_times_are_found_again() -> None:
    # Scaled to unit columns the system has a condition below 100; a solution by normal equations
    # squares it, with a few hundred roundings.
    slack = 100**2 * gamma(400, float)
    for rate, expected in zip(fitted_rates(measured_rows()), RATES, strict=True):
        assert_within(rate / expected, 1.0, slack)


def test_rates_are_never_negative() -> None:
    paid = Rates(1e-11, -2e-10, 3e-9, 4e-6)
    rows = [
        row("dense", seconds(work, paid), side=i + 1, work=work)
        for i, work in enumerate(
            ([1e9, 1e6, 1e5, 10.0], [1e8, 1e6, 1e6, 20.0], [1e6, 1e5, 1e7, 30.0])
        )
    ]
    assert min(fitted_rates(rows)) == 0.0


def test_choice_is_the_least_expected_and_regret_is_measured() -> None:
    cheap, dear = [1e9, 0.0, 0.0, 0.0], [2e9, 0.0, 0.0, 0.0]
    rows = [
        row("dense", 3.0, work=cheap),
        row("separable", 2.0, work=dear),
        row("windowed", 1.0, work=[0.0] * 4),  # auto does not take it unasked
        row("lax.conv", 0.5),
        row("auto", 0.1, work=cheap),
        row("dense", 1.0, side=32, work=cheap),  # alone, no choice
    ]
    (choice,) = choices(rows, RATES)
    assert (choice.chosen, choice.fastest, choice.regret) == ("dense", "separable", 1.5)


def test_main_prints_rates_for_pasting(tmp_path, monkeypatch, capsys) -> None:
    rows = [*measured_rows(), row("separable", 2.0, work=[1e12, 0.0, 0.0, 0.0])]
    path = tmp_path / "bench.json"
    record = {
        "environment": {"backend": "cpu", "device": "cpu"},
        "rows": [row.to_json() for row in rows],
    }
    path.write_text(json.dumps(record))
    monkeypatch.setattr("sys.argv", ["fit_cost_model.py", str(path)])
    fit_cost_model.main()
    printed = capsys.readouterr().out
    assert '"cpu": Rates(' in printed
    assert "fastest in 1 of 1" in printed


def test_rates_are_installed_only_if_they_choose_no_worse(tmp_path, monkeypatch) -> None:
    path = tmp_path / "there" / "rates.json"
    monkeypatch.setenv("CONVATTN_RATES", str(path))
    cheap, dear = [1e9, 0.0, 0.0, 0.0], [1e3, 0.0, 0.0, 9.0]
    rows = [row("dense", 1.0, work=cheap), row("separable", 2.0, work=dear)]
    right, wrong = Rates(1e-9, 0.0, 0.0, 1.0), Rates(1.0, 0.0, 0.0, 0.0)
    assert "are kept" in fit_cost_model.installed("a", rows, wrong, right)
    assert not path.exists()
    assert "where backend='auto' reads them" in fit_cost_model.installed("a", rows, right, wrong)
    fit_cost_model.installed("b", rows, right, right)
    assert json.loads(path.read_text()) == {"a": right._asdict(), "b": right._asdict()}
