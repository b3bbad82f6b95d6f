"""A finished run of a ResNet, whose convolutions are to become attention."""

import warnings
from pathlib import Path
from typing import Any

from convattn_lab.analysis.restored_run import RestoredRun, restore_run
from convattn_lab.analysis.run_summary import read_summary
from convattn_lab.models.resnet import ResNet
from convattn_lab.models.settings import ResNetSettings


def finished_resnet(path: Path) -> tuple[RestoredRun, ResNet, float]:
    """A run, its ResNet, and the test accuracy on record.

    Args:
        path: The folder of the run.

    Raises:
        ValueError: If it is not a finished run of a ResNet, or has no whole checkpoint.
    """
    summary = read_summary(path)
    if not isinstance(summary.settings.model, ResNetSettings):
        kind = type(summary.settings.model).__name__.removesuffix("Settings").lower()
        raise ValueError(
            f"{path} is a run of the model {kind!r}, whose layers are attention or have no "
            "convolution to convert; expected a run of a ResNet, such as "
            "`python experiments/cifar.py --config resnet18` makes"
        )
    if not summary.finished or summary.accuracy is None:
        raise ValueError(
            f"{path} is {summary.accuracy_text}, but only a finished run is converted; go on with "
            f"it first: python experiments/cifar.py --resume {path}"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a damaged checkpoint; the one before would be another's
        run = restore_run(path)
    epochs = summary.settings.training.epochs
    if summary.settings.training.select != "best" and run.epoch != epochs:
        raise ValueError(
            f"the newest whole checkpoint of {path} is of {run.when} of {epochs}: the last one is "
            "damaged; train the run anew"
        )
    model: Any = run.model
    return run, model, summary.accuracy
