"""Runs the stages of a session within its minutes, and keeps what was done.

`session.json` in the folder says how each stage ended. It is written whole after each, so that
whatever ends this process, the next session goes on: stages that are done are left alone, one that
was interrupted begins again or goes on, as its command does.
"""

import contextlib
import datetime
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from convattn.cli.running import OUT_OF_MEMORY, UsageError
from convattn.files import lock_directory, parse_json, read_file, write_file
from convattn_lab.accelerator.probe import probed
from convattn_lab.accelerator.stages import STAGES, Stage, StageOptions, environment

FILE_NAME, SCHEMA = "session.json", 1
RESERVE = 10.0  # seconds for the page
MIN_SECONDS = 5.0  # seconds; a stage is not begun with less
LOST = ("cuda_error", "device is lost", "unavailable:", "illegal memory access", "internal: failed")
# Before a command: it is to be sent SIGTERM when its parent ends, PR_SET_PDEATHSIG of prctl(2).
_BOUND = (
    "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 15); os.execv(sys.argv[1], sys.argv[1:])"
)

Status = Literal["done", "stopped", "failed", "not reached"]


@dataclass
class Ended:
    """How a stage ended.

    Attributes:
        status: Done; stopped, because its time was over; failed; or not reached.
        seconds: That it took, in all sessions.
        reason: Of a failure, in a line.
    """

    status: Status = "not reached"
    seconds: float = 0.0
    reason: str = ""


@dataclass
class Session:
    """What a folder holds.

    Attributes:
        environment: The device and the versions that it began with.
        data: What is trained on, as it was given.
        stages: By name.
        sessions: When each began, and its minutes.
    """

    environment: dict[str, Any]
    data: str | None
    stages: dict[str, Ended] = field(default_factory=dict)
    sessions: list[dict[str, Any]] = field(default_factory=list)

    def write(self, folder: Path) -> None:
        """Write `session.json`."""
        content = {"schema": SCHEMA, **asdict(self)}
        write_file(folder / FILE_NAME, (json.dumps(content, indent=1) + "\n").encode())


def read_session(folder: Path) -> Session | None:
    """The session that a folder holds, or None.

    Raises:
        UsageError: If the file is damaged.
    """
    path = folder / FILE_NAME
    if not path.exists():
        return None
    try:
        content = parse_json(read_file(path))
        if content.pop("schema") != SCHEMA:
            raise ValueError("of another version")
        stages = {name: Ended(**ended) for name, ended in content.pop("stages").items()}
        return Session(stages=stages, **content)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise UsageError(
            f"{path} is damaged ({error}), but expected what a session has written; take another "
            "folder"
        ) from error


def run_session(
    folder: Path,
    minutes: float,
    data: Path | None,
    say: Callable[[str], None],
    stages: Sequence[Stage] = STAGES,
) -> Session:
    """Run what is not done yet.

    Args:
        folder: New, empty, or of a session on the same kind of device.
        minutes: In all.
        data: As `experiments/cifar.py --data`.
        say: Shows a line.

    Raises:
        UsageError: If JAX does not start; if the folder holds something else, or a session on
            another device or on other images.
    """
    until = time.monotonic() + 60 * minutes - RESERVE
    known, environment = read_session(folder), probed()
    if known is None and folder.is_dir() and any(folder.iterdir()):
        raise UsageError(f"{folder} holds something else than a session; take another folder")
    data_path = None if data is None else str(data.resolve())
    session = known or Session(environment, data_path)
    for name, before, now in (
        ("device", session.environment["device"], environment["device"]),
        ("images", session.data or "the bundled ones", data_path or "the bundled ones"),
    ):
        if before != now:
            raise UsageError(
                f"{folder} holds a session whose {name}: {before}, but now: {now}; take another "
                "folder, or go on as it was begun"
            )
    folder.mkdir(parents=True, exist_ok=True)
    with lock_directory(folder):
        _go_on(session, folder, minutes, until, say, stages)
    return session


def _go_on(
    session: Session,
    folder: Path,
    minutes: float,
    until: float,
    say: Callable[[str], None],
    stages: Sequence[Stage],
) -> None:
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    session.sessions.append({"started": now, "minutes": minutes})
    session.write(folder)
    device, count = session.environment["device"], session.environment["devices"]
    say(f"device: {count} x {device}")
    data = None if session.data is None else Path(session.data)
    options = StageOptions(folder.resolve(), session.environment["backend"] == "cpu", data)
    ran: set[str] = set()
    for stage in stages:
        ended = session.stages.setdefault(stage.name, Ended())
        left = until - time.monotonic()
        seconds = left * stage.share - stage.grace
        if ended.status == "done" and stage.reads not in ran:
            say(f"{stage.name}: done before")
            continue
        if seconds < MIN_SECONDS:
            say(f"{stage.name}: {left:.0f} s are left, too few; the next session goes on with it")
            continue
        say(f"{stage.name}: at most {seconds:.0f} s …")
        status, reason, elapsed = run_stage(stage, options, seconds)
        ran.add(stage.name)
        session.stages[stage.name] = Ended(status, ended.seconds + elapsed, reason)
        session.write(folder)
        say(f"{stage.name}: {status} after {elapsed:.0f} s" + (f": {reason}" if reason else ""))
        if status == "failed":
            try:
                probed()
            except UsageError as error:
                raise UsageError(f"the device is lost; what was done is kept. {error}") from error


def run_stage(stage: Stage, options: StageOptions, seconds: float) -> tuple[Status, str, float]:
    """Run its command until it ends, or is over its time: the status, the reason, the seconds.

    The command ends with this process, whatever ends that.
    """
    began, log = time.monotonic(), options.folder / f"{stage.name}.log"
    bound = [sys.executable, "-c", _BOUND] if sys.platform == "linux" else []
    with log.open("wb") as out:
        child = subprocess.Popen(
            [*bound, *stage.command(options)],
            stdout=out,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env=environment(options),
            start_new_session=True,
        )
        status: Status = "done"
        try:
            code = child.wait(seconds)
        except subprocess.TimeoutExpired:
            status, code = "stopped", _ended(child, stage.grace)
        except BaseException:
            _ended(child, stage.grace)
            raise
    elapsed = time.monotonic() - began
    if code and status == "done":
        return "failed", reason_of(code, log.read_text("utf-8", "replace")), elapsed
    return status, "", elapsed


def _ended(child: "subprocess.Popen[bytes]", grace: float) -> int:
    """Ask a command and its children to end, then end them."""
    for number, seconds in ((signal.SIGTERM, grace), (signal.SIGKILL, None)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, number)
        try:
            return child.wait(seconds)
        except subprocess.TimeoutExpired:
            continue
    raise AssertionError("unreachable")


def reason_of(code: int, log: str) -> str:
    """Why a command failed, in a line.

    >>> reason_of(-9, "")
    'ended by SIGKILL; the system may have had too little memory'
    >>> reason_of(1, "E0101 RESOURCE_EXHAUSTED: Out of memory while trying to allocate 9 bytes")
    'out of memory on the device; end what else runs there'
    >>> reason_of(1, "one\\nValueError: two\\n")
    'ValueError: two'
    """
    lowered = log[-20_000:].lower()
    if any(words in lowered for words in LOST):
        return "the device was lost or refused the work; see the log"
    if any(words in lowered for words in OUT_OF_MEMORY):
        return "out of memory on the device; end what else runs there"
    if code < 0:
        name = signal.Signals(-code).name
        return f"ended by {name}; the system may have had too little memory"
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return lines[-1][:300] if lines else f"exit code {code}"
