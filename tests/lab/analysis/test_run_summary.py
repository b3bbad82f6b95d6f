import json
from dataclasses import replace

import pytest
from lab.analysis.synthetic_runs import write_pruning, write_run

from convattn_lab.analysis.run_summary import Pruning, read_pruning, read_summary, title_of


def test_a_title_says_whose_accuracy_it_is(tmp_path) -> None:
    run = write_run(tmp_path / "last")
    assert title_of(run, "x", 4) == title_of(run, "x")
    assert "parameters of" not in title_of(run, "x")
    assert (
        "\nrun last: test accuracy 25.0 % (125 of 500) with the parameters of epoch 4, CIFAR"
        in title_of(run, "x", 0)
    )
    best = write_run(tmp_path / "best", select="best", validation=(0.1, 0.4, 0.1, 0.1))
    assert "parameters of" not in title_of(best, "x", 2)
    assert "with the parameters of epoch 2" in title_of(best, "x")
    assert "with the parameters of epoch 2" in title_of(best, "x", 4)
    young = write_run(tmp_path / "young", finished=False, select="best")
    assert "\nrun young: unfinished, epoch 4 of 4, CIFAR" in title_of(young, "x", 0)


def test_what_was_pruned_otherwise_is_named() -> None:
    source = {"config": {"seed": 0}, "result": {}, "images_sha256": "a"}
    plan = Pruning(source, {"largest": 1e-5}, [[1]], [2], 300, 0.9)
    assert plan.differences(replace(plan, pruned=0.1, after=0.2)) == []
    others = {"config": {"seed": 1}, "result": {"seconds": 1}, "images_sha256": "b"}
    names = plan.differences(replace(plan, source=others, kept=[[2]], epochs_before=9))
    assert names == ["kept", "epochs_before", "source.config", "source.images_sha256"]


FINISHED = {"status": "finished", "test_accuracy": 0.5, "test_images": 5}
LINE = {"step": 1, "epoch": 1, "train_loss": 0.5}
IMAGES = {"name": "a", "note": "", "train": 1}
DAMAGED = [
    ("run.json", {}, "name is missing"),
    ("run.json", {"images": []}, r"images is \[\]"),
    ("run.json", {"images": {"name": "a", "note": ""}}, "train is missing"),
    ("run.json", {"images": {**IMAGES, "name": None}}, "name is None"),
    ("result.json", {}, "status is missing"),
    ("result.json", {"status": "finished"}, "test_accuracy is missing"),
    ("result.json", {**FINISHED, "test_accuracy": "high"}, "test_accuracy is 'high'"),
    ("result.json", {**FINISHED, "test_accuracy": float("nan")}, "test_accuracy is nan"),
    ("result.json", {**FINISHED, "test_images": True}, "test_images is True"),
    ("result.json", "[" * 100_000, "is no JSON"),
    ("metrics.jsonl", [1], r"line 1 is \[1\]"),
    ("metrics.jsonl", {"step": 1}, "epoch is missing"),
    ("metrics.jsonl", {**LINE, "train_loss": "low"}, "line 1: train_loss is 'low'"),
]


@pytest.mark.parametrize(("name", "content", "message"), DAMAGED)
def test_a_damaged_file_is_refused_by_name(tmp_path, name, content, message) -> None:
    run = write_run(tmp_path / "run")
    assert read_summary(run).correct == (125, 500)
    text = content if isinstance(content, str) else json.dumps(content) + "\n"
    (run / name).write_text(text)
    with pytest.raises(ValueError, match=f"{name}.*{message}"):
        read_summary(run)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kept": [1, 2]}, r"kept is \[1, 2\]"),
        ({"removed": [1, "x"]}, r"removed is \[1, 'x'\]"),
        ({"removed": [1]}, "2 and 1 layers"),
        ({"epochs_before": "many"}, "epochs_before is 'many'"),
        ({"pruned": [0.5]}, r"pruned is \[0\.5\]"),
        ({"source": {"config": {}, "result": 3, "images_sha256": ""}}, "result is 3"),
        ({"thresholds": {"largest": "x"}}, "largest is 'x'"),
    ],
)
def test_a_damaged_record_of_pruning_is_refused(tmp_path, change, message) -> None:
    path = write_run(tmp_path / "run")
    assert read_pruning(write_pruning(path)) is not None
    with pytest.raises(ValueError, match=rf"pruning\.json.*{message}"):
        read_pruning(write_pruning(path, **change))
