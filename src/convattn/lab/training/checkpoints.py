"""Checkpoints: written by Orbax in the background, read back only if their digest is right.

A checkpoint is a folder named after its step. Orbax writes it under a temporary name and renames
it when it is whole; one that is no longer kept is renamed before it is removed. So whatever ends
the process, what has the name of a step is whole. Beside the arrays lies a record with the SHA-256
of their names, types, shapes and bytes, and with its own: whatever happened to the files, what is
restored is what was saved, or it is not restored.
"""

import contextlib
import hashlib
import json
import logging
import os
import re
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp

from convattn.files import most_unpacked
from convattn.lab.training.failures import CheckpointNotWritten, NoWholeCheckpoint, first_line
from convattn.lab.training.state import (
    TrainState,
    named_arrays,
    named_leaves,
    with_named_arrays,
)

CHECKPOINTS, BEST = "checkpoints", "best"  # in the folder of a run
DAMAGED, REMOVED = "damaged", ".removed"  # in the folder of checkpoints
STEP = re.compile(r"0|[1-9][0-9]{0,17}")  # the name of a checkpoint's folder
CLOSED = "Event loop is closed"
ARRAYS, RECORD, SEAL = "arrays", "record", "seal"
# What Orbax, and the reading below, raise for files that are missing, cut off or changed.
DAMAGE = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    FileNotFoundError,
    RecursionError,  # of JSON, from endless brackets
)
# TensorStore raises ValueError for everything; its message begins with the kind of the failure.
UNREAD = (
    "ABORTED",
    "CANCELLED",
    "DEADLINE_EXCEEDED",
    "INTERNAL",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "UNAUTHENTICATED",
    "UNAVAILABLE",
    "UNKNOWN",
)


