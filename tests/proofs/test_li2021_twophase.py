"""L21.twophase: not run until whole runs back it; and what is checkable sees planted errors."""

import copy
import json
import shutil
from pathlib import Path

import pytest
from proofs.cordonnier2020_records import GIT, changed, name_of
from proofs.plants.changes import one_more
from proofs.plants.li2021_twophase import PLANTS
from proofs.plants.planting import load, piece_of, require_failure

from convattn_lab.data.download import ARCHIVES
from convattn_lab.records import record as recording
from convattn_lab.records.experiments import FIRST, PRINTED, WITH, WITHOUT, paper_runs
from convattn_lab.records.rows import HALF_HUNDREDTH, Pipeline, margin
from convattn_lab.settings import to_json
from convattn_ledger import EvidenceFailed, Level, NotRunHere, Verdict
from convattn_ledger.evidence.experiments import BackingRun

ROOT = Path(__file__).parents[2]
MEASURED, BEFORE = "runs at the paper's size", "before training"
ROW = Pipeline()
IMAGES = {
    "name": "CIFAR-100",
    "note": "",
    "classes": 100,
    "train": 50_000,
    "validation": 0,
    "test": 10_000,
    "archive_md5": ARCHIVES["cifar100-binary"].md5,
}


def full_record(**accuracies):
    """Whole runs with the printed accuracies, or others."""
    runs = {}
    for name, settings in paper_runs().items():
        steps = settings.training.epochs * (50_000 // 128)
        runs[name] = {
            "config": to_json(settings),
            "run": {"images": dict(IMAGES), "git": GIT, "sittings": [{"git": GIT}]},
            "result": {
                "status": "finished",
                "step": steps,
                "steps": steps,
                "test_accuracy": accuracies.get(name, PRINTED.get(name, 0.75)),
                "test_images": 10_000,
            },
            "conversion": None,
            "initial": None,
        }
    first = runs[FIRST]
    for name in (WITH, WITHOUT):
        runs[name]["initial"] = "ab" * 32
        runs[name]["conversion"] = {
            "source": {"config": first["config"], "result": first["result"]},
            "conversion": {"kind": "limit", "logit": 40.0},
            "check": {"passed": True},
        }
    return json.loads(json.dumps({"claim": ROW.claim, "runs": runs}))


def test_the_row_is_not_run_and_says_what_would_back_it() -> None:
    claim = load("li2021", "twophase")
    assert claim.verdict is Verdict.NOT_RUN
    piece, run = piece_of("li2021", "twophase", MEASURED)
    assert piece.check.experiment() == ROW
    assert piece.check.path == ROOT / "proofs/li2021/twophase.json"
    assert piece.check.verdict is Verdict.NOT_RUN
    assert piece.level is Level.MEASURED
    with pytest.raises(NotRunHere, match=r"NOT RUN: .*compare --config cmhsa5 .* record FOLDER"):
        piece.check(run)


def test_whole_runs_back_the_row(tmp_path) -> None:
    assert ROW.reasons_against(full_record()) == []
    _, run = piece_of("li2021", "twophase", MEASURED)
    path = tmp_path / "record.json"
    path.write_text(json.dumps(full_record()))
    detail = BackingRun(lambda: ROW, path, Verdict.REPRODUCED)(run)
    assert "limit-40-with 78.74 % (printed 78.74 %)" in detail
    with pytest.raises(EvidenceFailed, match="the verdict is 'reproduced'"):
        BackingRun(lambda: ROW, path, Verdict.NOT_RUN)(run)


@pytest.mark.parametrize(
    "accuracies",
    [{WITH: 0.70}, {"only-attention": 0.60}, {"only-convolution": 0.7790, WITH: 0.7780}],
    ids=["far below", "alone far below", "near, but no better than convolution alone"],
)
def test_other_figures_do_not_reproduce_it(accuracies) -> None:
    record = full_record(**accuracies)
    assert ROW.judge(record, Verdict.NOT_REPRODUCED)
    with pytest.raises(EvidenceFailed, match="the verdict is 'not reproduced'"):
        ROW.judge(record, Verdict.REPRODUCED)


@pytest.mark.parametrize(
    ("where", "value"),
    [
        ("claim", "C20.quadratic"),
        ("runs.phase1.config.training.epochs", 20),
        ("runs.phase1.config.model.depth", 2),
        ("runs.phase1.config.images.rand_augment", 0.0),
        ("runs.phase1.config.training.learning_rate", 2e-3),
        ("runs.limit-40-with.config.training.learning_rate", 3e-4),
        ("runs.limit-40-without.config.training.warmup", 0.025),
        ("runs.phase1.result.status", "stopped"),
        ("runs.phase1.result.test_images", 500),
        ("runs.limit-40-with.result.test_accuracy", 0.78745),
        ("runs.phase1.run.images.name", "CIFAR-10"),
        ("runs.phase1.run.images.archive_md5", None),
        ("runs.phase1.run.images.train", 5000),
        ("runs.phase1.run.git.changed", True),
        ("runs.only-attention.initial", "ab" * 32),
        ("runs.limit-40-with.conversion", None),
        ("runs.limit-40-with.conversion.conversion.logit", 10.0),
        ("runs.limit-40-with.conversion.source.result", {}),
        ("runs.limit-40-with.conversion.check.passed", False),
        ("runs.limit-40-with.conversion.check.passed", 1),
        ("runs.phase1", None),
        ("runs", []),
    ],
)
def test_reduced_or_damaged_runs_back_nothing(where, value) -> None:
    record, name = changed(full_record(), where, value), name_of(where)
    for verdict in (Verdict.REPRODUCED, Verdict.NOT_REPRODUCED, Verdict.NOT_RUN):
        with pytest.raises(EvidenceFailed, match=f"does not count for L21.twophase: .*{name}"):
            ROW.judge(record, verdict)


def test_a_run_that_nothing_is_known_of_backs_nothing() -> None:
    extra = changed(full_record(), "runs.extra", full_record()["runs"][FIRST])
    with pytest.raises(EvidenceFailed, match=r"runs=\['extra', .*\], but expected \['limit-40-wi"):
        ROW.judge(extra, Verdict.REPRODUCED)


def test_the_margin_is_three_deviations_and_half_of_what_is_printed() -> None:
    assert margin(0.5, HALF_HUNDREDTH) == pytest.approx(3 * (2 * 0.25 / 10_000) ** 0.5 + 0.00005)


def test_a_record_is_written_only_of_runs_that_back_the_row(tmp_path, monkeypatch) -> None:
    whole = full_record()
    monkeypatch.setattr(
        recording, "record_of", lambda folder, claim: copy.deepcopy(whole["runs"][folder.name])
    )
    (tmp_path / "li2021").mkdir()
    shutil.copy(ROOT / "proofs/li2021/twophase.py", tmp_path / "li2021")
    seed = tmp_path / "seed-0"
    actual, check = recording.write_record(seed, ROW.claim, tmp_path)
    assert json.loads(check.path.read_text()) == actual == whole
    whole["runs"][WITH]["result"]["test_accuracy"] = 0.5
    with pytest.raises(ValueError, match=r"is there already, of another run"):
        recording.write_record(seed, ROW.claim, tmp_path)
    recording.write_record(seed, ROW.claim, tmp_path, replace=True)
    whole["runs"][WITH]["result"]["status"] = "stopped"
    with pytest.raises(
        ValueError, match=r"count for L21\.twophase: runs\.limit-40-with\.result\.st"
    ):
        recording.write_record(seed, ROW.claim, tmp_path, replace=True)


def test_another_architecture_is_seen(monkeypatch) -> None:
    where = "lab.models.sizes.parameter_count"
    require_failure(monkeypatch, "li2021", "twophase", BEFORE, where, one_more)


def test_every_piece_has_a_planted_error() -> None:
    names = {piece.name for piece in load("li2021", "twophase").evidence}
    assert names == {MEASURED, BEFORE, *(title for _, title, *_ in PLANTS)}
