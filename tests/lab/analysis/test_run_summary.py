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
    assert plan.differences(replace(plan, source=others, kept=[[2]], epochs_before=9)) == [
        "kept",
        "epochs_before",
        "source.config",
        "source.images_sha256",
    ]


DAMAGE = {
    "no images": ("run.json", {}, "name is missing"),
    "images a list": ("run.json", {"images": []}, "images is \\[\\], but expected dict"),
    "no number of images": ("run.json", {"images": {"name": "a", "note": ""}}, "train is missing"),
    "a name of None": (
        "run.json",
        {"images": {"name": None, "note": "", "train": 1}},
        "name is None, but expected str",
    ),
    "no status": ("result.json", {}, "status is missing"),
    "no accuracy": ("result.json", {"status": "finished"}, "test_accuracy is missing"),
    "an accuracy in words": (
        "result.json",
        {"status": "finished", "test_accuracy": "high", "test_images": 5},
        "test_accuracy is 'high', but expected float",
    ),
    "an accuracy of NaN": (
        "result.json",
        {"status": "finished", "test_accuracy": float("nan"), "test_images": 5},
        "test_accuracy is nan, but expected float",
    ),
    "a truth value for a number": (
        "result.json",
        {"status": "finished", "test_accuracy": 0.5, "test_images": True},
        "test_images is True, but expected int",
    ),
    "a list for a line": ("metrics.jsonl", [1], "line 1 is .1., but expected the numbers of an"),
    "a line without an epoch": ("metrics.jsonl", {"step": 1}, "epoch is missing"),
    "a loss in words": (
        "metrics.jsonl",
        {"step": 1, "epoch": 1, "train_loss": "low"},
        "line 1: train_loss is 'low', but expected float",
    ),
}


@pytest.mark.parametrize(("name", "content", "message"), DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_file_is_refused_by_name(tmp_path, name, content, message) -> None:
    run = write_run(tmp_path / "run")
    assert read_summary(run).correct == (125, 500)
    (run / name).write_text(json.dumps(content) + "\n")
    with pytest.raises(ValueError, match=f"{name}.*{message}"):
        read_summary(run)


def test_brackets_without_end_are_damage(tmp_path) -> None:
    run = write_run(tmp_path / "run")
    (run / "result.json").write_text("[" * 100_000)
    with pytest.raises(ValueError, match=r"result\.json is no JSON"):
        read_summary(run)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kept": [1, 2]}, r"kept is \[1, 2\], but expected numbers of heads for each layer"),
        ({"removed": [1, "x"]}, r"removed is \[1, 'x'\], but expected numbers of heads"),
        ({"removed": [1]}, "speaks of 2 and 1 layers, but expected the 2 of the model"),
        ({"epochs_before": "many"}, "epochs_before is 'many', but expected int"),
        ({"pruned": [0.5]}, r"pruned is \[0\.5\], but expected"),
        ({"source": {"config": {}, "result": 3, "images_sha256": ""}}, "result is 3, but expected"),
        ({"thresholds": {"largest": "x"}}, "largest is 'x', but expected float"),
    ],
)
def test_a_damaged_record_of_pruning_is_refused(tmp_path, change, message) -> None:
    path = write_run(tmp_path / "run")
    assert read_pruning(write_pruning(path)) is not None
    with pytest.raises(ValueError, match=rf"pruning\.json.*{message}"):
        read_pruning(write_pruning(path, **change))
