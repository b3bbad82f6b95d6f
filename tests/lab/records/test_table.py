"""A row of the results: the run's own accuracy beside the paper's, and what differs."""

import json
from dataclasses import replace

import pytest
from lab.analysis.synthetic_runs import write_pruning, write_run

from convattn_lab.analysis.run_summary import read_summary
from convattn_lab.models.settings import EncoderSettings, ResNetSettings
from convattn_lab.records.experiments import paper_settings
from convattn_lab.records.table import (
    PRUNED,
    TableRow,
    _printed_accuracy,
    _read_shape,
    markdown_table,
    rich_table,
    table_row,
)
from convattn_lab.runs.directory import RunDirectory
from convattn_lab.runs.settings import ImageSettings
from convattn_lab.settings import to_json
from convattn_ledger.evidence.model_size import MIXING, flops, parameters, self_attention_model

CIFAR = {"name": "CIFAR-10", "test_images": 10_000, "size": (32, 32), "snapshots": {}}


def paper_run(path, model=None, **more):
    accuracies = [0.1] * 299 + [0.9381]
    options = {"train": accuracies, "test": accuracies, "epochs": 300, **CIFAR, **more}
    return write_run(path, model or EncoderSettings(), **options)


def test_the_papers_model_stands_beside_the_papers_number(tmp_path) -> None:
    row = table_row(paper_run(tmp_path / "quadratic", note="JPEG-recompressed"))
    layers = self_attention_model("quadratic")
    assert row == TableRow(
        "quadratic",
        0.9381,
        9381,
        10_000,
        "93.8 % (9,381 of 10,000)",
        0.938,
        parameters(layers),
        flops(layers),
        flops(layers, MIXING),
        "CIFAR-10 (JPEG-recompressed)",
        "",
    )
    numbers = ("93.8 % (9,381 of 10,000)", "93.8 %", "12.1M", "6.18B", "9.01B")
    assert row.cells() == ("quadratic", *numbers, "CIFAR-10 (JPEG-recompressed)", "–")


@pytest.mark.parametrize(
    ("model", "images", "printed"),
    [
        (EncoderSettings(), {}, 0.938),
        (EncoderSettings("gaussian"), {}, 0.934),
        (EncoderSettings("gaussian", heads=(7, 5, 8, 7, 3, 9)), {}, 0.934),
        (EncoderSettings("learned"), {}, 0.918),
        (EncoderSettings("content"), {}, 0.871),
        (ResNetSettings(), {}, 0.938),
        (EncoderSettings(heads=(16,) * 6), {}, None),
        (EncoderSettings(width=64), {}, None),
        (ResNetSettings(blocks=(3, 4, 6, 3)), {}, None),
        (EncoderSettings(), {"name": "CIFAR-100"}, None),
        (EncoderSettings(), {"size": (64, 64)}, None),
    ],
)
def test_the_papers_number_is_that_of_its_model_and_images(
    tmp_path, model, images, printed
) -> None:
    path = paper_run(tmp_path / "run", model, **images)
    assert _printed_accuracy(read_summary(path), _read_shape(path)) == printed


def test_another_training_is_said(tmp_path) -> None:
    model = EncoderSettings(dropout=0.0, attention_dropout=0.1, norm_epsilon=1e-5)
    run = write_run(tmp_path / "short", model, seed=3, select="best", **CIFAR)
    assert table_row(run).remarks.split("; ") == [
        "model.attention_dropout is 0.1, not 0.0",
        "model.dropout is 0.0, not 0.1",
        "model.norm_epsilon is 1e-05, not 1e-12",
        "training.epochs is 4, not 300",
        "training.select is best, not last",
    ]
    directory = RunDirectory(paper_run(tmp_path / "plain", ResNetSettings()))
    settings = directory.read_settings()
    directory.write_settings(replace(settings, images=ImageSettings(crop=0, flip=False)))
    assert table_row(directory.path).remarks.split("; ") == [
        "images.crop is 0, not 4",
        "images.flip is False, not True",
    ]


@pytest.mark.slow
def test_a_pruned_run_is_told_from_one_with_so_few_heads(tmp_path) -> None:
    model = EncoderSettings("gaussian", heads=PRUNED)
    scratch = table_row(paper_run(tmp_path / "scratch", model))
    assert scratch.paper == 0.934
    assert scratch.remarks == "not pruned, but trained with so few heads"
    options = {"train": (0.1,) * 30, "test": (0.9,) * 30, "epochs": 30, "learning_rate": 0.01}
    run = write_run(tmp_path / "pruned", model, **CIFAR, **options)
    source = {"config": to_json(paper_settings("gaussian"))}
    source |= {"result": {}, "images_sha256": ""}
    removed = [2, 4, 1, 2, 6, 0]
    stored = {"source": source, "kept": [list(range(count)) for count in PRUNED]}
    assert table_row(write_pruning(run, **stored, removed=removed)).remarks == ""
    thresholds = {"largest": 1e-3, "condition": 1e5}
    source["config"]["training"]["epochs"] = 200
    row = table_row(write_pruning(run, **stored, removed=[3, *removed[1:]], thresholds=thresholds))
    assert row.remarks.split("; ") == [
        "pruned from a run whose model.heads is [9, 9, 9, 9, 9, 9], not [10, 9, 9, 9, 9, 9]",
        "pruned from a run whose training.epochs is 200, not 300",
        "pruned from [10, 9, 9, 9, 9, 9] heads, not 9 in each layer",
        "pruned by the thresholds {'largest': 0.001, 'condition': 100000.0}",
    ]


def test_an_unfinished_run_claims_nothing(tmp_path) -> None:
    row = table_row(paper_run(tmp_path / "young", finished=False, epochs=301))
    assert (row.accuracy, row.correct, row.test_images) == (None, None, None)
    assert row.accuracy_text == "unfinished, epoch 300 of 301"
    assert "93.81" not in " ".join(row.cells())


@pytest.mark.parametrize(
    ("name", "value"),
    [("size", [10**9, 32]), ("size", [32]), ("size", [32.0, 32]), ("classes", 10**12)],
)
def test_images_of_any_size_are_not_built_for(tmp_path, name, value) -> None:
    run = write_run(tmp_path / "run")
    metadata = RunDirectory(run).read_metadata()
    metadata["images"][name] = value
    RunDirectory(run).write("run.json", metadata)
    with pytest.raises(ValueError, match="two sides of 1 to 1,024 pixels"):
        table_row(run)


def test_a_run_that_does_not_say_its_images_is_refused(tmp_path) -> None:
    run = paper_run(tmp_path / "old")
    (run / "run.json").write_text(
        json.dumps({"images": {"name": "CIFAR-10", "note": "", "train": 9, "classes": 10}})
    )
    with pytest.raises(ValueError, match="does not say 'size' of its images"):
        table_row(run)


def test_both_forms_have_every_cell(tmp_path) -> None:
    rows = [table_row(paper_run(tmp_path / "a|b")), table_row(write_run(tmp_path / "tiny"))]
    lines = markdown_table(rows).splitlines()
    assert len(lines) == 4
    assert lines[2].startswith("| a\\|b | 93.8 % (9,381 of 10,000) | 93.8 % | 12.1M | 6.18B |")
    assert all(line.replace("\\|", "").count("|") == 9 for line in lines)
    assert rich_table(rows).row_count == 2
