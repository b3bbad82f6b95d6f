"""A worker process: it loads proof files and runs their checks, one at a time.

The parent sends a `Task` or, to end the worker, ``None``, and receives a `Ready` once and then one
`Result` a task. Importing this module loads neither JAX nor any proof.
"""

import importlib
import os
import time
import traceback
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from convattn.ledger.claim import Evidence, EvidenceFailed, NotRunHere, Run
from convattn.ledger.discovery import load_claim
from convattn.ledger.environment import device_environment


@dataclass(frozen=True)
class Task:
    """One check to run: the file, the evidence's name, and what its `Run` holds."""

    path: Path
    claim: str
    evidence: str
    seed: int
    quick: bool
    certificates: Path


@dataclass(frozen=True)
class Ready:
    """The worker has started, or, if there is an error, it cannot."""

    environment: dict[str, Any]
    error: str = ""


@dataclass(frozen=True)
class Result:
    """What a check said; ``passed`` is ``None`` if it was not run here."""

    passed: bool | None
    detail: str
    seconds: float = 0.0


def serve(connection: Connection, preload: tuple[str, ...], threads: int) -> None:
    """Run the parent's tasks until it sends ``None`` or goes away.

    Args:
        connection: The worker's end of a pipe.
        preload: Modules to import first, so that their import counts for no check.
        threads: How many threads the numerical libraries should use, unless the environment says.
    """
    os.dup2(2, 1)  # what a check prints must not end up within the report on stdout
    os.environ["JAX_ENABLE_X64"] = "1"
    for name in ("NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, str(threads))  # NPROC is what XLA's CPU client reads
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # workers share a device
    try:
        for module in preload:
            importlib.import_module(module)
        ready = Ready(device_environment())
    except Exception:
        ready = Ready({}, traceback.format_exc().rstrip())
    try:
        connection.send(ready)
        while (task := connection.recv()) is not None:
            connection.send(execute(task))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return


def execute(task: Task) -> Result:
    """Run one check and turn whatever it does into a `Result`."""
    try:
        evidence = _find(task)
    except BaseException:
        return Result(False, f"the proof could not be loaded\n{traceback.format_exc().rstrip()}")
    run = Run(task.seed, task.quick, task.certificates, task.claim, task.evidence)
    start = time.perf_counter()
    passed, detail = _judge(evidence, run)
    return Result(passed, detail, time.perf_counter() - start)


def _find(task: Task) -> Evidence:
    if task.path not in _loaded:
        _loaded[task.path] = {item.name: item for item in load_claim(task.path)[0].evidence}
    return _loaded[task.path][task.evidence]


def _judge(evidence: Evidence, run: Run) -> tuple[bool | None, str]:
    try:
        detail = evidence.check(run)
    except NotRunHere as reason:
        return None, str(reason) or "not run here, for a reason that the check does not give"
    except EvidenceFailed as reason:
        return False, str(reason) or "failed, for a reason that the check does not give"
    except BaseException as error:
        trace = error.__traceback__.tb_next if error.__traceback__ else None
        lines = traceback.format_exception(type(error), error, trace)
        return False, f"raised {error!r}\n{''.join(lines).rstrip()}"
    if not isinstance(detail, str) or not detail.strip():
        return False, f"returned {detail!r}, but expected a line with the figures it saw"
    return True, detail.strip()


_loaded: dict[Path, dict[str, Evidence]] = {}
