"""The command that repeats a run, for every spelling that the command line accepts."""

import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from convattn_lab.commands.cifar import PROGRAM, read_arguments
from convattn_lab.commands.experiment import repeating_command
from convattn_lab.commands.hosts import HostArguments

CONFIGS = Path(__file__).parents[3] / "experiments" / "configs"


@pytest.mark.parametrize(
    ("words", "repeated"),
    [
        ("", ""),
        ("--output-dir a --training.seed 3", "--training.seed 3"),
        ("--output_dir a --training.seed 3", "--training.seed 3"),
        ("--output_dir=a --training.batch_size=3", "--training.batch_size=3"),
        ("--data here", "--data {cwd}/here"),
        ("--data=here --config=gaussian", "--config=gaussian --data {cwd}/here"),
        ("--data None --images.source None", "--data None --images.source None"),
        ("--data=None", "--data None"),
        ("--download cifar10-binary --download_dir x", "{download} --download-dir {cwd}/x"),
        ("--download-dir None", "--download-dir {cwd}/None"),
        ("--coordinator a:1 --processes 2 --process=1 --training.seed 3", "--training.seed 3"),
        ("--distributed --training.seed 3", "--training.seed 3"),
        ("--images.source ../y", "--images.source {parent}/y"),
        ("--model.heads 2 3 4 --no_figures", "--model.heads 2 3 4 --no_figures"),
    ],
)
@pytest.mark.quick(5)
def test_the_command_repeats_its_words(words, repeated, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    command = repeating_command(words.split(), PROGRAM)
    paths = {"cwd": tmp_path, "parent": tmp_path.parent, "download": "--download cifar10-binary"}
    assert command == f"python experiments/cifar.py {repeated.format(**paths)}".strip()
    first = read_arguments(words.split(), CONFIGS)
    second = read_arguments(shlex.split(command)[2:], CONFIGS)
    assert second.settings.model == first.settings.model
    assert second.settings.training == first.settings.training
    assert (second.data is None) == (first.data is None)
    rest = {"hosts": HostArguments(), "data": None, "output_dir": None}
    rest |= {"download_dir": Path(), "settings": first.settings}
    assert replace(second, **rest) == replace(first, **rest)
