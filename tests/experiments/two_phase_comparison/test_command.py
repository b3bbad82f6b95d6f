"""The command line: configs, overriding, the command on record, wrong use."""

import re
import shlex
from pathlib import Path

import pytest
from two_phase_comparison.command import (
    Arguments,
    ComparisonArguments,
    command_of,
    main,
    read_arguments,
)
from two_phase_comparison.table import mean_and_deviation, paired_difference

from convattn_lab.records.experiments import paper_pipeline
from convattn_lab.runs.configs import find_configs
from convattn_lab.settings import changed_fields
from convattn_lab.two_phase import pipeline
from convattn_lab.two_phase.conversion_check import ConversionFailed
from convattn_lab.two_phase.pipeline import begin_directory
from convattn_lab.two_phase.settings import (
    CONVERSIONS,
    ComparisonSettings,
    TwoPhaseSettings,
)

CONFIGS = Path(__file__).parents[3] / "experiments" / "configs" / "two_phase"
LABELS = ["Repeats", "Images", "Expected", "Hardware", "Time", "Command"]
NAMES = {"tiny", "cmhsa3", "cmhsa5", "low_data"}


def load_config(name):
    return find_configs(CONFIGS)[name].load(TwoPhaseSettings)


@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_config_describes_itself_and_its_command_is_its_own(name) -> None:
    configs = find_configs(CONFIGS)
    assert set(configs) == NAMES
    lines = dict(
        re.findall(r"^ *([A-Z][a-z]+) {2,}(\S.*)$", configs[name].description, re.MULTILINE)
    )
    assert list(lines) == LABELS
    program, script, *words = shlex.split(lines["Command"])
    assert (program, script) == ("python", "experiments/two_phase.py")
    args = read_arguments(words, CONFIGS)
    assert args.config == name
    settings = args.settings if isinstance(args, Arguments) else args.comparison.pipeline
    assert settings == load_config(name)


@pytest.mark.parametrize("size", [3, 5])
def test_the_paper_s_configs_are_the_paper_s(size) -> None:
    assert changed_fields(load_config(f"cmhsa{size}"), paper_pipeline(size)) == []


def test_a_comparison_is_asked_for_by_its_word() -> None:
    words = ["compare", "--seeds", "3", "4", "--starts", "limit-10", "--no-controls"]
    words += ["--pipeline.training-two.epochs", "2"]
    args = read_arguments(words, CONFIGS)
    assert isinstance(args, ComparisonArguments)
    assert args.comparison.seeds == (3, 4)
    assert args.comparison.starts == ("limit-10",)
    assert args.comparison.controls is False
    assert args.comparison.pipeline.training_two.epochs == 2


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--output-dir", "x", "--config=tiny"], "--config=tiny"),
        (["compare", "--seeds", "0", "--output_dir=x"], "compare --seeds 0"),
        (["--data", "/a/../b"], "--data /b"),
    ],
)
def test_the_command_on_record_repeats_it_elsewhere(words, expected) -> None:
    assert command_of(words) == f"python experiments/two_phase.py {expected}"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--config", "tini"], "did you mean tiny"),
        (["--model.mixing", "attention"], "the first phase is one of convolutions"),
        (["--conversion.leak", "1"], "leak=1.0, but expected less than 1"),
        (["--check-images", "0"], "check_images=0"),
        (["compare", "--seeds", "1", "1"], "none of them twice"),
        (["compare", "--pipeline.training-two.warmup", "0"], "second phases with a warm-up"),
        (["--data", "/nowhere", "--download", "cifar10-binary"], "exclude each other"),
        (["record", "/nowhere"], "/nowhere/phase1 has no config.json"),
    ],
)
def test_wrong_use_exits_2_and_says_why(words, message, capsys, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words, configs=CONFIGS) == 2
    output = " ".join(re.sub(r"[│╭╮╰╯─]", " ", capsys.readouterr().err).split())
    assert message in output
    assert list(tmp_path.iterdir()) == []


def test_a_failed_check_ends_the_command_with_1(tmp_path, monkeypatch, capsys) -> None:
    def failed(*args, **more):
        raise ConversionFailed("layer 1 is wrong")

    monkeypatch.setattr(pipeline, "run_two_phase", failed)
    words = ["--output-dir", str(tmp_path / "run")]
    assert main(words, configs=CONFIGS) == 1
    assert capsys.readouterr().err == "experiments/two_phase.py: layer 1 is wrong\n"


def test_every_start_of_a_comparison_is_another_conversion() -> None:
    assert len({tuple(vars(how).values()) for how in CONVERSIONS.values()}) == len(CONVERSIONS)
    settings = ComparisonSettings()
    for start, how in CONVERSIONS.items():
        assert settings.converted(0, start, "with").conversion == how
    with_it, without = (settings.converted(5, "limit-10", warmup) for warmup in ("with", "without"))
    assert (with_it.training_two.warmup, without.training_two.warmup) == (0.05, 0.0)
    assert changed_fields(with_it, without) == ["training_two.warmup"]
    assert (with_it.training_one.seed, with_it.training_two.seed) == (5, 5)
    control = settings.control(0, "only-convolution")
    assert control.model == TwoPhaseSettings().model
    assert control.training.epochs * control.training.warmup == 300 * 0.05


def test_the_interval_of_a_difference_is_student_s() -> None:
    """Three differences 1, 2, 6: mean 3, deviation √7, and t = 4.302653 at two degrees."""
    one = {"runs": [{"loss": value} for value in (1.0, 2.0, 6.0)]}
    zero = {"runs": [{"loss": 0.0}] * 3}
    difference = paired_difference(one, zero, "loss")
    assert (difference["mean"], difference["count"]) == (3.0, 3)
    assert difference["half"] == pytest.approx(4.302653 * (7 / 3) ** 0.5, rel=1e-6)
    assert mean_and_deviation([1.0, 2.0, 6.0])["deviation"] == pytest.approx(7**0.5)
    assert mean_and_deviation([None])["mean"] is None


def test_a_pipeline_killed_before_it_began_does_not_stand_in_the_way(tmp_path) -> None:
    path, settings = tmp_path / "two_phase.json", TwoPhaseSettings()
    (tmp_path / ".two_phase.json.0a1b2c3d.part").write_text("{")
    assert not begin_directory(path, "pipeline", settings, lambda stored: stored)
    (tmp_path / "other.json").write_text("{")
    with pytest.raises(ValueError, match=r"is not empty and holds no two_phase\.json"):
        begin_directory(path, "pipeline", settings, lambda stored: stored)
