"""`run_two_phase`: both phases, one after the other, through interruptions, in one folder.

two_phase.json   the settings
phase1/          the run of the convolution phase
phase2/          the run of the attention phase, which began with the converted parameters;
                 its conversion.json says how, and what the check before it saw
summary.json     what came of it
figures/         pictures
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from convattn.temporary import is_beside
from convattn_lab.runs.active_run import check_directory
from convattn_lab.runs.directory import RunDirectory, read_json, write_json
from convattn_lab.runs.launch import launch
from convattn_lab.runs.settings import RunSettings
from convattn_lab.settings import changed_fields, to_json
from convattn_lab.training.metrics import read_metrics
from convattn_lab.two_phase.convert_run import PhaseOne, begin_phase_two, read_phase_one
from convattn_lab.two_phase.settings import TwoPhaseSettings, two_phase_from_json

REPORTED = ("conversion", "check", "test", "gradients", "seconds")
SETTINGS, SUMMARY, PHASE_ONE, PHASE_TWO = "two_phase.json", "summary.json", "phase1", "phase2"
FINISHED, STOPPED = "finished", "stopped"


def begin_directory(path: Path, kind: str, settings: Any, read: Callable[[Any], Any]) -> bool:
    """Make the folder of a file of settings, or find the same settings in it.

    Args:
        read: From what the file holds to the settings that must be the same.

    Returns:
        Whether the file is there.

    Raises:
        ValueError: If the folder holds something else.
    """
    folder = path.parent
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file, but the folder of a {kind} was expected")
    if path.exists():
        changed = changed_fields(read(read_json(path, kind, may_be_new=True)["settings"]), settings)
        if changed:
            raise ValueError(
                f"{folder} holds a {kind} with other settings (they differ in "
                f"{', '.join(changed)}); take another folder, or go on with it as it is"
            )
        return True
    if folder.is_dir() and not all(
        is_beside(entry.name, [path.name]) for entry in folder.iterdir()
    ):
        raise ValueError(
            f"{folder} is not empty and holds no {path.name}, so it is not the folder of a {kind}; "
            "take another one"
        )
    folder.mkdir(parents=True, exist_ok=True)
    return False


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
    console, path = console or Console(quiet=True), folder / SETTINGS
    if not begin_directory(path, "pipeline", settings, two_phase_from_json):
        write_json(path, {"settings": to_json(settings), "command": command})
    one, two = folder / PHASE_ONE, folder / PHASE_TWO
    console.print("[bold]phase one: convolution[/bold]")
    if train_once(settings.phase_one, one, command, console) == STOPPED:
        return None
    console.print("[bold]phase two: attention[/bold]")
    if not is_finished(settings.phase_two, two):
        status = train_converted(read_phase_one(one), settings, two, command, console)
        if status == STOPPED:
            return None
    conversion = RunDirectory(two).read_conversion() or {}
    summary = {
        "command": read_json(path)["command"],
        "phase_one": _phase_summary(RunDirectory(one)),
        "conversion": {name: conversion[name] for name in REPORTED},
        "phase_two": _phase_summary(RunDirectory(two)),
    }
    write_json(folder / SUMMARY, summary)
    return summary


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
    check_directory(folder, settings)
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


def _phase_summary(directory: RunDirectory) -> dict[str, Any]:
    """A finished run in short: epochs, accuracy, losses, seconds."""
    result, lines = directory.read_result() or {}, read_metrics(directory.path)
    names = ("test_accuracy", "test_loss", "test_images", "images", "parameters", "seconds")
    return {
        "epochs": lines[-1]["epoch"] if lines else 0,
        "train_loss": lines[-1]["train_loss"] if lines else None,
        **{name: result.get(name) for name in names},
    }
