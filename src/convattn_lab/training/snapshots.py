"""Snapshots: small summaries of a model, kept at many epochs of a run, as `.npz` files."""

import io
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from convattn.files import read_file, write_inside
from convattn.networks.weights.formats import read_npz

FOLDER = "snapshots"
NAME = re.compile(r"epoch-([0-9]{4,9})\.npz")
Snapshot = Callable[[Any], dict[str, np.ndarray]]  # of a model


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray], *, compressed: bool = True) -> None:
    """Write a `.npz` file into a folder, which is made if it is missing."""
    content = io.BytesIO()
    save: Any = np.savez_compressed if compressed else np.savez
    save(content, **arrays)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_inside(path, content.getvalue())


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """The arrays of a `.npz` file; nothing in it is unpickled.

    Raises:
        ValueError: If it is damaged.
    """
    return read_npz(read_file(path), str(path))[0]


def write_snapshot(folder: Path, epoch: int, arrays: dict[str, np.ndarray]) -> None:
    """Write `snapshots/epoch-NNNN.npz` into the folder of a run."""
    write_arrays(folder / FOLDER / f"epoch-{epoch:04}.npz", arrays)


def snapshot_epochs(folder: Path) -> list[int]:
    """The epochs of which there is a snapshot, in order; epoch 0 is before the first step."""
    matches = (NAME.fullmatch(path.name) for path in (folder / FOLDER).glob("epoch-*.npz"))
    return sorted(int(match[1]) for match in matches if match)


def read_snapshot(folder: Path, epoch: int) -> dict[str, np.ndarray]:
    """The arrays of one snapshot.

    Raises:
        ValueError: If there is none of that epoch.
    """
    path = folder / FOLDER / f"epoch-{epoch:04}.npz"
    if not path.exists():
        raise ValueError(
            f"{folder} has no snapshot of epoch {epoch}; there are {snapshot_epochs(folder)}"
        )
    return read_arrays(path)