# What has failed in the background is raised where it is waited for; Orbax reports it besides, and
# asyncio what has failed in TensorStore after that.
logging.getLogger("absl").addFilter(lambda record: f"{os.sep}orbax{os.sep}" not in record.pathname)
logging.getLogger("asyncio").addFilter(
    lambda record: not (record.exc_info and "tensorstore_spec" in str(record.exc_info[1]))
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

    def save(self, state: TrainState, record: dict[str, Any]) -> None:
        """Copy the state to the host and write it in the background.

        Args:
            record: Anything that JSON holds.

        Raises:
            CheckpointNotWritten: Also for the one before, which was still being written.
        """
        arrays = named_arrays(state)
        sealed = {**record, "layout": layout(arrays), "sha256": digest(arrays)}
        stored = {name: array for name, array in arrays.items() if array.size}
        step = int(arrays["step"])
        items = {
            ARRAYS: ocp.args.StandardSave(stored),
            RECORD: ocp.args.JsonSave({**sealed, SEAL: seal_of(sealed)}),
        }
        self.wait()
        with self._failing_clearly():
            manager = self._open()
            if step not in manager.all_steps():
                manager.save(step, args=ocp.args.Composite(**items))

    def wait(self) -> None:
        """Return when everything is on the disk.

        Raises:
            CheckpointNotWritten: As described above.
        """
        if self._manager is not None:
            with self._failing_clearly():
                self._manager.wait_until_finished()
            self._empty()

    def close(self) -> None:
        """Wait, and let go of the folder.

        Raises:
            CheckpointNotWritten: As described above; the folder is let go of all the same.
        """
        manager, self._manager = self._manager, None
        if manager is not None:
            with self._failing_clearly():
                try:
                    manager.close()
                except Exception:
                    with contextlib.suppress(Exception):
                        manager.close()  # the first time it ends where it says what has failed
                    raise
            self._empty()

    def steps(self) -> list[int]:
        """The steps of which there is a folder, the newest first."""
        if not self.folder.is_dir():
            return []
        found = (child.name for child in self.folder.iterdir() if child.is_dir())
        return sorted((int(name) for name in found if STEP.fullmatch(name)), reverse=True)

    def restore_newest(self, like: TrainState, *, set_aside: bool = True) -> Restored | None:
        """The newest state that is whole, or None if there is no checkpoint at all.

        A damaged one is passed over with a `DamagedCheckpoint` warning.

        Args:
            like: A state of the same structure.
            set_aside: Move damaged ones into the folder `damaged/`, so that their steps can be
                saved anew, and finish what a killed process was removing; a reader who does not own
                the run changes nothing.

        Raises:
            NoWholeCheckpoint: If all are damaged; `OtherModel` if a checkpoint belongs to other
                settings; `OSError`, `MemoryError` and whatever else says nothing of the files.
                Nothing was moved then.
        """
        self.close()
        if set_aside:
            self._empty()
        damaged: dict[int, str] = {}
        for step in self.steps():
            try:
                arrays, record = read_checkpoint(self.folder / str(step), like)
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
                    self._set_aside(number)
            return Restored(step, with_named_arrays(like, arrays), record)
        if damaged:
            raise NoWholeCheckpoint(self.folder, damaged)
        return None

    def discard_after(self, step: int) -> None:
        """Remove the checkpoints of later steps; they will be written anew."""
        self.close()
        self._empty()
        for later in self.steps():
            if later > step:
                (self.folder / REMOVED).mkdir(exist_ok=True)
                (self.folder / str(later)).rename(self.folder / REMOVED / str(later))
        self._empty()

    def _empty(self) -> None:
        """Remove what has been renamed for that."""
        shutil.rmtree(self.folder / REMOVED, ignore_errors=True)

    @contextlib.contextmanager
    def _failing_clearly(self) -> Iterator[None]:
        try:
            yield
        except Exception as problem:
            raise CheckpointNotWritten(self.folder, problem) from problem

    def _open(self) -> ocp.CheckpointManager:
        if self._manager is None:
            be_quiet_on_closed_loops()
            self.folder.mkdir(parents=True, exist_ok=True)
            self._empty()
            self._manager = ocp.CheckpointManager(
                self.folder,
                options=ocp.CheckpointManagerOptions(
                    max_to_keep=self.keep,
                    todelete_subdir=REMOVED,
                    cleanup_tmp_directories=True,
                    create=False,
                    multiprocessing_options=this_process_alone(),
                ),
            )
        return self._manager

    def _set_aside(self, step: int) -> None:
        place = self.folder / DAMAGED
        place.mkdir(exist_ok=True)
        shutil.rmtree(place / str(step), ignore_errors=True)
        (self.folder / str(step)).rename(place / str(step))


def read_checkpoint(folder: Path, like: TrainState) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays and the record of one checkpoint, after its digest was checked.

    Raises:
        OtherModel: If it was made with other settings; one of `DAMAGE` if it is damaged; `OSError`
            if it could not be read, so that nothing is known of it.
    """
    be_quiet_on_closed_loops()
    try:
        return _read(folder, like)
    except ValueError as problem:
        if str(problem).startswith(tuple(f"{kind}: " for kind in UNREAD)):
            raise OSError(f"{folder} could not be read: {problem}") from problem
        raise


@dataclass(frozen=True)
class QuietOnClosedLoops:
    """For `sys.unraisablehook`: says nothing of an event loop that one array has ended.

    One that is damaged, or cannot be written. TensorStore's threads report the other arrays to
    Orbax's closed loop, which raises in each of them, where nothing can catch it; they may do so
    until the process ends, so this stays in place.
    """

    before: Callable[[Any], object]

    def __call__(self, problem: Any) -> None:
        """Report all else."""
        if not (isinstance(problem.exc_value, RuntimeError) and str(problem.exc_value) == CLOSED):
            self.before(problem)


def be_quiet_on_closed_loops() -> None:
    """Put `QuietOnClosedLoops` in place, once."""
    if not isinstance(sys.unraisablehook, QuietOnClosedLoops):
        sys.unraisablehook = QuietOnClosedLoops(sys.unraisablehook)


def _read(folder: Path, like: TrainState) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    alone = {"multiprocessing_options": this_process_alone()}
    handler: Any = ocp.JsonCheckpointHandler(**alone)
    with contextlib.closing(ocp.Checkpointer(handler, **alone)) as reader:
        record = reader.restore(folder / RECORD)
    if record.pop(SEAL) != seal_of(record):
        raise ValueError("its record was changed")
    shapes = dict(named_leaves(like))
    if record["layout"] != layout(shapes):
        raise OtherModel(
            f"{folder} holds the parameters of another model or optimiser; take the settings that "
            "it was made with, or another folder"
        )
    _require_stored(folder, shapes)
    expected = {name: np.zeros(leaf.shape, leaf.dtype) for name, leaf in shapes.items()}
    handler = ocp.StandardCheckpointHandler(**alone)
    with contextlib.closing(ocp.Checkpointer(handler, **alone)) as reader:
        template = {name: array for name, array in expected.items() if array.size}
        found = reader.restore(folder / ARRAYS, args=ocp.args.StandardRestore(template))
    arrays = {**expected, **found}
    if digest(arrays) != record["sha256"]:
        raise ValueError(f"the SHA-256 of its arrays is {digest(arrays)}, not {record['sha256']}")
    return arrays, record


def this_process_alone() -> ocp.options.MultiprocessingOptions:
    """Orbax waits for no other process: of several that train together, one writes and reads."""
    index = jax.process_index()
    return ocp.options.MultiprocessingOptions(primary_host=index, active_processes={index})


def seal_of(record: dict[str, Any]) -> str:
    """The SHA-256 of a record.

    >>> seal_of({"a": 1, "b": 2}) == seal_of({"b": 2, "a": 1})
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


def digest(arrays: dict[str, np.ndarray]) -> str:
    """The SHA-256 of named arrays: their layout and their bytes.

    >>> digest({"a": np.zeros(2)}) == digest({"a": np.zeros((2, 1))})
    False
    """
    total = hashlib.sha256(layout(arrays).encode())
    for name in sorted(arrays):
        total.update(np.ascontiguousarray(arrays[name]).data)
    return total.hexdigest()
