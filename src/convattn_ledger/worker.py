"""What a worker process does: it loads proof files and runs their checks, one at a time.

Importing this module loads neither JAX nor any proof.
"""

import importlib
import os
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from convattn.extras import missing
from convattn_ledger.claim import Evidence, EvidenceFailed, NotRunHere, Run
from convattn_ledger.discovery import load_claim
from convattn_ledger.environment import device_environment


@dataclass(frozen=True)
class Worker:
    """A worker process: its number, how long it took to start, its device, or its failure."""

    pid: int = 0
    startup: float = 0.0
    environment: dict[str, Any] = field(default_factory=dict)
    error: str = ""


@dataclass(frozen=True)
class Result:
    """What a check returned; ``passed`` is ``None`` if it was not run here."""

    passed: bool | None
    detail: str
    seconds: float = 0.0
    worker: Worker = Worker()


def start(preload: tuple[str, ...], threads: int, programs: str) -> None:
    """Prepare this process: called once, before its first check.

    Args:
        preload: Modules to import first, so that their import counts for no check.
        threads: How many threads the numerical libraries should use, unless the environment says.
        programs: The directory through which the workers share what they have compiled.
    """
    global _worker
    began, error = time.perf_counter(), ""
    os.dup2(2, 1)  # what a check prints must not end up within the report on stdout
    os.environ["JAX_ENABLE_X64"] = "1"
    for name in ("NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, str(threads))  # NPROC is what XLA's CPU client reads
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # workers share a device
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", programs)
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    environment: dict[str, Any] = {}
    try:
        for module in preload:
            importlib.import_module(module)
        environment = device_environment()
    except Exception:
        error = f"the worker process could not start\n{traceback.format_exc().rstrip()}"
    _worker = Worker(os.getpid(), time.perf_counter() - began, environment, error)


def execute(path: Path, run: Run) -> Result:
    """Run one check of a proof file and turn whatever it does into a `Result`."""
    began, detail = time.perf_counter(), _worker.error
    passed: bool | None = False
    if not detail:
        try:
            evidence = _find(path, run.evidence)
        except BaseException:
            detail = f"the proof could not be loaded\n{traceback.format_exc().rstrip()}"
        else:
            began = time.perf_counter()
            passed, detail = _judge(evidence, run)
    return Result(passed, detail, time.perf_counter() - began, _worker)


def _find(path: Path, name: str) -> Evidence:
    if path not in _loaded:
        _loaded[path] = {item.name: item for item in load_claim(path)[0].evidence}
    return _loaded[path][name]


def _judge(evidence: Evidence, run: Run) -> tuple[bool | None, str]:
    try:
        detail = evidence.check(run)
    except NotRunHere as reason:
        return None, str(reason) or "not run here; the check gives no reason"
    except EvidenceFailed as reason:
        return False, str(reason) or "failed; the check gives no reason"
    except BaseException as error:
        if isinstance(error, ModuleNotFoundError) and (package := missing(error)):
            return None, package
        trace = error.__traceback__.tb_next if error.__traceback__ else None
        lines = traceback.format_exception(type(error), error, trace)
        return False, f"raised {error!r}\n{''.join(lines).rstrip()}"
    if not isinstance(detail, str) or not detail.strip():
        return False, f"returned {detail!r}, but expected a line with the numbers it computed"
    return True, detail.strip()


_loaded: dict[Path, dict[str, Evidence]] = {}
_worker = Worker()
