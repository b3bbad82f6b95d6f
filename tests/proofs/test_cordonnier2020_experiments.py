"""The rows for experiments: not run until a whole run backs them, and never by a reduced one."""

import json
from fractions import Fraction

import pytest
from planted_claims import load, piece_of, require_failure
from proofs.cordonnier2020_records import REDUCED, changed, full_record

from convattn.evidence.experiments import backing_run, judge, margin, shortcomings
from convattn.evidence.first_parameters import gap_to_normal
from convattn.ledger import EvidenceFailed, Level, NotRunHere, Verdict

ROWS = ("quadratic", "learned", "content", "gaussian", "pruned", "heads16")
GAUSSIANS = ("quadratic", "gaussian", "heads16")
MEASURED, TESTED = "a run at the paper's size", "before training"


def names(row: str) -> dict:
    """What the proof file of a row defines."""
    return piece_of("cordonnier2020", row, TESTED)[0].check.__globals__


def check_with(row: str, record, tmp_path, verdict: Verdict) -> str:
    """The measured check of a row as it would be with this record and verdict."""
    _, run = piece_of("cordonnier2020", row, MEASURED)
    path = tmp_path / "record.json"
    path.write_text(record if isinstance(record, str) else json.dumps(record))
    further = [names(row)["row_of"]] if row == "pruned" else []
    return backing_run(names(row)["ROW"], path, verdict, *further)(run)


@pytest.mark.parametrize("row", ROWS)
def test_a_row_is_not_run_and_says_what_would_back_it(row) -> None:
    claim = load("cordonnier2020", row)
    assert claim.verdict is Verdict.NOT_RUN
    assert {item.level for item in claim.evidence} == {Level.MEASURED, Level.TESTED}
    piece, run = piece_of("cordonnier2020", row, MEASURED)
    with pytest.raises(
        NotRunHere, match=r"NOT RUN: .*`python experiments/\w+\.py .*record\.py RUN"
    ):
        piece.check(run)


@pytest.mark.parametrize("row", ROWS)
def test_a_whole_run_backs_a_row(row, tmp_path) -> None:
    item = names(row)["ROW"]
    record = full_record(item, 0.9)
    if row == "pruned":
        record["pruning"] = {"removed": [2, 4, 1, 2, 6, 0], "epochs_before": 300}
    if item.printed is None:
        assert "no accuracy is printed" in check_with(row, record, tmp_path, Verdict.REPRODUCED)
    else:
        record["result"]["test_accuracy"] = item.printed + 0.005
        seen = check_with(row, record, tmp_path, Verdict.REPRODUCED)
        assert f"printed {100 * item.printed:.1f} %, 0.50 points apart" in seen
        with pytest.raises(EvidenceFailed, match="the verdict is 'reproduced'"):
            check_with(row, record, tmp_path, Verdict.NOT_REPRODUCED)
        for accuracy in (item.printed - 0.02, item.printed + 0.02):
            record["result"]["test_accuracy"] = accuracy
            assert check_with(row, record, tmp_path, Verdict.NOT_REPRODUCED)
            with pytest.raises(EvidenceFailed, match="the verdict is 'not reproduced'"):
                check_with(row, record, tmp_path, Verdict.REPRODUCED)
    with pytest.raises(EvidenceFailed, match="not run'"):
        check_with(row, record, tmp_path, Verdict.NOT_RUN)


@pytest.mark.parametrize(("where", "value", "message"), REDUCED)
@pytest.mark.parametrize("verdict", [Verdict.REPRODUCED, Verdict.NOT_REPRODUCED, Verdict.NOT_RUN])
def test_a_reduced_run_backs_no_row(where, value, message, verdict, tmp_path) -> None:
    for row in set(ROWS) - {"pruned"}:
        item = names(row)["ROW"]
        record = full_record(item, item.printed or 0.9)
        assert shortcomings(item, record) == []
        with pytest.raises(EvidenceFailed, match=f"does not back C20.{row}: .*{message}"):
            judge(item, changed(record, where, value), verdict)


