"""The rows for experiments: not run until a whole run backs them, and never by a reduced one."""

import json
from fractions import Fraction
from itertools import cycle
from pathlib import Path

import pytest
from proofs.cordonnier2020_records import (
    DAMAGED,
    PRUNED_OTHERWISE,
    REDUCED,
    changed,
    full_record,
    name_of,
)
from proofs.plants.planting import load, piece_of, require_failure

from convattn_lab.models.first_parameters import gap_to_normal
from convattn_lab.records.rows import Row, margin
from convattn_ledger import EvidenceFailed, Level, NotRunHere, Verdict
from convattn_ledger.evidence.experiments import BackingRun

ROOT = Path(__file__).parents[2]
ROWS = ("quadratic", "learned", "content", "gaussian", "pruned", "heads16")
MEASURED, TESTED = "a run at the paper's size", "before training"


def row_of(name: str) -> Row:
    """What a row of the ledger is about."""
    return piece_of("cordonnier2020", name, MEASURED)[0].check.experiment()


def check_with(row: str, record, tmp_path, verdict: Verdict) -> str:
    """The measured check of a row as it would be with this record and verdict."""
    _, run = piece_of("cordonnier2020", row, MEASURED)
    path = tmp_path / "record.json"
    path.write_text(record if isinstance(record, str) else json.dumps(record))
    return BackingRun(lambda: row_of(row), path, verdict)(run)


@pytest.mark.parametrize("row", ROWS)
def test_a_row_is_not_run_and_says_what_would_back_it(row) -> None:
    claim = load("cordonnier2020", row)
    assert claim.verdict is Verdict.NOT_RUN
    assert {item.level for item in claim.evidence} == {Level.MEASURED, Level.TESTED}
    piece, run = piece_of("cordonnier2020", row, MEASURED)
    assert piece.check.path == ROOT / f"proofs/cordonnier2020/{row}.json"
    assert piece.check.verdict is Verdict.NOT_RUN
    assert row_of(row).claim == claim.id
    with pytest.raises(
        NotRunHere, match=r"NOT RUN: .*`python experiments/\w+\.py .*record\.py RUN"
    ):
        piece.check(run)


@pytest.mark.parametrize("row", [row for row in ROWS if row != "heads16"])
def test_a_whole_run_backs_a_row(row, tmp_path) -> None:
    item = row_of(row)
    right = round(10_000 * item.printed)
    record = full_record(item, (right + 50) / 10_000)
    detail = check_with(row, record, tmp_path, Verdict.REPRODUCED)
    assert f"printed {100 * item.printed:.1f} %, 0.50 points apart" in detail
    with pytest.raises(EvidenceFailed, match="the verdict is 'reproduced'"):
        check_with(row, full_record(item, item.printed), tmp_path, Verdict.NOT_REPRODUCED)
    for gap in (-200, 200):
        record = full_record(item, (right + gap) / 10_000)
        assert check_with(row, record, tmp_path, Verdict.NOT_REPRODUCED)
        with pytest.raises(EvidenceFailed, match="the verdict is 'not reproduced'"):
            check_with(row, record, tmp_path, Verdict.REPRODUCED)
        with pytest.raises(EvidenceFailed, match="not run'"):
            check_with(row, record, tmp_path, Verdict.NOT_RUN)


def test_without_a_printed_figure_none_is_reproduced(tmp_path) -> None:
    record = full_record(row_of("heads16"), 0.1)
    detail = check_with("heads16", record, tmp_path, Verdict.NOT_RUN)
    assert detail.startswith(
        "10.00 % of 10,000 test images (seed 5, bfloat16, 1 x cpu); no accuracy"
    )
    for verdict in (Verdict.REPRODUCED, Verdict.NOT_REPRODUCED):
        with pytest.raises(EvidenceFailed, match="the verdict is 'not run', but the row says"):
            check_with("heads16", record, tmp_path, verdict)


