"""The command that repeats a run, for every spelling that the command line accepts."""

import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from convattn.lab.runs.arguments import read_arguments, repeating_command
from convattn.lab.runs.hosts import HostArguments

CONFIGS = Path(__file__).parents[3] / "experiments" / "configs"


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("", ""),
        ("--output-dir a --training.seed 3", "--training.seed 3"),
        ("--output_dir a --training.seed 3", "--training.seed 3"),
        ("--output_dir=a --training.batch_size=3", "--training.batch-size=3"),
        ("--data here", "--data {cwd}/here"),
        ("--data=here --config=gaussian", "--data {cwd}/here --config=gaussian"),
        ("--data None --images.source None", "--data None --images.source None"),
        ("--data=None", "--data None"),
        (
            "--download cifar10-binary --download_dir x",
            "--download cifar10-binary --download-dir {cwd}/x",
        ),
        ("--download-dir None", "--download-dir {cwd}/None"),
        ("--coordinator a:1 --processes 2 --process=1 --training.seed 3", "--training.seed 3"),
        ("--distributed --training.seed 3", "--training.seed 3"),
        ("--images.source ../y", "--images.source {parent}/y"),
        ("--model.heads 2 3 4 --no_figures", "--model.heads 2 3 4 --no-figures"),
    ],
)
def test_the_command_repeats_what_was_given(given, kept, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    command = repeating_command(given.split())
    wanted = kept.format(cwd=tmp_path, parent=tmp_path.parent)
    assert command == f"python experiments/cifar.py {wanted}".strip()
    first = read_arguments(given.split(), CONFIGS)
    second = read_arguments(shlex.split(command)[2:], CONFIGS)
    assert second.settings.model == first.settings.model
    assert second.settings.training == first.settings.training
    assert (second.data is None) == (first.data is None)
    rest = {
        "hosts": HostArguments(),
        "data": None,
        "output_dir": None,
        "download_dir": Path(),
        "settings": first.settings,
    }
    assert replace(second, **rest) == replace(first, **rest)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("prune a --output-dir b", "prune {cwd}/a"),
        ("prune --epochs 2 a --output_dir=b", "prune --epochs 2 {cwd}/a"),
        ("prune a --threshold_condition=10 --json c", "prune {cwd}/a --threshold-condition=10"),
    ],
)
def test_after_a_subcommand_runs_are_paths(given, kept, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    command = repeating_command(given.split(), program="experiments/analyse.py")
    assert command == f"python experiments/analyse.py {kept.format(cwd=tmp_path)}"
