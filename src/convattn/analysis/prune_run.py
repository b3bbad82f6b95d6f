"""Pruning a run's degenerate heads, and training on at a tenth of the rate: C20, appendix E."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from flax import nnx
from rich.console import Console

from convattn.analysis.centers import require_gaussian
from convattn.analysis.curves import PRUNING, epochs_before
from convattn.analysis.degenerate_heads import Thresholds, degenerate_heads
from convattn.analysis.evaluation import test_accuracy
from convattn.analysis.pruning import pruned_parameters, spreads_of_layers
from convattn.analysis.restored_run import RestoredRun, restore_run
from convattn.analysis.snapshot_layers import encoder_settings
from convattn.atomic_file import write_file
from convattn.runs.launch import launch
from convattn.runs.materials import make_model
from convattn.runs.settings import RunSettings
from convattn.training.state import named_arrays, with_named_arrays

RATE_DIVISOR = 10
SHARE_OF_EPOCHS = 10


@dataclass(frozen=True)
class Pruning:
    """What pruning a run did.

    **Fields:**

    - `removed`: heads, for each layer.
    - `before`, `pruned`, `after`: test accuracy of the run's parameters, of those without the
      heads, and after training on; None where that has not come to its end.
    - `epochs_before`: epochs that the parameters had been trained for.
    - `test_images`, `images`: how many they were, and which.
    """

    removed: tuple[int, ...]
    before: float
    pruned: float
    after: float | None
    epochs_before: int
    test_images: int
    images: str

    def to_json(self) -> dict[str, Any]:
        """As `pruning.json` holds it."""
        return {**vars(self), "removed": list(self.removed)}


def prune_run(
    path: Path,
    folder: Path,
    *,
    command: str,
    epochs: int | None = None,
    thresholds: Thresholds | None = None,
    console: Console | None = None,
) -> Pruning | None:
    """Remove a run's degenerate heads, and train the rest on as a run of its own.

    The new run has a tenth of the learning rate. It can be interrupted, and goes on if this is
    called again.

    **Arguments:**

    - `path`: the run.
    - `folder`: of the new run.
    - `command`: what repeats this, for the record.
    - `epochs`: to train on; a tenth of the run's if not given.
    - `thresholds`: the paper's if not given.

    **Returns:** what came of it, or None if no head is degenerate.

    **Raises:** `ValueError` for a run whose heads are not Gaussians or that has no checkpoint, and
    for a folder that holds something else; and what `launch` raises.
    """
    require_gaussian(path)
    model = encoder_settings(path)
    if folder.resolve() == path.resolve():
        raise ValueError(f"--output-dir is {folder}, the run itself; give the new run a new folder")
    run = restore_run(path)
    parameters = named_arrays(nnx.state(run.model, nnx.Param))
    roots = spreads_of_layers(parameters, model.depth)
    removed = [degenerate_heads(root, thresholds) for root in roots]
    counts = tuple(int(layer.sum()) for layer in removed)
    if not any(counts):
        return None
    settings = pruned_settings(run.settings, removed, epochs)
    initial = pruned_parameters(parameters, removed)
    said = console or Console(quiet=True)
    said.print(f"heads removed: {list(counts)} of {[len(layer) for layer in removed]}")
    before, after_removal = accuracies(run, settings, initial)
    said.print(
        f"test accuracy before {100 * before:.1f} %, without them {100 * after_removal:.1f} %"
    )
    outcome = launch(settings, folder, command=command, console=console, initial=initial)
    found = Pruning(
        counts,
        before,
        after_removal,
        outcome.test_accuracy,
        epochs_before(path) + run.epoch,
        len(run.dataset.test),
        run.dataset.title,
    )
    write_file(folder / PRUNING, (json.dumps(found.to_json(), indent=2) + "\n").encode())
    return found


def pruned_settings(
    settings: RunSettings, removed: list[np.ndarray], epochs: int | None
) -> RunSettings:
    """The settings of the new run.

    **Arguments:**

    - `removed`: for each layer which of its heads go.
    - `epochs`: to train on; a tenth of those there were if not given.
    """
    left = tuple(int((~layer).sum()) for layer in removed)
    training = replace(
        settings.training,
        epochs=epochs or max(1, round(settings.training.epochs / SHARE_OF_EPOCHS)),
        learning_rate=settings.training.learning_rate / RATE_DIVISOR,
    )
    model: Any = settings.model
    return replace(settings, model=replace(model, heads=left), training=training)


def accuracies(
    run: RestoredRun, settings: RunSettings, initial: dict[str, np.ndarray]
) -> tuple[float, float]:
    """The test accuracy of the run's model, and of the model with these settings and parameters."""
    model = make_model(settings, run.dataset)
    nnx.update(model, with_named_arrays(nnx.state(model, nnx.Param), initial))
    before, after = (
        test_accuracy(each, run.images, settings.training) for each in (run.model, model)
    )
    return before, after
