"""Checkpoints: written by Orbax in the background, read back only if their digest is right.

A checkpoint is a folder named after its step. Orbax writes it under a temporary name and renames
it when it is whole, and removes the oldest after that. Beside the arrays lies a record with the
SHA-256 of their names, types, shapes and bytes, and with its own: whatever happened to the files,
what is restored is what was saved, or it is not restored.
"""

import contextlib
import hashlib
import json
import re
import shutil
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp

from convattn.files import most_unpacked
from convattn_lab.training.failures import CheckpointNotWritten, NoWholeCheckpoint, first_line
from convattn_lab.training.state import TrainState, named_leaves, with_named_arrays

CHECKPOINTS, BEST = "checkpoints", "best"  # in the folder of a run
DAMAGED = "damaged"  # in the folder of checkpoints
STEP = re.compile(r"0|[1-9][0-9]{0,17}")  # the name of a checkpoint's folder
ARRAYS, RECORD, SEAL = "arrays", "record", "seal"
# What Orbax, and the reading below, raise for files that are missing, cut off or changed.
DAMAGE = (ValueError, LookupError, TypeError, AttributeError, FileNotFoundError, RecursionError)
# TensorStore raises ValueError for everything; its message begins with the kind of the failure.
UNREAD = (
    *("ABORTED", "CANCELLED", "DEADLINE_EXCEEDED", "INTERNAL", "PERMISSION_DENIED"),
    *("RESOURCE_EXHAUSTED", "UNAUTHENTICATED", "UNAVAILABLE", "UNKNOWN"),
)


class DamagedCheckpoint(UserWarning):
    """A checkpoint could not be read, or does not hold what was saved."""


class OtherModel(ValueError):
    """A checkpoint is whole, but of another model or optimiser."""


@dataclass(frozen=True)
class Restored:
    """A state from a checkpoint, with what else was recorded."""

    step: int
    state: TrainState
    record: dict[str, Any]


class CheckpointStore:
    """The checkpoints of a run.

    Args:
        folder: Where they lie; made if it is missing.
        keep: How many of the newest are kept.
    """

    def __init__(self, folder: Path, keep: int = 2) -> None:
        self.folder, self.keep = folder.resolve(), keep
        self._manager: ocp.CheckpointManager | None = None

    def save(self, step: int, arrays: Mapping[str, np.ndarray], record: dict[str, Any]) -> None:
        """Write arrays of the host in the background.

        Args:
            arrays: From `named_arrays`.
            record: Anything that JSON holds.

        Raises:
            CheckpointNotWritten: Also for the one before, which was still being written.
        """
        sealed = {**record, "layout": layout(arrays), "sha256": digest(arrays)}
        stored = {name: array for name, array in arrays.items() if array.size}
        items = ocp.args.Composite(
            arrays=ocp.args.StandardSave(stored),
            record=ocp.args.JsonSave({**sealed, SEAL: _seal_of(sealed)}),
        )
        with self._failing_clearly():
            if self._manager is None:
                self.folder.mkdir(parents=True, exist_ok=True)
                options = ocp.CheckpointManagerOptions(
                    max_to_keep=self.keep,
                    cleanup_tmp_directories=True,
                    create=False,
                    multiprocessing_options=_this_process_alone(),
                )
                self._manager = ocp.CheckpointManager(self.folder, options=options)
            self._manager.wait_until_finished()
            if step not in self._manager.all_steps():
                self._manager.save(step, args=items)

    def close(self) -> None:
        """Return when everything is on the disk, and let go of the folder.

        Raises:
            CheckpointNotWritten: As described above; the folder is let go of all the same.
        """
        manager, self._manager = self._manager, None
        if manager is not None:
            with self._failing_clearly(), contextlib.closing(manager):
                manager.wait_until_finished()

    def steps(self) -> list[int]:
        """The steps of which there is a folder, the newest first."""
        if not self.folder.is_dir():
            return []
        names = (child.name for child in self.folder.iterdir() if child.is_dir())
        return sorted((int(name) for name in names if STEP.fullmatch(name)), reverse=True)

    def restore(self, step: int, like: TrainState) -> Restored:
        """The state of one step.

        Raises:
            ValueError: As `read_checkpoint`.
        """
        arrays, record = read_checkpoint(self.folder / str(step), like)
        return Restored(step, with_named_arrays(like, arrays), record)

    def restore_newest(self, like: TrainState, *, set_aside: bool = True) -> Restored | None:
        """The newest state that is whole, or None if there is no checkpoint at all.

        A damaged one is passed over with a `DamagedCheckpoint` warning.

        Args:
            like: A state of the same structure.
            set_aside: Move damaged ones into the folder `damaged/`, so that their steps can be
                saved anew; a reader who does not own the run changes nothing.

        Raises:
            NoWholeCheckpoint: If all are damaged; `OtherModel` if a checkpoint belongs to other
                settings; `OSError`, `MemoryError` and whatever else says nothing of the files.
                Nothing was moved then.
        """
        damaged: dict[int, str] = {}
        for step in self.steps():
            try:
                restored = self.restore(step, like)
            except OtherModel:
                raise
            except DAMAGE as problem:
                damaged[step] = first_line(problem)
                continue
            for number, reason in damaged.items():
                warnings.warn(
                    f"the checkpoint of step {number} in {self.folder} is damaged ({reason}); "
                    "the one before it is taken",
                    DamagedCheckpoint,
                    stacklevel=2,
                )
                if set_aside:
                    aside = self.folder / DAMAGED / str(number)
                    shutil.rmtree(aside, ignore_errors=True)
                    aside.parent.mkdir(exist_ok=True)
                    (self.folder / str(number)).rename(aside)
            return restored
        if damaged:
            raise NoWholeCheckpoint(self.folder, damaged)
        return None

    def discard(self, steps: Iterable[int]) -> None:
        """Remove the checkpoints of these steps, before any is written."""
        self.close()
        for step in steps:
            shutil.rmtree(self.folder / str(step))

    @contextlib.contextmanager
    def _failing_clearly(self) -> Iterator[None]:
        try:
            yield
        except Exception as problem:
            raise CheckpointNotWritten(self.folder, problem) from problem


