"""What a run measured: one JSON object a line, and the same for TensorBoard."""

import contextlib
import json
import os
import time
from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any, Self

from convattn.files import (
    brief,
    filename_in_errors,
    open_inside,
    parse_json,
    read_file,
    write_inside,
)

FILE_NAME, TENSORBOARD = "metrics.jsonl", "tensorboard"
Kinds = Mapping[str, Any]  # of fields: str, int, float (integers, too), list, dict, or with None


def require_kinds(
    content: Mapping[str, Any], kinds: Kinds, where: object, required: Sequence[str] = ()
) -> None:
    """Refuse what a file of a run cannot hold, such as a text for a number, or an infinite one.

    Args:
        kinds: Of those fields that are there.
        where: What messages call the file.
        required: The fields that must be there.

    >>> require_kinds({"step": 3, "loss": 1}, {"step": int, "loss": float}, "metrics.jsonl")
    """
    for name in (*required, *(name for name in kinds if name in content)):
        kind, value = kinds[name], content.get(name)
        fits = isinstance(value, kind) or (type(value) is int and isinstance(0.0, kind))
        fits = fits and name in content and not isinstance(value, bool)
        if not fits or (type(value) is float and not isfinite(value)):
            text = brief(value) if name in content else "missing"
            raise ValueError(
                f"{where}: {name} is {text}, but expected {getattr(kind, '__name__', kind)}; the "
                "file was damaged, or written by another version: put back what was there, or take "
                "another folder"
            )


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    """The lines of a run's metrics, as far as they are whole.

    A last line that was cut off by the end of its process is left out.

    Raises:
        ValueError: For a line before the last that is not JSON, and for one that holds no numbers.
    """
    path = folder / FILE_NAME
    if not path.exists():
        return []
    lines = read_file(path).decode(errors="replace").splitlines()
    entries = []
    for number, line in enumerate(lines, 1):
        where = f"{path}, line {number}"
        try:
            read = parse_json(line)
            problem = brief(read)
        except ValueError as error:
            if number == len(lines):
                break
            read, problem = None, f"no JSON ({str(error)[:200]})"
        if not isinstance(read, dict):
            raise ValueError(
                f"{where} is {problem}, but expected the numbers of an epoch; the file was "
                "damaged: remove the line, or take another run"
            )
        scores = [name for name in read if name.endswith(("_loss", "_accuracy"))]
        kinds = dict.fromkeys(scores, float | None) | {"step": int, "epoch": int}
        require_kinds(read, kinds, where, required=("step",))
        entries.append(read)
    return entries


class MetricsLog:
    """Writes metrics, one line for each epoch.

    Args:
        folder: The run's.
        step: The step at which the run goes on; lines of later steps are dropped.
    """

    def __init__(self, folder: Path, step: int) -> None:
        from tensorboardX.event_file_writer import EventsWriter
        from tensorboardX.proto.event_pb2 import SessionLog

        path = self._path = folder / FILE_NAME
        os.close(open_inside(path))  # a link is refused before anything is read or replaced
        lines = [line for line in read_metrics(folder) if line["step"] <= step]
        write_inside(path, "".join(json.dumps(line) + "\n" for line in lines).encode())
        self._file = os.fdopen(open_inside(path), "a")
        # Each training session writes its own file, in the order of time, whatever the second. Not
        # with SummaryWriter: a thread writes for it, and its flush leaves out what that has not.
        board = self._board_folder = folder / TENSORBOARD
        board.mkdir(exist_ok=True)
        self._board = EventsWriter(str(board / "events"), f".{time.time_ns()}")
        self._event(step + 1, session_log=SessionLog(status=SessionLog.START))

    def write(self, line: dict[str, Any]) -> None:
        """Add a line, and return when it is on the disk; it must have a `step`."""
        with filename_in_errors(self._path):
            self._file.write(json.dumps(line) + "\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        for name, value in line.items():
            if isinstance(value, int | float) and name not in ("step", "epoch"):
                self._scalar(name, value, line["step"])
        self.flush()

    def losses(self, first_step: int, losses: list[float]) -> None:
        """The losses of single steps, for TensorBoard alone."""
        for step, loss in enumerate(losses, first_step):
            self._scalar("loss", loss, step)

    def flush(self) -> None:
        """Return when TensorBoard's file holds all that was given."""
        with filename_in_errors(self._board_folder):
            self._board.flush()

    def _scalar(self, name: str, value: float, step: int) -> None:
        from tensorboardX.summary import scalar

        self._event(step, summary=scalar(name, value))

    def _event(self, step: int, **content: Any) -> None:
        from tensorboardX.proto.event_pb2 import Event

        with filename_in_errors(self._board_folder):
            self._board.write_event(Event(wall_time=time.time(), step=step, **content))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with (
            filename_in_errors(self._board_folder),
            contextlib.closing(self._board),
            filename_in_errors(self._path),
        ):
            self._file.close()
