import json

import pytest
from analysis.synthetic_runs import write_run

from convattn.analysis.table import PRINTED, TableRow, markdown_table, rich_table, table_row
from convattn.evidence.model_size import MIXING, flops, parameters, self_attention_model
from convattn.models.settings import EncoderSettings, ResNetSettings

CIFAR = {"name": "CIFAR-10", "test_images": 10_000, "size": (32, 32), "snapshots": {}}


def paper_run(path, model=None, **more):
    accuracies = [0.1] * 299 + [0.9381]
    given = {"train": accuracies, "test": accuracies, "epochs": 300, **CIFAR, **more}
    return write_run(path, model or EncoderSettings(), **given)


def test_the_papers_model_stands_beside_the_papers_figure(tmp_path) -> None:
    row = table_row(paper_run(tmp_path / "quadratic", note="JPEG-recompressed"))
    parts = self_attention_model("quadratic")
    assert row == TableRow(
        "quadratic",
        0.9381,
        9381,
        10_000,
        "93.8 % (9,381 of 10,000)",
        0.938,
        parameters(parts),
        flops(parts),
        flops(parts, MIXING),
        "CIFAR-10 (JPEG-recompressed)",
        "",
    )
    assert row.cells() == (
        "quadratic",
        "93.8 % (9,381 of 10,000)",
        "93.8 %",
        "12.1M",
        "6.18B",
        "9.01B",
        "CIFAR-10 (JPEG-recompressed)",
        "–",
    )


def test_every_model_of_the_tables_is_known(tmp_path) -> None:
    printed = {
        "resnet": 0.938,
        "quadratic": 0.938,
        "gaussian": 0.934,
        "pruned": 0.934,
        "learned": 0.918,
        "content": 0.871,
    }
    for (name, figure), (model, _) in zip(printed.items(), PRINTED, strict=True):
        assert table_row(paper_run(tmp_path / name, model)).paper == figure
    assert sum(9 - heads for heads in PRINTED[3][0].heads) == 15


def test_other_models_and_images_have_no_figure_of_the_paper(tmp_path) -> None:
    for number, (model, more) in enumerate(
        [
            (EncoderSettings(heads=(16,) * 6), {}),
            (EncoderSettings(width=64), {}),
            (ResNetSettings(blocks=(3, 4, 6, 3)), {}),
            (EncoderSettings(), {"name": "CIFAR-100"}),
            (EncoderSettings(), {"size": (64, 64)}),
        ]
    ):
        row = table_row(paper_run(tmp_path / str(number), model, **more))
        assert row.paper is None
        assert row.cells()[2] == "–"


def test_another_training_is_said(tmp_path) -> None:
    run = write_run(tmp_path / "short", EncoderSettings(dropout=0.0), **CIFAR)
    assert table_row(run).remarks == "epochs 4, not 300"


def test_an_unfinished_run_claims_nothing(tmp_path) -> None:
    row = table_row(paper_run(tmp_path / "young", finished=False, epochs=301))
    assert (row.accuracy, row.correct, row.test_images) == (None, None, None)
    assert row.accuracy_text == "unfinished, epoch 300 of 301"
    assert "93.81" not in " ".join(row.cells())


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
