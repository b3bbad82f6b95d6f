"""`start_processes`: bring the processes of a run together, before JAX is used."""

import atexit
import os
import sys
import threading
from typing import Any

import jax

from convattn.lab.training.hosts.rendezvous import listening
from convattn.lab.training.hosts.watchdog import Watchdog

PATIENCE = 300.0
MARGIN = 60.0  # JAX's own patience is longer by this: it ends the process by an abort
FAILED = 1
_WATCHING: list[Watchdog] = []  # from the start until the processes have met


def start_processes(
    coordinator: str | None = None,
    processes: int | None = None,
    process: int | None = None,
    *,
    patience: float = PATIENCE,
    named: bool = False,
) -> None:
    """`jax.distributed.initialize`, with a word on what is wrong where it does not come about.

    Without arguments JAX finds out from the cluster that started the processes (Slurm, Open MPI,
    Kubernetes, a TPU pod).

    Args:
        coordinator: `HOST:PORT`, where the first process, on that host, waits for the others.
        processes: How many there are.
        process: Which of them this is, from 0.
        named: The three must be given: no cluster is looked for.
        patience: In seconds. If not all have come by then, the process ends with a message.

    Raises:
        ValueError: For arguments that cannot be right, if JAX has been used before, if no cluster
            is found, and if the port is taken.

    >>> start_processes("here", 2, 0)
    Traceback (most recent call last):
    ValueError: the coordinator is 'here', but expected HOST:PORT, such as 10.0.0.1:8476
    """
    if named or (coordinator, processes, process) != (None, None, None):
        check_processes(coordinator, processes, process)
    who = "this process" if process is None else f"process {process} of {processes}"
    where = "" if coordinator is None else f" at {coordinator}"

    if coordinator is not None and process == 0:
        check_port(coordinator)

    def give_up() -> None:
        stop_watching()
        print(
            f"convattn: {who} waited {patience:.0f} s{where}, and not all processes came; see "
            "whether all were started with the same coordinator and number, each with an index of "
            "its own, and whether that port can be reached from every machine",
            file=sys.stderr,
            flush=True,
        )
        os._exit(FAILED)

    # JAX's own handler of SIGTERM would hide the signal from the trainer.
    jax.config.update("jax_enable_preemption_service", False)
    _WATCHING.append(
        Watchdog(
            f"convattn: {who} was ended{where} before all processes had met: from outside, or by "
            "JAX, as it does where two of them have the same index; start all again, each with an "
            "index of its own"
        )
    )
    timer = threading.Timer(patience, give_up)
    timer.daemon = True
    timer.start()
    given: dict[str, Any] = {
        "coordinator_address": coordinator,
        "num_processes": processes,
        "process_id": process,
        "initialization_timeout": int(patience + MARGIN),
    }
    if coordinator is not None:
        given["cluster_detection_method"] = "deactivate"
    try:
        jax.distributed.initialize(**given)
    except jax.errors.JaxRuntimeError as problem:
        stop_watching()
        raise ValueError(
            f"{who} could not begin{where} ({str(problem).splitlines()[0]}); see whether the port "
            "is free on this machine, and take another"
        ) from problem
    except (RuntimeError, ValueError) as problem:
        stop_watching()
        raise ValueError(
            f"{who} could not begin{where}: {' '.join(str(problem).split())} If no cluster was "
            "found, give coordinator, number and index"
        ) from problem
    finally:
        timer.cancel()


@atexit.register
def stop_watching() -> None:
    """The processes have met, or this one ends in order: it can speak for itself."""
    while _WATCHING:
        _WATCHING.pop().goodbye()


def check_port(coordinator: str) -> None:
    """Refuse a port of this machine that another program has; JAX 0.11 would crash over it.

    Raises:
        ValueError: As described above.
    """
    port = int(coordinator.rpartition(":")[2])
    try:
        listening(port).close()
    except OSError as problem:
        raise ValueError(
            f"process 0 could not begin at {coordinator} ({problem.strerror}); see whether the "
            "port is free on this machine, and take another"
        ) from problem


def check_processes(coordinator: str | None, processes: int | None, process: int | None) -> None:
    """Refuse what cannot be right.

    Raises:
        ValueError: As described above.
    """
    if coordinator is None or processes is None or process is None:
        raise ValueError(
            f"coordinator={coordinator}, processes={processes}, process={process}: expected all "
            "three, or none where the cluster tells them"
        )
    host, _, port = coordinator.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 2**16:
        raise ValueError(
            f"the coordinator is {coordinator!r}, but expected HOST:PORT, such as 10.0.0.1:8476"
        )
    if processes < 1 or not 0 <= process < processes:
        raise ValueError(
            f"process={process} of {processes}, but expected 0 to {max(processes - 1, 0)}: each "
            "process has an index of its own"
        )
