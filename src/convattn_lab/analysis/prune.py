"""Removing degenerate heads, and training on at a tenth of the rate: C20, appendix E.

With Σ⁻¹ = RᵀR and the singular values s_1 ≥ s_2 of R, the eigenvalues of Σ⁻¹ are s_1² and s_2². A
head is degenerate if

    s_1² < 10⁻⁵   (it looks everywhere alike)   or   s_1²/s_2² > 10⁵   (it looks at a stripe).

The singular values are those of R itself: the eigenvalues of a computed RᵀR would carry rounding of
s_1²·2⁻⁵³, that of R with a condition number squared.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from flax import nnx
from jaxtyping import Bool, Float
from rich.console import Console

from convattn.files import lock_directory
from convattn.settings import Positive, settings
from convattn_lab.analysis.centers import require_gaussian
from convattn_lab.analysis.restored_run import RestoredRun, restore_run
from convattn_lab.analysis.run_summary import (
    Pruning,
    encoder_settings,
    head_numbers,
    percent,
    read_pruning,
    read_summary,
)
from convattn_lab.runs.active_run import check_directory
from convattn_lab.runs.directory import CONFIG, PRUNING, RunDirectory
from convattn_lab.runs.images import make_model
from convattn_lab.runs.launch import launch
from convattn_lab.runs.settings import RunSettings
from convattn_lab.settings import to_json
from convattn_lab.training.images import test_accuracy
from convattn_lab.training.state import named_arrays, with_named_arrays

RATE_DIVISOR = EPOCHS_DIVISOR = 10
PER_HEAD = ("value", "centers", "spreads")
Parameters = dict[str, np.ndarray]
MIN_EIGENVALUE = 1e-5
MAX_CONDITION = 1e5


@settings
class Thresholds:
    """A head is degenerate if the largest eigenvalue of Σ⁻¹ is below `eigenvalue`, or its condition
    number above `condition`: C20, appendix E."""

    eigenvalue: Positive = MIN_EIGENVALUE
    condition: Positive = MAX_CONDITION


def degenerate_heads(
    root_precision: Float[np.ndarray, "heads 2 2"], thresholds: Thresholds | None = None
) -> Bool[np.ndarray, " heads"]:
    """Whether each head is degenerate, from R with Σ⁻¹ = RᵀR; by the paper's thresholds if none.

    If R is singular its condition number is infinite.

    >>> roots = np.array([np.eye(2), np.eye(2) / 1000, np.diag([1.0, 0.001]), np.diag([1.0, 0.0])])
    >>> degenerate_heads(roots).tolist()
    [False, True, True, True]
    """
    if not np.isfinite(root_precision).all():
        bad = np.flatnonzero(~np.isfinite(root_precision).all(axis=(1, 2)))
        raise ValueError(
            f"Σ^(-1/2) is not finite in heads {(bad + 1).tolist()}, so the training has failed "
            "there; prune an earlier checkpoint, or train again with a lower learning rate"
        )
    limits = thresholds or Thresholds()
    if not len(root_precision):
        return np.zeros(0, bool)
    largest, smallest = np.linalg.svd(root_precision.astype(np.float64), compute_uv=False).T
    with np.errstate(divide="ignore", invalid="ignore"):
        condition = np.where(smallest > 0, (largest / smallest) ** 2, np.inf)
    return (largest**2 < limits.eigenvalue) | (condition > limits.condition)


def attention_parameter(name: str) -> tuple[int, str] | None:
    """The layer, counted from 0, and the part of its attention that a parameter's name stands for.

    >>> attention_parameter("layers.3.attention.centers.value")
    (3, 'centers')
    >>> attention_parameter("classifier.bias.value")
    """
    words = name.split(".")
    if len(words) < 4 or words[0] != "layers" or words[2] != "attention":
        return None
    return int(words[1]), words[3]


def spreads_of_layers(parameters: Parameters, depth: int) -> list[np.ndarray]:
    """R with Σ⁻¹ = RᵀR of each layer's heads, `[heads, 2, 2]`; empty for a layer without heads.

    The quadratic encoding holds the a of R = a·I.
    """
    spreads: list[np.ndarray] = [np.zeros((0, 2, 2)) for _ in range(depth)]
    for name, array in parameters.items():
        parameter = attention_parameter(name)
        if parameter is not None and parameter[1] == "spreads":
            spreads[parameter[0]] = array if array.ndim == 3 else array[:, None, None] * np.eye(2)
    return spreads


def pruned_parameters(parameters: Parameters, removed: Sequence[np.ndarray]) -> Parameters:
    """The parameters, by name, without the heads that `removed` marks in each layer.

    All others are as they were. A layer that loses all its heads keeps only its bias.

    >>> parameters = {"layers.0.attention.centers": np.array([[1.0, 2.0], [3.0, 4.0]])}
    >>> pruned_parameters(parameters, [np.array([True, False])])
    {'layers.0.attention.centers': array([[3., 4.]])}
    """
    remaining = {}
    for name, array in parameters.items():
        parameter = attention_parameter(name)
        if parameter is None or parameter[1] not in PER_HEAD:
            remaining[name] = array
        elif not removed[parameter[0]].all():
            remaining[name] = array[~removed[parameter[0]]]
    return remaining


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
    source = _source_of(path)
    run = restore_run(path)
    parameters = named_arrays(nnx.state(run.model, nnx.Param))
    roots = spreads_of_layers(parameters, encoder_settings(path).depth)
    limits, earlier = thresholds or Thresholds(), read_pruning(path)
    removed = [degenerate_heads(root, limits) for root in roots]
    remaining = [
        [number for number, is_removed in zip(numbers, layer, strict=True) if not is_removed]
        for numbers, layer in zip(head_numbers(path), removed, strict=True)
    ]
    plan = Pruning(
        source,
        {"largest": limits.eigenvalue, "condition": limits.condition},
        remaining,
        [int(layer.sum()) for layer in removed],
        run.epoch + (earlier.epochs_before if earlier else 0),
        source["result"]["test_accuracy"],
    )
    if not any(plan.removed):
        return plan
    settings = pruned_settings(run.settings, removed, epochs)
    initial = pruned_parameters(parameters, removed)
    output = console or Console(quiet=True)
    output.print(f"heads removed: {plan.removed} of {[len(layer) for layer in removed]}")
    started = _begin(RunDirectory(folder), plan, run, settings, initial)
    output.print(
        f"test accuracy before {percent(started.before)}, without them {percent(started.pruned)}"
    )
    outcome = launch(settings, folder, command=command, console=console, initial=initial)
    return replace(started, after=outcome.test_accuracy)


def _source_of(path: Path) -> dict[str, Any]:
    """What `pruning.json` says of the run that is pruned; a ValueError if it is not finished."""
    directory, summary = RunDirectory(path), read_summary(path)
    if not summary.finished:
        raise ValueError(
            f"{path} is {summary.accuracy_text}, but only a finished run is pruned; go on with it "
            f"first: python experiments/cifar.py --resume {path}"
        )
    return {
        "config": to_json(directory.read_settings()),
        "result": directory.read_result(),
        "images_sha256": directory.read_images().get("sha256"),
    }


def _begin(
    directory: RunDirectory,
    plan: Pruning,
    run: RestoredRun,
    settings: RunSettings,
    initial: dict[str, np.ndarray],
) -> Pruning:
    """Record what is pruned and what that alone does, unless that was done before."""
    folder = directory.path
    check_directory(directory.path, settings)
    with lock_directory(folder):
        stored = read_pruning(folder) if (folder / CONFIG).exists() else None
        if stored is not None:
            others = plan.differences(stored)
            if others:
                raise ValueError(
                    f"{folder} holds a run that was pruned otherwise (they differ in "
                    f"{', '.join(others)}); take another folder"
                )
            return stored
        model = make_model(settings, run.dataset)
        nnx.update(model, with_named_arrays(nnx.state(model, nnx.Param), initial))
        pruning = replace(plan, pruned=test_accuracy(model, run.images))
        directory.write(PRUNING, pruning.to_json())
        return pruning


def pruned_settings(
    settings: RunSettings, removed: list[np.ndarray], epochs: int | None
) -> RunSettings:
    """The settings of the new run, without these heads of each layer and a tenth of the epochs if
    none are given."""
    left = tuple(int((~layer).sum()) for layer in removed)
    training = replace(
        settings.training,
        epochs=epochs or max(1, round(settings.training.epochs / EPOCHS_DIVISOR)),
        learning_rate=settings.training.learning_rate / RATE_DIVISOR,
    )
    model: Any = settings.model
    return replace(settings, model=replace(model, heads=left), training=training)