@pytest.mark.parametrize(
    ("pruning", "message"),
    [
        (None, "no heads were pruned for it"),
        ({"removed": [0] * 6, "epochs_before": 300}, "but expected some heads of six layers"),
        ({"removed": [1] * 3, "epochs_before": 300}, "but expected some heads of six layers"),
        ({"removed": [2, 4, 1, 2, 6, 0], "epochs_before": 30}, "after 30 epochs"),
        ({"removed": [2, 4, 1, 2, 5, 0], "epochs_before": 300}, "model.heads is"),
    ],
)
def test_a_pruned_row_needs_a_whole_run_before(pruning, message, tmp_path) -> None:
    record = full_record(names("pruned")["ROW"], 0.934)
    if pruning is not None:
        record["pruning"] = pruning
    with pytest.raises(EvidenceFailed, match=message):
        check_with("pruned", record, tmp_path, Verdict.REPRODUCED)


def test_a_pruned_row_takes_other_heads_and_epochs_but_no_other_rate(tmp_path) -> None:
    record = full_record(names("pruned")["ROW"], 0.934)
    record["pruning"] = {"removed": [0, 1, 0, 0, 9, 0], "epochs_before": 300}
    record = changed(record, "config.model.heads", [9, 8, 9, 9, 0, 9])
    record = changed(record, "config.training.epochs", 12)
    assert check_with("pruned", record, tmp_path, Verdict.REPRODUCED)
    record = changed(record, "config.training.learning_rate", 0.1)
    with pytest.raises(EvidenceFailed, match=r"learning_rate is 0\.1, not 0\.01"):
        check_with("pruned", record, tmp_path, Verdict.REPRODUCED)


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"claim": "C20.quadratic"}', "\x00"])
def test_what_is_no_record_backs_nothing(text, tmp_path) -> None:
    with pytest.raises(EvidenceFailed, match=r"record\.json is no record of a run"):
        check_with("quadratic", text, tmp_path, Verdict.NOT_RUN)


def test_what_counts_as_reproduced() -> None:
    share = Fraction(938, 1000)
    variance = 2 * share * (1 - share) / 10_000
    assert (Fraction(margin(0.938)) - Fraction(5, 10_000)) ** 2 == pytest.approx(9 * variance)


@pytest.mark.parametrize("row", ROWS)
def test_another_architecture_is_seen(row, monkeypatch) -> None:
    piece, run = piece_of("cordonnier2020", row, TESTED)

    def one_head_less(original):
        return lambda settings: original(
            type(settings)(settings.encoding, heads=(settings.heads[0] - 1, *settings.heads[1:]))
        )

    require_failure(monkeypatch, piece, run, "convattn.models.sizes.abstract_model", one_head_less)


@pytest.mark.parametrize("row", GAUSSIANS)
@pytest.mark.parametrize("name", ["center_variance", "spread_variance"])
def test_the_variances_of_the_authors_code_are_seen(row, name, monkeypatch) -> None:
    piece, run = piece_of("cordonnier2020", row, TESTED)
    other = {"center_variance": 4.0, "spread_variance": 0.0001}[name]

    def with_other(original):
        return lambda settings, *given, **named: original(
            type(settings)(
                settings.encoding, heads=settings.heads, width=settings.width, **{name: other}
            ),
            *given,
            **named,
        )

    where = "convattn.models.positional_attention.PositionalAttention"
    require_failure(monkeypatch, piece, run, where, with_other)


def test_the_distance_from_a_normal_law() -> None:
    """Against its definition, for three numbers; each is tested on both of its sides."""
    gap, allowed = gap_to_normal([0.0, 0.0, 100.0], 2.0)
    assert gap == 0.5
    assert allowed > 1 / 2
    assert gap_to_normal([-100.0] * 4, 2.0)[0] == pytest.approx(1.0)