def read_checkpoint(folder: Path, like: TrainState) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays and the record of one checkpoint, after its digest was checked.

    Raises:
        OtherModel: If it was made with other settings; one of `DAMAGE` if it is damaged; `OSError`
            if it could not be read, so that nothing is known of it.
    """
    try:
        record = _restore(ocp.JsonCheckpointHandler, folder / RECORD)
        if record.pop(SEAL) != _seal_of(record):
            raise ValueError("its record was changed")
        shapes = dict(named_leaves(like))
        if record["layout"] != layout(shapes):
            raise OtherModel(
                f"{folder} holds the parameters of another model or optimiser; take the settings "
                "that it was made with, or another folder"
            )
        _require_stored(folder, shapes)
        expected = {name: np.zeros(leaf.shape, leaf.dtype) for name, leaf in shapes.items()}
        template = {name: array for name, array in expected.items() if array.size}
        stored = ocp.args.StandardRestore(template)
        restored = _restore(ocp.StandardCheckpointHandler, folder / ARRAYS, args=stored)
        arrays = {**expected, **restored}
        if digest(arrays) != record["sha256"]:
            raise ValueError(
                f"the SHA-256 of its arrays is {digest(arrays)}, not {record['sha256']}"
            )
        return arrays, record
    except ValueError as problem:
        if str(problem).startswith(tuple(f"{kind}: " for kind in UNREAD)):
            raise OSError(f"{folder} could not be read: {problem}") from problem
        raise


def _restore(handler: Any, path: Path, **how: Any) -> Any:
    alone = {"multiprocessing_options": _this_process_alone()}
    with contextlib.closing(ocp.Checkpointer(handler(**alone), **alone)) as reader:
        return reader.restore(path, **how)


def _this_process_alone() -> ocp.options.MultiprocessingOptions:
    """Orbax waits for no other process: of several that train together, one writes and reads."""
    index = jax.process_index()
    return ocp.options.MultiprocessingOptions(primary_host=index, active_processes={index})


def _seal_of(record: dict[str, Any]) -> str:
    """The SHA-256 of a record.

    >>> _seal_of({"a": 1, "b": 2}) == _seal_of({"b": 2, "a": 1})
    True
    """
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()


def _require_stored(folder: Path, shapes: Mapping[str, Any]) -> None:
    """Refuse arrays that are far larger than their files, before anything is allocated."""
    files = sum(path.stat().st_size for path in (folder / ARRAYS).rglob("*") if path.is_file())
    size = sum(prod(leaf.shape) * np.dtype(leaf.dtype).itemsize for leaf in shapes.values())
    if size > most_unpacked(files):
        raise ValueError(
            f"its arrays are said to have {size:,} bytes, but expected at most "
            f"{most_unpacked(files):,} of files of {files:,}"
        )


def layout(arrays: Mapping[str, Any]) -> str:
    """The SHA-256 of names, types and shapes."""
    lines = (
        f"{name}:{np.dtype(array.dtype).str}:{array.shape};"
        for name, array in sorted(arrays.items())
    )
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def digest(arrays: Mapping[str, np.ndarray]) -> str:
    """The SHA-256 of named arrays: their layout and their bytes.

    >>> digest({"a": np.zeros(2)}) == digest({"a": np.zeros((2, 1))})
    False
    """
    total = hashlib.sha256(layout(arrays).encode())
    for name in sorted(arrays):
        total.update(np.ascontiguousarray(arrays[name]).data)
    return total.hexdigest()
