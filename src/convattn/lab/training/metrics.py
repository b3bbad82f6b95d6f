"""What a run measured: one JSON object a line, and the same for TensorBoard."""

import json
import os
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from convattn.files import open_inside, write_inside

FILE_NAME, TENSORBOARD = "metrics.jsonl", "tensorboard"


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    """The lines of a run's metrics, as far as they are whole.

    A last line that was cut off by the end of its process is left out.

    Raises:
        ValueError: For a line before the last that is not JSON.
    """
    path = folder / FILE_NAME
    if not path.exists():
        return []
    lines = path.read_text(errors="replace").splitlines()
    found = []
    for number, line in enumerate(lines, 1):
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError as error:
            if number < len(lines):
                raise ValueError(f"{path}, line {number} is no JSON ({error})") from error
    return found


class MetricsLog:
    """Writes metrics, one line for each epoch.

    Args:
        folder: The run's.
        step: The step at which the run goes on; lines of later steps are dropped.
    """

    def __init__(self, folder: Path, step: int) -> None:
        from tensorboardX.event_file_writer import EventsWriter
        from tensorboardX.proto.event_pb2 import SessionLog

        path = folder / FILE_NAME
        os.close(open_inside(path))  # a link is refused before anything is read or replaced
        kept = [line for line in read_metrics(folder) if line["step"] <= step]
        write_inside(path, "".join(json.dumps(line) + "\n" for line in kept).encode())
        self._file = os.fdopen(open_inside(path), "a")
        # Each training session writes its own file, in the order of time, whatever the second. Not
        # with SummaryWriter: a thread writes for it, and its flush leaves out what that has not.
        board = folder / TENSORBOARD
        board.mkdir(exist_ok=True)
        self._board = EventsWriter(str(board / "events"), f".{time.time_ns()}")
        self._event(step + 1, session_log=SessionLog(status=SessionLog.START))

    def write(self, line: dict[str, Any]) -> None:
        """Add a line, and return when it is on the disk; it must have a `step`."""
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
        self._board.flush()

    def _scalar(self, name: str, value: float, step: int) -> None:
        from tensorboardX.summary import scalar

        self._event(step, summary=scalar(name, value))

    def _event(self, step: int, **content: Any) -> None:
        from tensorboardX.proto.event_pb2 import Event

        self._board.write_event(Event(wall_time=time.time(), step=step, **content))

    def __enter__(self) -> "MetricsLog":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()
        self._board.close()
