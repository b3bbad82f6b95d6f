"""`joined_processes`: from the coming together of the processes to their end."""

from collections.abc import Iterator
from contextlib import contextmanager

import jax

from convattn.lab.training.failures import OtherProcessFailed
from convattn.lab.training.hosts.processes import Processes
from convattn.lab.training.hosts.rendezvous import meet
from convattn.lab.training.hosts.start import stop_watching


@contextmanager
def joined_processes() -> Iterator[Processes]:
    """The processes that `jax.distributed.initialize` has brought together; else this one alone.

    What one of them raises inside ends all: `OtherProcessFailed` is raised in the others, or, where
    one is waiting in JAX, it ends with exit code 1 and the message. If one is lost, the others end
    so at once.

    >>> with joined_processes() as processes:
    ...     processes.index, processes.count
    (0, 1)
    """
    if jax.process_count() == 1:
        yield Processes()
        return
    index, count = jax.process_index(), jax.process_count()
    try:
        processes = Processes(index, count, meet(index, count))
    finally:
        stop_watching()
    try:
        yield processes
        processes.agree("end", None)
    except BaseException as problem:
        cause = processes.leave(problem)
        if cause and not isinstance(problem, OtherProcessFailed):
            raise OtherProcessFailed(cause) from problem
        raise
    processes.leave(None)


def one_process_alone(what: str) -> None:
    """Refuse what several processes would each do for themselves, in the same folder.

    Raises:
        ValueError: Where `jax.distributed.initialize` has brought several together.

    >>> one_process_alone("experiments/language.py")
    """
    if jax.distributed.is_initialized() and jax.process_count() > 1:
        raise ValueError(
            f"{what} runs in one process, but this is process {jax.process_index()} of "
            f"{jax.process_count()}; start it once, without jax.distributed.initialize. "
            "Several processes can share the runs of experiments/cifar.py, and "
            "convattn.lab.training.trainer.train"
        )
