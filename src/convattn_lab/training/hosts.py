"""Several processes, on one machine or on many, that train one model together.

`jax.distributed` brings them together. JAX runs one program in all of them, so whatever decides
what comes next must be the same in each: what a clock, a signal or a disk says in one of them is
passed on to all, by `jax.experimental.multihost_utils`. Every process calls the functions below in
the same order; a single process is always in agreement with itself.

A process that fails or is lost ends the others, with JAX's message. Started again in the same
folder, they go on from the newest checkpoint.
"""

import json
import pickle
import socket
from typing import Any

import jax
import jaxlib
import numpy as np

from convattn_lab.training.failures import ProcessesDiffer
from convattn_lab.training.settings import TrainingSettings
from convattn_lab.training.structure import differences

HEARTBEAT = 60  # seconds without a sign of life after which a process is lost
PATIENCE = 300  # seconds until all must have come
LOST = (
    "convattn: if one of the processes is lost, JAX ends the others; to go on from the newest "
    "checkpoint start all of them again with: {}, and each with its --coordinator, --processes and "
    "--process, or --distributed"
)
FLAGS = ("jax_enable_x64", "jax_default_matmul_precision", "jax_threefry_partitionable")


def start_processes(
    coordinator: str | None = None,
    processes: int | None = None,
    process: int | None = None,
    *,
    patience: int = PATIENCE,
) -> None:
    """`jax.distributed.initialize`, before JAX is used.

    Without arguments JAX asks the cluster that started the processes (Slurm, Open MPI, Kubernetes,
    a TPU pod).

    Args:
        coordinator: `HOST:PORT`, where the first process, on that host, waits for the others.
        processes: How many there are.
        process: Which of them this is, from 0.
        patience: In seconds. If not all have come by then, JAX ends the process.

    Raises:
        ValueError: For arguments that cannot be right, a port that is taken, and if JAX has been
            used before or finds no cluster.

    >>> start_processes("here", 2, 0)
    Traceback (most recent call last):
    ValueError: coordinator='here', but expected HOST:PORT, such as 10.0.0.1:8476
    """
    options: dict[str, Any] = {}
    if (coordinator, processes, process) != (None, None, None):
        check_processes(coordinator, processes, process)
        options = {
            "coordinator_address": coordinator,
            "num_processes": processes,
            "process_id": process,
            "cluster_detection_method": "deactivate",
        }
    # JAX's own handler of SIGTERM would hide the signal from the trainer.
    jax.config.update("jax_enable_preemption_service", False)
    try:
        jax.distributed.initialize(
            **options, initialization_timeout=patience, heartbeat_timeout_seconds=HEARTBEAT
        )
    except (RuntimeError, ValueError) as problem:  # also JaxRuntimeError
        raise ValueError(
            f"coordinator={coordinator}, processes={processes}, process={process}, but "
            f"{' '.join(str(problem).split())}; see whether the port is free on the first machine "
            "and can be reached from the others, or give all three if no cluster was found"
        ) from problem


def check_processes(coordinator: str | None, processes: int | None, process: int | None) -> None:
    """Refuse what cannot be right, and a port that is taken: JAX could crash over it."""
    if coordinator is None or processes is None or process is None:
        raise ValueError(
            f"coordinator={coordinator}, processes={processes}, process={process}, but expected "
            "all three; leave all out where a cluster tells them"
        )
    host, _, port = coordinator.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 2**16:
        raise ValueError(
            f"coordinator={coordinator!r}, but expected HOST:PORT, such as 10.0.0.1:8476"
        )
    if not 0 <= process < processes:
        raise ValueError(
            f"process={process} of {processes}, but expected 0 to {max(processes - 1, 0)}; give "
            "each process an index of its own"
        )
    if process == 0:
        try:
            socket.create_server(("", int(port))).close()
        except OSError as problem:
            raise ValueError(
                f"coordinator={coordinator!r}, but the port cannot be used here "
                f"({problem.strerror}); take another"
            ) from problem


def one_process_alone(what: str) -> None:
    """Refuse what several processes would each do for themselves, in the same folder.

    Raises:
        ValueError: Where `jax.distributed.initialize` has brought several together.

    >>> one_process_alone("experiments/language.py")
    """
    if jax.distributed.is_initialized() and jax.process_count() > 1:
        raise ValueError(
            f"{jax.process_count()} processes, but {what} runs in one; start it once, without "
            "jax.distributed.initialize. Several can share the runs of experiments/cifar.py, and "
            "convattn_lab.training.trainer.train"
        )


def is_first() -> bool:
    """Whether this process is the one that reads and writes the folder of the run."""
    return jax.process_index() == 0


def from_first(value: Any) -> Any:
    """What the first process gives, in all of them, arrays bit for bit.

    >>> from_first({"a": 1})
    {'a': 1}
    """
    if jax.process_count() == 1:
        return value
    from jax.experimental.multihost_utils import broadcast_one_to_all

    # As bytes: JAX adds up what all give, and 0.0 + -0.0 is not -0.0.
    own = np.frombuffer(pickle.dumps(value if is_first() else None), np.uint8)
    length = int(broadcast_one_to_all(np.uint32(len(own))))
    content = broadcast_one_to_all(np.resize(own, length))
    return pickle.loads(np.asarray(content).astype(np.uint8).tobytes())


def gather(*numbers: int) -> np.ndarray:
    """What every process gives, `[processes, numbers]`.

    >>> gather(3, 0).tolist()
    [[3, 0]]
    """
    own = np.array(numbers, np.int32)
    if jax.process_count() == 1:
        return own[None]
    from jax.experimental.multihost_utils import process_allgather

    return np.asarray(process_allgather(own))


def check_equal(what: dict[str, Any]) -> None:
    """Refuse to go on unless all processes give the same.

    Raises:
        ProcessesDiffer: In all of them; those that differ from the first say in what.
    """
    own = json.loads(json.dumps(what))  # as the others see it
    first = from_first(own)
    names = differences(first, own)
    differing = np.flatnonzero(gather(len(names))[:, 0]).tolist()
    if differing:
        raise ProcessesDiffer(
            f"process {', '.join(map(str, differing))} differs from process 0"
            f"{' in ' + ', '.join(names) if names else '; its message says in what'}; give every "
            "process the same"
        )


def environment_of(settings: TrainingSettings) -> dict[str, Any]:
    """Versions and settings that decide which program is compiled."""
    return {
        "devices": settings.devices,
        "steps_per_call": settings.steps_per_call,
        "the version of JAX": [jax.__version__, jaxlib.__version__],
        **{name: getattr(jax.config, name) for name in FLAGS},
        "the kind of device": jax.local_devices()[0].device_kind,
    }
