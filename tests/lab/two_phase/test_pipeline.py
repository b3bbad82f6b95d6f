"""Both phases at a small scale: what is written, what is gone on with, and what is refused."""

import json
from dataclasses import replace

import numpy as np
import pytest
from flax import nnx
from lab.runs.tiny_pipeline import tiny_pipeline
from lab.training.tiny import assert_same_arrays

from convattn_lab.analysis.restored_run import restore_run
from convattn_lab.records.record import record_of
from convattn_lab.runs.directory import RunDirectory, read_json
from convattn_lab.training.metrics import read_metrics
from convattn_lab.training.state import named_arrays
from convattn_lab.training.trainer import Outcome
from convattn_lab.two_phase import convert_run, pipeline
from convattn_lab.two_phase.conversion_check import ConversionFailed
from convattn_lab.two_phase.pipeline import run_two_phase
from convattn_lab.two_phase.settings import ConversionSettings, two_phase_from_json
from convattn_lab.two_phase.transfer import transfer

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def trained(tmp_path_factory, pictures):
    """A pipeline that was interrupted after the conversion, and then went on."""
    folder, settings = tmp_path_factory.mktemp("pipeline") / "run", tiny_pipeline(pictures)
    launch = pipeline.launch

    def first_alone(run, path, **options):
        if path.name == "phase2":
            raise KeyboardInterrupt
        return launch(run, path, **options)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(pipeline, "launch", first_alone)
        with pytest.raises(KeyboardInterrupt):
            run_two_phase(settings, folder, command="a command")
    conversion = RunDirectory(folder / "phase2").read_conversion()
    before = read_metrics(folder / "phase1")
    summary = run_two_phase(settings, folder, command="another command")
    return folder, settings, summary, conversion, before


def test_a_pipeline_goes_on_where_it_stopped(trained) -> None:
    folder, settings, summary, conversion, before = trained
    stored = read_json(folder / "two_phase.json")
    assert two_phase_from_json(stored["settings"]) == settings
    assert stored["command"] == "a command"
    assert read_json(folder / "summary.json") == summary
    assert read_metrics(folder / "phase1") == before  # not trained again
    stored = RunDirectory(folder / "phase2").read_conversion()
    for field in ("source", "conversion", "check", "test", "gradients"):
        assert stored[field] == conversion[field] == json.loads(json.dumps(stored[field]))
    assert [summary[name]["epochs"] for name in ("phase_one", "phase_two")] == [1, 1]


def test_the_second_phase_begins_with_what_the_first_was_converted_to(trained) -> None:
    folder, settings, *_ = trained
    run = restore_run(folder / "phase1")
    requested = settings.phase_two
    assert RunDirectory(folder / "phase2").read_settings() == requested
    two = transfer(run.model, requested.model, settings.conversion, rngs=nnx.Rngs(0))
    expected = named_arrays(nnx.state(two, nnx.Param))
    assert_same_arrays(RunDirectory(folder / "phase2").read_initial(), expected)


def test_what_the_check_saw_is_on_record(trained) -> None:
    folder, *_ = trained
    stored = RunDirectory(folder / "phase2").read_conversion()
    check, test = stored["check"], stored["test"]
    assert (stored["conversion"]["heads"], stored["conversion"]["ring"]) == (10, 1)
    assert check["passed"] is True
    assert 0 < check["seen"] <= check["bound"] < 0.01
    assert (check["images"], len(check["layers"])) == (2, 1)
    assert 0 < check["share"] <= 1
    assert 0 < check["layers"][0]["share"] <= 1
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

    def fail(*args, **kwargs):
        raise AssertionError("not to be called")

    monkeypatch.setattr(pipeline, "launch", fail)
    monkeypatch.setattr(pipeline, "read_phase_one", fail)
    assert run_two_phase(settings, folder, command="") == summary


def test_other_settings_and_other_folders_are_refused(trained, tmp_path) -> None:
    folder, settings, *_ = trained
    (tmp_path / "thesis.tex").write_text("")
    leak = replace(settings, conversion=ConversionSettings("exact", leak=0.25))
    warm = replace(settings, training_two=replace(settings.training_two, warmup=0.0))
    for chosen, path, message in (
        (leak, folder, r"differ in conversion\.leak"),
        (warm, folder, r"differ in training_two\.warmup"),
        (settings, tmp_path, r"no two_phase\.json"),
        (settings, tmp_path / "thesis.tex", "is a file"),
    ):
        with pytest.raises(ValueError, match=message):
            run_two_phase(chosen, path, command="")
    (folder / "two_phase.json").rename(tmp_path / "aside.json")
    (folder / "two_phase.json").write_text("{")
    with pytest.raises(ValueError, match="is no JSON"):
        run_two_phase(settings, folder, command="")
    (tmp_path / "aside.json").rename(folder / "two_phase.json")


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

    def wrong(*args, **kwargs):
        two = right(*args, **kwargs)
        two.layers[0].mixing.output[...] = 1.01 * two.layers[0].mixing.output[...]
        return two

    monkeypatch.setattr(convert_run, "transfer", wrong)
    one = convert_run.read_phase_one(folder / "phase1")
    with pytest.raises(ConversionFailed, match=r"layer 1 differs by up to .* Nothing was trained"):
        convert_run.begin_phase_two(one, tmp_path / "phase2", settings)
    assert not (tmp_path / "phase2").exists()


def test_outcomes_are_as_the_trainer_gives_them(monkeypatch, pictures, tmp_path) -> None:
    """A phase that is stopped by a signal ends the pipeline in order, and says so."""
    trained = []

    def stopped(run, folder, **options):
        trained.append(folder.name)
        return Outcome("stopped", 1, 2, None, None, 0.0, nnx.Module())

    monkeypatch.setattr(pipeline, "launch", stopped)
    assert run_two_phase(tiny_pipeline(pictures), tmp_path / "run", command="") is None
    assert trained == ["phase1"]
    assert not (tmp_path / "run" / "summary.json").exists()
