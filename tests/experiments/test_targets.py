import io
from dataclasses import replace

import pytest
from benchmarks.growth import exponent, growths, predicted_seconds
from benchmarks.measurement import Memory
from benchmarks.rows import row_from_json
from benchmarks.settings import GIB
from benchmarks.table import print_round, print_summary
from benchmarks.targets import targets
from comparison import assert_within, gamma
from experiments.synthetic_rows import left_out, row
from rich.console import Console

SIDES = (16, 32, 48, 64, 224)


def good_rows():
    """A run that meets every target: lax.conv takes as many seconds as there are pixels."""
    rows = []
    for side in SIDES:
        pixels = float(side * side)
        rows += [
            row("lax.conv", pixels, side=side),
            row("auto", pixels, side=side, chose="separable"),
            row("grid", pixels, side=side, chose="separable"),
            row("dense", 16 * pixels, side=side),
            row("plain dense", 32 * pixels, side=side),
        ]
        small = Memory(GIB // 4, GIB // 4, GIB // 2)
        rows += [
            row(name, pixels, side=side, features=64, memory=small, resident=GIB)
            for name in ("auto", "grid", "lax.conv")
        ]
    for side, features in ((32, 64), (14, 768)):
        rows += [
            row("shift", 0.5, case="finite", side=side, features=features),
            row("lax.conv", 0.5, case="finite", side=side, features=features),
        ]
    return rows


def targets_of(rows):
    return targets(rows, growths(rows), 1)


def with_changed(rows, contestant, side, features=400, **changes):
    return [
        replace(row, **changes)
        if (row.contestant, row.side, row.features) == (contestant, side, features)
        else row
        for row in rows
    ]


def missed(rows):
    return {target.asked for target in targets_of(rows) if target.verdict.startswith("missed")}


def test_a_run_that_meets_everything_meets_everything() -> None:
    met = targets_of(good_rows())
    assert {target.verdict for target in met} == {"met"}
    assert len(met) == len(SIDES) + 4 + 1 + 3 + 2 + 2 + 4


@pytest.mark.parametrize(
    ("contestant", "side", "features", "changes", "asked"),
    [
        ("auto", 224, 400, {"backward": [17.0 * 224**2] * 7}, "never slower than dense at 224²"),
        ("auto", 16, 400, {"backward": [1.3 * 256] * 7}, "auto ≤ 1.25× lax.conv at 16²"),
        ("auto", 64, 400, {"backward": [1.45 * 4096] * 7}, "≥ 12× faster than dense at 64²"),
        ("grid", 32, 400, {"backward": [1.2 * 1024] * 7}, "grid ≤ 1.15× lax.conv at 32²"),
        ("grid", 224, 64, {"memory": Memory(0, 0, 2 * GIB)}, "grid: 224², D = 64"),
        ("auto", 224, 64, {"resident": 3 * GIB}, "auto: 224², D = 64"),
        ("shift", 14, 768, {"backward": [0.6] * 7}, "shift ≤ 1.0× lax.conv at 14², D = 768"),
        ("auto", 224, 64, {"backward": [64.0 * 224**2] * 7}, "auto: exponent ≤ 1.6"),
    ],
)
def test_each_target_is_missed_by_a_run_that_misses_it(
    contestant, side, features, changes, asked
) -> None:
    asked_for = missed(with_changed(good_rows(), contestant, side, features, **changes))
    assert any(asked in target for target in asked_for)
    assert len(asked_for) <= 2


def test_a_quarter_of_the_turns_within_the_limit_is_noise() -> None:
    turns = [1.0 * 256] + [1.26 * 256] * 6
    rows = with_changed(good_rows(), "auto", 16, backward=turns)
    (verdict,) = {target.verdict for target in targets_of(rows)} - {"met"}
    assert verdict == "missed"  # the lower quartile is still above
    rows = with_changed(good_rows(), "auto", 16, backward=[1.0 * 256] * 3 + [1.26 * 256] * 4)
    (verdict,) = {target.verdict for target in targets_of(rows)} - {"met"}
    assert verdict == "missed, within the noise"


def test_a_program_is_not_slower_than_itself() -> None:
    rows = with_changed(good_rows(), "auto", 16, backward=[17.0 * 256] * 7, chose="dense")
    assert any(target.measured == "auto is dense" for target in targets_of(rows))
    assert missed(rows) == {"free centres: auto ≤ 1.25× lax.conv at 16²"}
    rows = with_changed(rows, "plain dense", 16, backward=[15.0 * 256] * 7)
    assert "free centres: auto never slower than dense at 16²" in missed(rows)


def test_what_was_not_measured_is_not_met() -> None:
    assert {target.verdict for target in targets_of([])} == {"not measured"}
    skipped = [left_out("auto", "too slow"), row("lax.conv", 1.0)]
    assert {target.verdict for target in targets_of(skipped)} == {"not measured"}


def test_growth_is_the_slope_over_the_range() -> None:
    pixels = [8.0, 64.0, 512.0]
    # Logarithms and a two-column least-squares fit: some fifty roundings of numbers up to 10.
    slack = 10 * gamma(200, float)
    assert_within(exponent(pixels, [p**1.5 for p in pixels]), 1.5, slack)
    rows = [row("auto", float(side**4), side=side) for side in (8, 32, 224, 448)]
    (growth,) = growths(rows)
    assert (growth.first_side, growth.last_side) == (32, 224)
    assert_within(growth.exponent, 2.0, slack)
    assert growths(rows[:2]) == []


def test_the_next_size_is_predicted_from_the_last_two() -> None:
    slack = 256 * gamma(400, float)
    assert predicted_seconds([], 100) == 0
    assert predicted_seconds([(16, 1.0)], 64) == 16.0
    assert_within(predicted_seconds([(1, 9.0), (16, 1.0), (64, 4.0)], 256), 16.0, slack)
    assert_within(predicted_seconds([(16, 4.0), (64, 1.0)], 256), 1.0, slack)
    assert_within(predicted_seconds([(16, 1.0), (64, 64.0)], 256), 64.0 * 16, 64 * slack)


def test_rows_survive_json() -> None:
    complete = row("auto", [0.1, 0.3, 0.2], chose="dense", memory=Memory(1, 2, 3), work=[1.0] * 4)
    record = complete.to_json()
    assert (record["median_backward"], record["memory"]["total"]) == (0.2, 6)
    assert row_from_json(record) == complete
    empty = left_out("torch", "no memory")
    assert row_from_json(empty.to_json()) == empty
    assert "median_backward" not in empty.to_json()


def printed(function, *arguments):
    console = Console(file=io.StringIO(), width=160)
    function(console, *arguments)
    return console.file.getvalue()


def test_round_prints_ratios_fastest_first_and_who_was_left_out() -> None:
    rows = [
        row("dense", 0.8, memory=Memory(2**20, 2**20, 2**20)),
        row("auto", [0.2], chose="separable"),
        row("lax.conv", 0.1, resident=7 * 2**20),
        left_out("plain dense", "the weights of all pairs take 84 GiB"),
    ]
    reported: set[tuple[str, str, str]] = set()
    lines = printed(print_round, rows, reported).splitlines()
    order = [name for line in lines for name in ("lax.conv ", "auto (", "dense  ") if name in line]
    assert order[-3:] == ["lax.conv ", "auto (", "dense  "]
    text = "\n".join(lines)
    assert "auto (separable), one run" in text
    ratios = {"2.00": "auto", "4.00": "auto", "8.00": "dense", "3.0": "dense"}
    for figure, name in ratios.items():
        assert any(figure in line and name in line for line in lines)
    assert "left out: plain dense: the weights of all pairs take 84 GiB" in text
    assert "left out" not in printed(print_round, rows, reported)


def test_summary_prints_exponents_and_targets() -> None:
    rows = good_rows()
    growth = growths(rows)
    text = printed(print_summary, rows, growth, targets(rows, growth, 1))
    assert "32² to 224²" in text
    assert "1.00" in text
    assert "centres on a grid ≤ 1.15× lax.conv at 32²" in text
    assert f"{len(rows)} timed, 0 left out" in text
