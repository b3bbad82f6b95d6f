"""`run_two_phase`: both phases, one after the other, through interruptions."""

from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from convattn.lab.runs.directory import RunDirectory
from convattn.lab.runs.launch import check_folder, launch
from convattn.lab.runs.settings import RunSettings
from convattn.lab.training.metrics import read_metrics
from convattn.lab.two_phase.convert_run import PhaseOne, begin_phase_two, read_phase_one
from convattn.lab.two_phase.directory import SUMMARY, TwoPhaseDirectory, write_json
from convattn.lab.two_phase.settings import TwoPhaseSettings

PARTS = ("conversion", "check", "test", "gradients", "seconds")
FINISHED, STOPPED = "finished", "stopped"


def run_two_phase(
    settings: TwoPhaseSettings, folder: Path, *, command: str, console: Console | None = None
) -> dict[str, Any] | None:
    """Train, convert, check, and train on; or go on where it stopped, in whichever phase.

    Args:
        folder: New, empty, or of a pipeline with the same settings.
        command: What repeats the pipeline, for its record.
        console: Where progress is shown.

    Returns:
        The summary; None if a signal stopped it.

    Raises:
        ConversionFailed: If the converted network is another one; `ValueError` for a folder that
            holds something else; and what `launch` raises.
    """
    directory, console = TwoPhaseDirectory(folder), console or Console(quiet=True)
    directory.begin(settings, command)
    console.print("[bold]phase one: convolution[/bold]")
    if train_once(settings.phase_one, directory.phase_one, command, console) == STOPPED:
        return None
    console.print("[bold]phase two: attention[/bold]")
    if train_phase_two(settings, directory, command, console) == STOPPED:
        return None
    found = summarize(directory)
    write_json(folder / SUMMARY, found)
    return found


def train_phase_two(
    settings: TwoPhaseSettings, directory: TwoPhaseDirectory, command: str, console: Console
) -> str:
    """Convert the first phase and train the second.

    Returns:
        How it ended.
    """
    wanted, folder = settings.phase_two, directory.phase_two
    if is_finished(wanted, folder):
        return FINISHED
    return train_converted(read_phase_one(directory.phase_one), settings, folder, command, console)


def train_converted(
    one: PhaseOne, settings: TwoPhaseSettings, folder: Path, command: str, console: Console
) -> str:
    """Train a second phase in a folder.

    Returns:
        How it ended.
    """
    initial = begin_phase_two(one, folder, settings)
    console.print(described(RunDirectory(folder).read_conversion() or {}))
    return train_once(settings.phase_two, folder, command, console, initial)


def train_once(
    settings: RunSettings,
    folder: Path,
    command: str,
    console: Console,
    initial: dict[str, np.ndarray] | None = None,
) -> str:
    """`launch`, unless the run is finished.

    Returns:
        How it ended.
    """
    if is_finished(settings, folder):
        console.print(f"run: {folder}: finished before")
        return FINISHED
    return launch(settings, folder, command=command, console=console, initial=initial).status


def is_finished(settings: RunSettings, folder: Path) -> bool:
    """Whether a run with these settings has ended in this folder.

    Raises:
        ValueError: If the folder holds something else.
    """
    directory = RunDirectory(folder)
    check_folder(folder, settings)
    result = directory.read_result()
    return result is not None and result["status"] == FINISHED


def described(conversion: dict[str, Any]) -> str:
    """A line: what the check before the second phase saw.

    >>> described({})
    'converted'
    """
    if not conversion:
        return "converted"
    check, test = conversion["check"], conversion["test"]
    return (
        f"converted to {conversion['conversion']['heads']} heads: on {check['images']} images the "
        f"logits differ by up to {check['seen']:.2g}, within the derived {check['bound']:.2g}; "
        f"{test['changed']} of {test['images']} test images changed their class "
        f"(accuracy {100 * test['before']:.1f} % before, {100 * test['after']:.1f} % after)"
    )


def summarize(directory: TwoPhaseDirectory) -> dict[str, Any]:
    """What came of a pipeline, from the folders of its runs."""
    one, two = (RunDirectory(path) for path in (directory.phase_one, directory.phase_two))
    conversion = two.read_conversion() or {}
    return {
        "command": directory.read_command(),
        "phase_one": phase_summary(one),
        "conversion": {name: conversion[name] for name in PARTS},
        "phase_two": phase_summary(two),
    }


def phase_summary(directory: RunDirectory) -> dict[str, Any]:
    """A finished run in short: epochs, accuracy, losses, seconds."""
    result, lines = directory.read_result() or {}, read_metrics(directory.path)
    names = ("test_accuracy", "test_loss", "test_images", "images", "parameters", "seconds")
    return {
        "epochs": lines[-1]["epoch"] if lines else 0,
        "train_loss": lines[-1]["train_loss"] if lines else None,
        **{name: result.get(name) for name in names},
    }
