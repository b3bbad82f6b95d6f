"""Pruning a run's degenerate heads, and training on at a tenth of the rate: C20, appendix E."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from flax import nnx
from rich.console import Console

from convattn.files import hold_folder
from convattn.lab.analysis.centers import require_gaussian
from convattn.lab.analysis.degenerate_heads import Thresholds, degenerate_heads
from convattn.lab.analysis.evaluation import test_accuracy
from convattn.lab.analysis.head_numbers import head_numbers
from convattn.lab.analysis.pruning import pruned_parameters, spreads_of_layers
from convattn.lab.analysis.pruning_file import Pruning, epochs_before, read_pruning
from convattn.lab.analysis.restored_run import RestoredRun, restore_run
from convattn.lab.analysis.run_summary import read_summary
from convattn.lab.analysis.snapshot_layers import encoder_settings
from convattn.lab.runs.directory import CONFIG, RunDirectory
from convattn.lab.runs.launch import check_folder, launch
from convattn.lab.runs.materials import make_model
from convattn.lab.runs.settings import RunSettings
from convattn.lab.settings import to_json
from convattn.lab.training.state import named_arrays, with_named_arrays

RATE_DIVISOR = 10
SHARE_OF_EPOCHS = 10


def prune_run(
    path: Path,
    folder: Path,
    *,
    command: str,
    epochs: int | None = None,
    thresholds: Thresholds | None = None,
    console: Console | None = None,
) -> Pruning:
    """Remove a run's degenerate heads, and train the rest on as a run of its own.

    The new run has a tenth of the learning rate. It can be interrupted, and goes on if this is
    called again. What was pruned is on record before the training begins.

    Args:
        path: The run; it is finished.
        folder: Of the new run.
        command: What repeats this, for the record.
        epochs: To train on; a tenth of the run's if not given.
        thresholds: The paper's if not given.

    Returns:
        What came of it; if no head is degenerate nothing is done, and `folder` untouched.

    Raises:
        ValueError: For a run that is unfinished, whose heads are not Gaussians or that has no
            checkpoint, and for a folder that holds something else; and what `launch` raises.
    """
    require_gaussian(path)
    if folder.resolve() == path.resolve():
        raise ValueError(f"--output-dir is {folder}, the run itself; give the new run a new folder")
    source = source_of(path)
    run = restore_run(path)
    parameters = named_arrays(nnx.state(run.model, nnx.Param))
    roots = spreads_of_layers(parameters, encoder_settings(path).depth)
    given = thresholds or Thresholds()
    removed = [degenerate_heads(root, given) for root in roots]
    kept = [
        [number for number, gone in zip(numbers, layer, strict=True) if not gone]
        for numbers, layer in zip(head_numbers(path), removed, strict=True)
    ]
    plan = Pruning(
        source,
        {"largest": given.eigenvalue, "condition": given.condition},
        kept,
        [int(layer.sum()) for layer in removed],
        epochs_before(path) + run.epoch,
        source["result"]["test_accuracy"],
    )
    if not any(plan.removed):
        return plan
    settings = pruned_settings(run.settings, removed, epochs)
    initial = pruned_parameters(parameters, removed)
    said = console or Console(quiet=True)
    said.print(f"heads removed: {plan.removed} of {[len(layer) for layer in removed]}")
    begun = begin(RunDirectory(folder), plan, run, settings, initial)
    said.print(
        f"test accuracy before {percent(begun.before)}, without them {percent(begun.pruned)}"
    )
    outcome = launch(settings, folder, command=command, console=console, initial=initial)
    return replace(begun, after=outcome.test_accuracy)


def source_of(path: Path) -> dict[str, Any]:
    """What `pruning.json` says of the run that is pruned.

    Raises:
        ValueError: If it is not finished.
    """
    directory, summary = RunDirectory(path), read_summary(path)
    if not summary.finished:
        raise ValueError(
            f"{path} is {summary.accuracy_text}, but only a finished run is pruned; go on with it "
            f"first: python experiments/cifar.py --resume {path}"
        )
    return {
        "config": json.loads(json.dumps(to_json(directory.read_settings()))),
        "result": directory.read_result(),
        "images_sha256": directory.read_facts()["images"].get("sha256"),
    }


def begin(
    directory: RunDirectory,
    plan: Pruning,
    run: RestoredRun,
    settings: RunSettings,
    initial: dict[str, np.ndarray],
) -> Pruning:
    """Put on record what is pruned and what that alone does, unless that was done before.

    Raises:
        ValueError: For a folder that holds something else.
    """
    folder = directory.path
    check_folder(directory, settings)
    with hold_folder(folder):
        stored = read_pruning(folder) if (folder / CONFIG).exists() else None
        if stored is not None:
            others = plan.other_parts(stored)
            if others:
                raise ValueError(
                    f"{folder} holds a run that was pruned otherwise (they differ in "
                    f"{', '.join(others)}); take another folder"
                )
            return stored
        model = make_model(settings, run.dataset)
        nnx.update(model, with_named_arrays(nnx.state(model, nnx.Param), initial))
        found = replace(plan, pruned=test_accuracy(model, run.images, settings.training))
        directory.write_pruning(found.to_json())
        return found


def pruned_settings(
    settings: RunSettings, removed: list[np.ndarray], epochs: int | None
) -> RunSettings:
    """The settings of the new run.

    Args:
        removed: For each layer which of its heads go.
        epochs: To train on; a tenth of those there were if not given.
    """
    left = tuple(int((~layer).sum()) for layer in removed)
    training = replace(
        settings.training,
        epochs=epochs or max(1, round(settings.training.epochs / SHARE_OF_EPOCHS)),
        learning_rate=settings.training.learning_rate / RATE_DIVISOR,
    )
    model: Any = settings.model
    return replace(settings, model=replace(model, heads=left), training=training)


def percent(share: float | None) -> str:
    """A share in words.

    >>> percent(0.9381), percent(None)
    ('93.8 %', 'not measured')
    """
    return "not measured" if share is None else f"{100 * share:.1f} %"
