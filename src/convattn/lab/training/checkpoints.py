"""Checkpoints: written by Orbax in the background, read back only if their digest is right.

A checkpoint is a folder named after its step. Orbax writes it under a temporary name and renames
it when it is whole. Beside the arrays lies a record with the SHA-256 of their names, types, shapes
and bytes, and with its own: whatever happened to the files, what is restored is what was saved, or
it is not restored.
"""

import contextlib
import shutil
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orbax.checkpoint as ocp

from convattn.lab.training.failures import CheckpointNotWritten, NoWholeCheckpoint
from convattn.lab.training.sealed import (
    ARRAYS,
    DAMAGE,
    RECORD,
    SEAL,
    digest,
    layout,
    read_checkpoint,
    seal_of,
    this_process_alone,
)
from convattn.lab.training.sealed import OtherModel as OtherModel
from convattn.lab.training.state import TrainState, named_arrays, with_named_arrays

CHECKPOINTS, BEST = "checkpoints", "best"  # in the folder of a run
DAMAGED = "damaged"


class DamagedCheckpoint(UserWarning):
    """A checkpoint could not be read, or does not hold what was saved."""


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

    def close(self) -> None:
        """Wait, and let go of the folder."""
        if self._manager is not None:
            self._manager.close()
            self._manager = None

    def steps(self) -> list[int]:
        """The steps of which there is a folder, the newest first."""
        if not self.folder.is_dir():
            return []
        found = (child.name for child in self.folder.iterdir() if child.is_dir())
        return sorted((int(name) for name in found if name.isdigit()), reverse=True)

    def restore_newest(self, like: TrainState, *, set_aside: bool = True) -> Restored | None:
        """The newest state that is whole, or None if there is no checkpoint at all.

        A damaged one is passed over with a `DamagedCheckpoint` warning.

        Args:
            like: A state of the same structure.
            set_aside: Move damaged ones into the folder `damaged/`, so that their steps can be
                saved anew; a reader who does not own the run leaves them.

        Raises:
            NoWholeCheckpoint: If all are damaged; `OtherModel` if a checkpoint belongs to other
                settings; `OSError`, `MemoryError` and whatever else says nothing of the files.
                Nothing was moved then.
        """
        self.close()
        damaged: dict[int, str] = {}
        for step in self.steps():
            try:
                arrays, record = read_checkpoint(self.folder / str(step), like)
            except OtherModel:
                raise
            except DAMAGE as problem:
                damaged[step] = (str(problem).strip().splitlines() or [type(problem).__name__])[0]
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
        for later in self.steps():
            if later > step:
                shutil.rmtree(self.folder / str(later))

    @contextlib.contextmanager
    def _failing_clearly(self) -> Iterator[None]:
        try:
            yield
        except Exception as problem:
            raise CheckpointNotWritten(self.folder, problem) from problem

    def _open(self) -> ocp.CheckpointManager:
        if self._manager is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._manager = ocp.CheckpointManager(
                self.folder,
                options=ocp.CheckpointManagerOptions(
                    max_to_keep=self.keep,
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
