"""A comparison at a small scale: what is trained, the tables and the pictures."""

import shutil
from dataclasses import replace

import pytest
from lab.runs.tiny_pipeline import tiny_pipeline
from lab.runs.tiny_runs import write_pictures
from two_phase_comparison import comparison
from two_phase_comparison.comparison import ComparisonDirectory
from two_phase_comparison.comparison import compare as compare_all
from two_phase_comparison.pictures import draw_comparison, draw_phases, phase_curves
from two_phase_comparison.table import comparison_rows, gradient_rows, markdown

from convattn_lab.runs.directory import RunDirectory, read_json, write_json
from convattn_lab.settings import to_json
from convattn_lab.training.failures import NonFiniteLoss
from convattn_lab.two_phase.pipeline import run_two_phase
from convattn_lab.two_phase.settings import ComparisonSettings, comparison_from_json

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A finished pipeline: its folder and settings."""
    folder = tmp_path_factory.mktemp("pipeline")
    settings = tiny_pipeline(write_pictures(folder / "pictures", train=8, test=4))
    run_two_phase(settings, folder / "run", command="a command")
    return folder / "run", settings


def test_the_curves_of_both_phases_go_on_one_from_the_other(trained) -> None:
    folder, _ = trained
    phases = folder / "phase1", folder / "phase2"
    curves = phase_curves(*phases, "accuracy")
    assert [curve.points[:, 0].tolist() for curve in curves] == [[1], [2], [1], [1, 2]]
    converted = RunDirectory(phases[1]).read_conversion()["test"]["after"]
    assert curves[3].points[0].tolist() == [1, converted]
    figure = draw_phases(*phases, "title")
    assert [len(axes.lines) for axes in figure.axes] == [4, 4]


def test_a_comparison_trains_each_way_once_and_makes_tables(trained, tmp_path, monkeypatch) -> None:
    folder, settings = trained
    shutil.copytree(folder / "phase1", tmp_path / "phase1")
    one_seed = ComparisonSettings(settings, (0,), ("exact-0.5", "random"), ("without",), True)
    real = comparison.train_once
    stopped = {"random-without": "stopped"}

    def train(run, folder, *args):
        if folder.name.startswith("only"):
            raise NonFiniteLoss("the loss of step 1 is nan", 1, 0.1, None)
        return stopped.pop(folder.name, None) or real(run, folder, *args)

    monkeypatch.setattr(comparison, "train_once", train)
    (tmp_path / "out" / "seed-0").mkdir(parents=True)
    write_json(tmp_path / "out" / "comparison.json", {"settings": to_json(one_seed), "command": ""})
    (tmp_path / "phase1").rename(tmp_path / "out" / "seed-0" / "phase1")  # it goes on from there
    assert compare_all(one_seed, tmp_path / "out", command="compare it") is False
    assert compare_all(one_seed, tmp_path / "out", command="compare it") is True
    directory = ComparisonDirectory(tmp_path / "out")
    stored = read_json(tmp_path / "out" / "comparison.json")
    assert comparison_from_json(stored["settings"]) == one_seed
    rows = {row["name"]: row for row in comparison_rows(one_seed, directory)}
    assert list(rows) == [
        "phase1",
        "exact-0.5-without",
        "random-without",
        "only-convolution",
        "only-attention",
    ]
    first = RunDirectory(directory.run(0, "phase1")).read_result()["test_accuracy"]
    assert rows["phase1"]["accuracy"] == {"mean": first, "deviation": None, "count": 1}
    assert rows["exact-0.5-without"]["converted"]["mean"] == first
    assert rows["random-without"]["converted"]["mean"] is None
    assert rows["only-attention"]["accuracy"]["count"] == 0  # it diverged
    (gradients,) = gradient_rows(one_seed, directory)
    assert gradients["groups"]["W_K"]["zeros"] == [10 * 48 * 49]
    text = markdown(list(rows.values()), [gradients], 1)
    assert "| exact, ε = 0.5 | without |" in text
    assert "0 exactly" in text
    pictures = draw_comparison(one_seed, directory)
    assert [path.name for path in pictures[::2]] == [
        "figure2-loss.png",
        "figure2-accuracy.png",
        "conversions-loss.png",
        "conversions-accuracy.png",
    ]
    run = RunDirectory(directory.run(0, "exact-0.5-without")).read_settings()
    assert run.training.warmup == 0
    random_run = RunDirectory(directory.run(0, "random-without"))
    assert (random_run.read_settings().model.heads, random_run.read_initial()) == (9, None)
    other = replace(one_seed, pipeline=replace(settings, check_images=1))
    with pytest.raises(ValueError, match=r"other settings \(they differ in check_images\)"):
        compare_all(other, tmp_path / "out", command="")
