"""The snapshots of a run, layer by layer."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from convattn.lab.analysis.run_summary import read_summary
from convattn.lab.models.settings import EncoderSettings
from convattn.lab.runs.directory import RunDirectory
from convattn.lab.training.snapshots import read_snapshot, snapshot_epochs

Layer = dict[str, np.ndarray]


def read_layers(path: Path, epoch: int | None = None) -> tuple[int, list[Layer]]:
    """The epoch of a snapshot, and the arrays of each layer.

    Args:
        epoch: That of `default_epoch` if not given.

    Raises:
        ValueError: If it is not the folder of a run, if the model has no attention, or if there is
            no snapshot of that epoch.
    """
    settings = encoder_settings(path)
    epochs = snapshot_epochs(path)
    if not epochs:
        raise ValueError(
            f"{path} has no snapshots of the attention yet; the first is taken when training begins"
        )
    chosen = default_epoch(path, epochs) if epoch is None else epoch
    arrays = read_snapshot(path, chosen)
    layers: list[Layer] = [{} for _ in settings.heads]
    for name, array in arrays.items():
        layer, _, part = name.partition(".")
        layers[int(layer.removeprefix("layer")) - 1][part] = array
    return chosen, layers


def default_epoch(path: Path, epochs: Sequence[int]) -> int:
    """The snapshot that shows what the run's accuracy is of, as nearly as there is one.

    That is the newest; for a run that was finished with the parameters of its best epoch it is the
    nearest to that.

    Args:
        epochs: Of the snapshots, at least one.
    """
    tested = read_summary(path).tested_epoch
    wanted = epochs[-1] if tested is None else tested
    return min(epochs, key=lambda epoch: (abs(epoch - wanted), -epoch))


def encoder_settings(path: Path) -> EncoderSettings:
    """The settings of a run's model.

    Raises:
        ValueError: If it is no encoder.
    """
    model = RunDirectory(path).read_settings().model
    if not isinstance(model, EncoderSettings):
        raise ValueError(
            f"the model of {path} is a ResNet, which has no attention; `curves` and `table` take "
            "it, the other commands take runs of an encoder"
        )
    return model


def spread_epochs(epochs: Sequence[int], count: int) -> list[int]:
    """At most so many of the epochs, the first and the last among them, closer at the beginning.

    Between them the quotients are as equal as the epochs allow.

    Args:
        count: At least 2.

    >>> spread_epochs(range(0, 301, 5), 6)
    [0, 5, 15, 40, 110, 300]
    >>> spread_epochs([0, 1, 2], 6)
    [0, 1, 2]
    """
    known = sorted(epochs)
    if len(known) <= count:
        return known
    rest = [epoch for epoch in known if epoch > known[0]]
    shifted = np.array(rest) - known[0]
    wanted = np.geomspace(shifted[-1], shifted[0], count - 1)
    chosen = {rest[int(np.argmin(np.abs(shifted - target)))] for target in wanted}
    return [known[0], *sorted(chosen)]