@pytest.mark.parametrize(("where", "value"), REDUCED)
def test_a_reduced_run_backs_no_row(where, value) -> None:
    verdicts = cycle((Verdict.REPRODUCED, Verdict.NOT_REPRODUCED, Verdict.NOT_RUN))
    for row, verdict in zip((row for row in ROWS if row != "pruned"), verdicts, strict=False):
        item = row_of(row)
        record = changed(full_record(item, item.printed or 0.9), where, value)
        with pytest.raises(EvidenceFailed, match=f"not count for C20.{row}: .*{name_of(where)}"):
            item.judge(record, verdict)


def test_sessions_of_several_commits_back_no_row() -> None:
    sessions = [{"git": {"commit": "d" * 40, "changed": False}}]
    record = changed(full_record(row_of("learned"), 0.938), "run.sittings", sessions)
    with pytest.raises(
        EvidenceFailed, match="expected one commit in all training sessions, unchanged; run `"
    ):
        row_of("learned").judge(record, Verdict.REPRODUCED)


@pytest.mark.parametrize(("where", "value"), DAMAGED)
@pytest.mark.parametrize("row", ["quadratic", "pruned"])
def test_a_damaged_record_backs_nothing(where, value, row, tmp_path) -> None:
    record = changed(full_record(row_of(row), 0.938), where, value)
    with pytest.raises(EvidenceFailed, match="does not count"):
        check_with(row, record, tmp_path, Verdict.REPRODUCED)


@pytest.mark.parametrize(("where", "value"), PRUNED_OTHERWISE)
def test_a_pruned_row_needs_the_paper_s_pruning_of_a_whole_run(where, value, tmp_path) -> None:
    record = full_record(row_of("pruned"), 0.934)
    assert check_with("pruned", record, tmp_path, Verdict.REPRODUCED)
    with pytest.raises(EvidenceFailed, match=name_of(where)):
        check_with("pruned", changed(record, where, value), tmp_path, Verdict.REPRODUCED)


def test_a_pruned_row_takes_other_heads_and_fewer_epochs(tmp_path) -> None:
    record = full_record(row_of("pruned"), 0.934, removed=(0, 1, 0, 0, 9, 0))
    assert record["config"]["model"]["heads"] == [9, 8, 9, 9, 0, 9]
    record = changed(record, "config.training.epochs", 12)
    record["result"] |= {"step": 6000, "steps": 6000}
    assert check_with("pruned", record, tmp_path, Verdict.REPRODUCED)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", r"record\.json is no record of a run"),
        ("\x00", r"record\.json is no record of a run"),
        ("[]", r"record=\[\], but expected an object"),
        ("3", "record=3, but expected an object"),
    ],
)
def test_what_is_no_record_backs_nothing(text, message, tmp_path) -> None:
    with pytest.raises(EvidenceFailed, match=message):
        check_with("quadratic", text, tmp_path, Verdict.NOT_RUN)


def test_what_counts_as_reproduced() -> None:
    share = Fraction(938, 1000)
    variance = 2 * share * (1 - share) / 10_000
    assert (Fraction(margin(0.938)) - Fraction(5, 10_000)) ** 2 == pytest.approx(9 * variance)


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.quick(2)
def test_another_architecture_is_seen(row, monkeypatch) -> None:
    def one_head_less(original):
        return lambda settings: original(
            type(settings)(settings.encoding, heads=(settings.heads[0] - 1, *settings.heads[1:]))
        )

    where = "lab.models.sizes.abstract_model"
    require_failure(monkeypatch, "cordonnier2020", row, TESTED, where, one_head_less)


def test_the_distance_from_a_normal_law() -> None:
    """Against its definition, for three numbers; each is tested on both of its sides."""
    gap, allowed = gap_to_normal([0.0, 0.0, 100.0], 2.0)
    assert gap == 0.5
    assert allowed > 1 / 2
    assert gap_to_normal([-100.0] * 4, 2.0)[0] == pytest.approx(1.0)
