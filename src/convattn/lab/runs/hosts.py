"""The options by which a command becomes one of several processes that train together."""

import os
import sys
import time
from dataclasses import dataclass
from typing import Annotated

import tyro

OPTIONS = ("--coordinator", "--processes", "--process")
FLAGS = ("--distributed", "--no-distributed")
PAUSE = 2.0  # seconds for the others to end in order, when process 0 ends in disorder


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
    def given(self) -> bool:
        """Whether there are several processes.

        >>> HostArguments().given, HostArguments(distributed=True).given
        (False, True)
        """
        return self.distributed or (self.coordinator, self.processes, self.process) != (None,) * 3

    def start(self) -> None:
        """Bring the processes together, before JAX is used.

        Raises:
            ValueError: If both ways are given, and what `start_processes` raises.
        """
        if not self.given:
            return
        from convattn.lab.training.hosts import start_processes

        if not self.distributed:
            start_processes(self.coordinator, self.processes, self.process, named=True)
        elif self.coordinator or self.processes or self.process is not None:
            raise ValueError(
                "--distributed takes the processes from the cluster, but "
                "--coordinator, --processes or --process was given too; leave it or them out"
            )
        else:
            start_processes()


def part(code: int) -> int:
    """Leave the other processes: in order with code 0, else at once, without waiting for them.

    Returns:
        The code, if JAX was not distributed.
    """
    jax = sys.modules.get("jax")  # as long as nobody has imported it, nothing is distributed
    if code and jax is not None and jax.distributed.is_initialized():
        from convattn.lab.training.hosts import stop_watching

        stop_watching()
        sys.stdout.flush()
        sys.stderr.flush()
        if jax.process_index() == 0:
            time.sleep(PAUSE)  # JAX aborts those that are still there when its first process ends
        os._exit(code)
    return code
