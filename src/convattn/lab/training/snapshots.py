"""Snapshots: small summaries of a model, kept at many epochs of a run, as `.npz` files."""

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
from flax import nnx

from convattn.files import write_inside

FOLDER = "snapshots"
Snapshot = Callable[[nnx.Module], dict[str, np.ndarray]]


def write_snapshot(folder: Path, epoch: int, arrays: dict[str, np.ndarray]) -> None:
    """Write `snapshots/epoch-NNNN.npz` into the folder of a run."""
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)  # type: ignore[arg-type]
    place = folder / FOLDER
    place.mkdir(parents=True, exist_ok=True)
    write_inside(place / f"epoch-{epoch:04}.npz", content.getvalue())


def snapshot_epochs(folder: Path) -> list[int]:
    """The epochs of which there is a snapshot, in order; epoch 0 is before the first step."""
    return sorted(int(path.stem.split("-")[1]) for path in (folder / FOLDER).glob("epoch-*.npz"))


def read_snapshot(folder: Path, epoch: int) -> dict[str, np.ndarray]:
    """The arrays of one snapshot; nothing in it is unpickled.

    Raises:
        ValueError: If there is none of that epoch.
    """
    path = folder / FOLDER / f"epoch-{epoch:04}.npz"
    if not path.exists():
        raise ValueError(
            f"{folder} has no snapshot of epoch {epoch}; there are {snapshot_epochs(folder)}"
        )
    with np.load(path, allow_pickle=False) as stored:
        return {name: stored[name] for name in stored.files}
