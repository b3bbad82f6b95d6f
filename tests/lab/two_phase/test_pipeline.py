"""Both phases at a small scale: what is written, what is gone on with, and what is refused."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from comparison import assert_equal
from flax import nnx
from lab.runs.tiny_pipeline import tiny_pipeline

from convattn.cli.experiments.two_phase import main
from convattn.lab.analysis.restored_run import restore_run
from convattn.lab.records.record import record_of
from convattn.lab.runs.directory import RunDirectory, read_json, write_json
from convattn.lab.settings import to_json
from convattn.lab.training.failures import NonFiniteLoss
from convattn.lab.training.metrics import read_metrics
from convattn.lab.training.session import Outcome
from convattn.lab.training.state import named_arrays
from convattn.lab.two_phase import comparison, convert_run, pipeline
from convattn.lab.two_phase.comparison import ComparisonDirectory
from convattn.lab.two_phase.comparison import compare as compare_all
from convattn.lab.two_phase.comparison_table import comparison_rows, gradient_rows, markdown
from convattn.lab.two_phase.conversion_check import ConversionFailed
from convattn.lab.two_phase.pictures import draw_comparison, draw_phases, phase_curves
from convattn.lab.two_phase.pipeline import run_two_phase
from convattn.lab.two_phase.settings import (
    ComparisonSettings,
    ConversionSettings,
    comparison_from_json,
    two_phase_from_json,
)
from convattn.lab.two_phase.transfer import transfer

CONFIGS = Path(__file__).parents[3] / "experiments" / "configs" / "two_phase"
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def trained(tmp_path_factory, pictures):
    """A pipeline that was interrupted after the conversion, and then went on."""
    folder, settings = tmp_path_factory.mktemp("pipeline") / "run", tiny_pipeline(pictures)
    launch = pipeline.launch

    def first_alone(run, path, **given):
        if path.name == "phase2":
            raise KeyboardInterrupt
        return launch(run, path, **given)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(pipeline, "launch", first_alone)
        with pytest.raises(KeyboardInterrupt):
            run_two_phase(settings, folder, command="a command")
    begun = RunDirectory(folder / "phase2").read_conversion()
    before = read_metrics(folder / "phase1")
    summary = run_two_phase(settings, folder, command="another command")
    return folder, settings, summary, begun, before


def test_a_pipeline_goes_on_where_it_stopped(trained) -> None:
    folder, settings, summary, begun, before = trained
    stored = read_json(folder / "two_phase.json")
    assert two_phase_from_json(stored["settings"]) == settings
    assert stored["command"] == "a command"
    assert read_json(folder / "summary.json") == summary
    assert read_metrics(folder / "phase1") == before  # not trained again
    stored = RunDirectory(folder / "phase2").read_conversion()
    for part in ("source", "conversion", "check", "test", "gradients"):
        assert stored[part] == begun[part] == json.loads(json.dumps(stored[part]))
    assert [summary[name]["epochs"] for name in ("phase_one", "phase_two")] == [1, 1]


def test_the_second_phase_begins_with_what_the_first_was_converted_to(trained) -> None:
    folder, settings, *_ = trained
    run = restore_run(folder / "phase1")
    wanted = settings.phase_two
    assert RunDirectory(folder / "phase2").read_settings() == wanted
    two = transfer(run.model, wanted.model, settings.conversion, rngs=nnx.Rngs(0))
    expected = named_arrays(nnx.state(two, nnx.Param))
    initial = RunDirectory(folder / "phase2").read_initial()
    assert initial.keys() == expected.keys()
    for name, array in expected.items():
        assert_equal(initial[name], array, name)


def test_what_the_check_saw_is_on_record(trained) -> None:
    folder, *_ = trained
    stored = RunDirectory(folder / "phase2").read_conversion()
    check, test = stored["check"], stored["test"]
    assert (stored["conversion"]["heads"], stored["conversion"]["ring"]) == (10, 1)
    assert check["passed"] is True
    assert 0 < check["seen"] <= check["bound"] < 0.01
    assert (check["images"], len(check["layers"])) == (2, 1)
    assert (test["images"], test["changed"]) == (4, 0)
    result = RunDirectory(folder / "phase1").read_result()
    assert test["before"] == test["after"] == result["test_accuracy"]
    assert stored["source"]["result"] == result
    gradients = stored["gradients"]
    assert gradients["W_K"]["zeros"] == gradients["W_K"]["parameters"] == 10 * 48 * 49
    for group in ("W_Q", "bias table", "W_V", "W_O", "rest"):
        assert 0 < gradients[group]["norm"] < np.inf
    record = record_of(folder / "phase2", "L21.twophase")
    assert record["conversion"] == stored
    (folder / "phase2" / "conversion.json").rename(folder / "away.json")
    with pytest.raises(ValueError, match=r"has initial\.npz but no pruning\.json or conversion"):
        record_of(folder / "phase2", "L21.twophase")
    (folder / "away.json").rename(folder / "phase2" / "conversion.json")


def test_a_finished_pipeline_trains_nothing(trained, monkeypatch) -> None:
    folder, settings, summary, *_ = trained

    def fail(*given, **more):
        raise AssertionError("not to be called")

    monkeypatch.setattr(pipeline, "launch", fail)
    monkeypatch.setattr(pipeline, "read_phase_one", fail)
    assert run_two_phase(settings, folder, command="") == summary


def test_other_settings_and_other_folders_are_refused(trained, tmp_path) -> None:
    folder, settings, *_ = trained
    other = replace(settings, conversion=ConversionSettings("exact", leak=0.25))
    with pytest.raises(ValueError, match=r"other settings \(they differ in conversion\.leak\)"):
        run_two_phase(other, folder, command="")
    warm = replace(settings, training_two=replace(settings.training_two, warmup=0.0))
    with pytest.raises(ValueError, match=r"they differ in training_two\.warmup"):
        run_two_phase(warm, folder, command="")
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(ValueError, match=r"is not empty and holds no two_phase\.json"):
        run_two_phase(settings, tmp_path, command="")
    with pytest.raises(ValueError, match="is a file"):
        run_two_phase(settings, tmp_path / "thesis.tex", command="")
    (folder / "two_phase.json").rename(tmp_path / "kept.json")
    (folder / "two_phase.json").write_text("{")
    with pytest.raises(ValueError, match="is no JSON"):
        run_two_phase(settings, folder, command="")
    (tmp_path / "kept.json").rename(folder / "two_phase.json")


def test_a_run_that_was_converted_otherwise_is_refused(trained) -> None:
    folder, settings, *_ = trained
    one = convert_run.read_phase_one(folder / "phase1")
    # The same network follows from another leak, but it is not the one that was begun with.
    other = replace(settings, conversion=ConversionSettings("exact", leak=0.25))
    with pytest.raises(ValueError, match="was converted otherwise"):
        convert_run.begin_phase_two(one, folder / "phase2", other)
    moved = replace(one, source={**one.source, "images_sha256": "0" * 64})
    with pytest.raises(ValueError, match="was converted from another run"):
        convert_run.begin_phase_two(moved, folder / "phase2", settings)
    with pytest.raises(ValueError, match=r"trained a VisionTransformer, .*convolution"):
        convert_run.read_phase_one(folder / "phase2")


def test_if_the_check_fails_nothing_is_trained(trained, tmp_path, monkeypatch) -> None:
    folder, settings, *_ = trained
    right = convert_run.transfer

    def wrong(*given, **more):
        two = right(*given, **more)
        two.layers[0].mixing.output[...] = 1.01 * two.layers[0].mixing.output[...]
        return two

    monkeypatch.setattr(convert_run, "transfer", wrong)
    one = convert_run.read_phase_one(folder / "phase1")
    with pytest.raises(ConversionFailed, match=r"layer 1 differs by up to .* Nothing was trained"):
        convert_run.begin_phase_two(one, tmp_path / "phase2", settings)
    assert not (tmp_path / "phase2").exists()


def test_a_failed_check_ends_the_command_with_1(tmp_path, monkeypatch, capsys) -> None:
    def failed(*given, **more):
        raise ConversionFailed("layer 1 is wrong")

    monkeypatch.setattr(pipeline, "run_two_phase", failed)
    words = ["--output-dir", str(tmp_path / "run")]
    assert main(words, configs=CONFIGS) == 1
    assert capsys.readouterr().err == "experiments/two_phase.py: layer 1 is wrong\n"


def test_the_curves_of_both_phases_go_on_one_from_the_other(trained) -> None:
    folder, *_ = trained
    phases = folder / "phase1", folder / "phase2"
    curves = phase_curves(*phases, "accuracy")
    assert [curve.points[:, 0].tolist() for curve in curves] == [[1], [2], [1], [1, 2]]
    converted = RunDirectory(phases[1]).read_conversion()["test"]["after"]
    assert curves[3].points[0].tolist() == [1, converted]
    figure = draw_phases(*phases, "title")
    assert [len(axes.lines) for axes in figure.axes] == [4, 4]


# ------------------------------------------------------------------------------------- comparison
@pytest.mark.slow
def test_a_comparison_trains_each_way_once_and_makes_tables(trained, tmp_path, monkeypatch) -> None:
    folder, settings, *_ = trained
    shutil.copytree(folder / "phase1", tmp_path / "phase1")
    few = ComparisonSettings(settings, (0,), ("exact-0.5", "random"), ("without",), True)
    real = comparison.train_once
    stopped = {"random-without": "stopped"}

    def train(run, folder, *given):
        if folder.name.startswith("only"):
            raise NonFiniteLoss("the loss of step 1 is nan", 1, 0.1, None)
        return stopped.pop(folder.name, None) or real(run, folder, *given)

    monkeypatch.setattr(comparison, "train_once", train)
    (tmp_path / "out" / "seed-0").mkdir(parents=True)
    write_json(tmp_path / "out" / "comparison.json", {"settings": to_json(few), "command": ""})
    (tmp_path / "phase1").rename(tmp_path / "out" / "seed-0" / "phase1")  # it goes on from there
    assert compare_all(few, tmp_path / "out", command="compare it") is False
    assert compare_all(few, tmp_path / "out", command="compare it") is True
    directory = ComparisonDirectory(tmp_path / "out")
    stored = read_json(tmp_path / "out" / "comparison.json")
    assert comparison_from_json(stored["settings"]) == few
    rows = {row["name"]: row for row in comparison_rows(few, directory)}
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
    (gradients,) = gradient_rows(few, directory)
    assert gradients["groups"]["W_K"]["zeros"] == [10 * 48 * 49]
    text = markdown(list(rows.values()), [gradients], 1)
    assert "| exact, ε = 0.5 | without |" in text
    assert "0 exactly" in text
    pictures = draw_comparison(few, directory)
    assert [path.name for path in pictures[::2]] == [
        "figure2-loss.png",
        "figure2-accuracy.png",
        "conversions-loss.png",
        "conversions-accuracy.png",
    ]
    run = RunDirectory(directory.run(0, "exact-0.5-without")).read_settings()
    assert run.training.warmup == 0
    drawn = RunDirectory(directory.run(0, "random-without"))
    assert (drawn.read_settings().model.heads, drawn.read_initial()) == (9, None)
    other = replace(few, pipeline=replace(settings, check_images=1))
    with pytest.raises(ValueError, match=r"other settings \(they differ in check_images\)"):
        compare_all(other, tmp_path / "out", command="")


def test_outcomes_are_as_the_trainer_gives_them(monkeypatch, pictures, tmp_path) -> None:
    """A phase that is stopped by a signal ends the pipeline in order, and says so."""
    seen = []

    def stopped(run, folder, **given):
        seen.append(folder.name)
        return Outcome("stopped", 1, 2, None, None, 0.0, nnx.Module())

    monkeypatch.setattr(pipeline, "launch", stopped)
    assert run_two_phase(tiny_pipeline(pictures), tmp_path / "run", command="") is None
    assert seen == ["phase1"]
    assert not (tmp_path / "run" / "summary.json").exists()
