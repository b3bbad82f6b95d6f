"""The options by which a command becomes one of several processes that train together."""

import os
import sys
import time
from dataclasses import dataclass
from typing import Annotated

import tyro

OPTIONS = ("--coordinator", "--processes", "--process")
FLAGS = ("--distributed", "--no-distributed")
PAUSE = 2.0  # seconds for the others to say what is wrong, when process 0 fails


@dataclass(frozen=True)
class HostArguments:
    """One of several processes that train one model, each started with the same other arguments."""

    coordinator: Annotated[str | None, tyro.conf.arg(metavar="HOST:PORT")] = None
    """Where process 0 waits for the others: its host, and a port that is free there."""
    processes: int | None = None
    """How many processes train together."""
    process: int | None = None
    """Which of them this is, from 0; process 0 alone writes the folder of the run."""
    distributed: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Take these three from the cluster that started the processes (Slurm, Open MPI, a TPU pod)."""

    @property
    def multi_process(self) -> bool:
        """Whether there are several processes.

        >>> HostArguments().multi_process, HostArguments(distributed=True).multi_process
        (False, True)
        """
        return self.distributed or (self.coordinator, self.processes, self.process) != (None,) * 3

    def start(self) -> None:
        """Bring the processes together, before JAX is used.

        Raises:
            ValueError: If both ways are given, and what `start_processes` raises.
        """
        if not self.multi_process:
            return
        from convattn_lab.training.hosts import start_processes

        named = self.coordinator, self.processes, self.process
        if self.distributed and named != (None,) * 3:
            raise ValueError(
                "--distributed takes the processes from the cluster, but "
                "--coordinator, --processes or --process was given too; leave it or them out"
            )
        start_processes(*named)


def leave_other_processes(code: int) -> int:
    """Leave the other processes: with code 0 when all are done, else at once.

    Returns:
        The code, unless it ends this process.
    """
    jax = sys.modules.get("jax")  # as long as nobody has imported it, nothing is distributed
    if not code or jax is None or not jax.distributed.is_initialized():
        return code
    sys.stdout.flush()
    sys.stderr.flush()
    if jax.process_index() == 0:
        time.sleep(PAUSE)  # JAX aborts the others when its first process ends
    os._exit(code)
