"""Running the selected evidence in worker processes.

Every check runs in a worker, also with one job, so that nothing a check does can end the runner: a
worker that dies makes the evidence it was checking fail, and is replaced. Workers are started once
and kept, since importing JAX takes a second.
"""

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from convattn.ledger.outcome import ClaimOutcome, EvidenceOutcome
from convattn.ledger.selection import Selected
from convattn.ledger.worker import Result, Task
from convattn.ledger.worker_process import WorkerProcess, cores


@dataclass(frozen=True)
class Options:
    """How to run.

    Attributes:
        certificates: The directory of the committed certificates.
        seed: The seed from which every check derives its generators.
        quick: Passed on to the checks.
        jobs: The number of worker processes; as many as cores if ``None``.
        timeout: Seconds after which a check is ended and counts as failed.
        preload: Modules that a worker imports before its first check.
    """

    certificates: Path
    seed: int = 0
    quick: bool = False
    jobs: int | None = None
    timeout: float | None = None
    preload: tuple[str, ...] = ("jax",)


@dataclass
class Outcome:
    """What a run found.

    Attributes:
        claims: One outcome for each selected claim, in their order.
        environment: What the workers ran on.
        startups: Seconds that each worker took to start.
        seconds: Wall time of the whole run.
        interrupted: Whether the run was ended by the user; what had not run is then not run.
    """

    claims: list[ClaimOutcome] = field(default_factory=list)
    environment: dict[str, Any] = field(default_factory=dict)
    startups: list[float] = field(default_factory=list)
    seconds: float = 0.0
    interrupted: bool = False


def run(
    selected: Sequence[Selected],
    options: Options,
    finished: Callable[[ClaimOutcome], None] = lambda outcome: None,
    progressed: Callable[[str, int, int], None] = lambda name, done, total: None,
) -> Outcome:
    """Run the selected evidence.

    Args:
        selected: The claims and what to run of them.
        options: How to run.
        finished: Called with each claim as its last evidence comes in.
        progressed: Called after each piece of evidence with its name and the counts.

    Returns:
        The outcome, with the claims in the order given.
    """
    return _Session(selected, options, finished, progressed).run()


class _Session:
    """One run: a queue of tasks, the workers, and the results so far."""

    def __init__(
        self,
        selected: Sequence[Selected],
        options: Options,
        finished: Callable[[ClaimOutcome], None],
        progressed: Callable[[str, int, int], None],
    ) -> None:
        self.selected, self.options = selected, options
        self.finished, self.progressed = finished, progressed
        self.tasks: list[Task] = []
        self.owned: list[range] = []  # for each claim, the numbers of its tasks
        for item in selected:
            first = len(self.tasks)
            self.tasks.extend(self._tasks(item))
            self.owned.append(range(first, len(self.tasks)))
        self.owner = [
            position for position, numbers in enumerate(self.owned) for _ in range(len(numbers))
        ]
        self.queue = deque(range(len(self.tasks)))
        self.results: dict[int, Result] = {}
        self.jobs = max(1, min(options.jobs or cores(), len(self.tasks)))
        self.threads = max(1, cores() // self.jobs)
        self.workers: list[WorkerProcess] = []
        self.outcome = Outcome()

    def run(self) -> Outcome:
        start = time.perf_counter()
        try:
            for position, numbers in enumerate(self.owned):
                if not numbers:
                    self.finished(self._claim(position))
            while len(self.results) < len(self.tasks):
                self._replenish()
                self._listen()
        except KeyboardInterrupt:
            self.outcome.interrupted = True
        finally:
            for worker in self.workers:
                worker.dismiss()
            for worker in self.workers:
                worker.join()
        self.outcome.claims = [self._claim(position) for position in range(len(self.selected))]
        self.outcome.seconds = time.perf_counter() - start
        return self.outcome

    def _replenish(self) -> None:
        starting = sum(not worker.ready for worker in self.workers)
        for _ in range(min(self.jobs - len(self.workers), len(self.queue) - starting)):
            self.workers.append(WorkerProcess(self.options.preload, self.threads))

    def _listen(self) -> None:
        awaited = [worker for worker in self.workers if worker.awaited]
        timeout = self.options.timeout
        left = [timeout - worker.seconds for worker in awaited if timeout and worker.ready]
        heard = wait([w.connection for w in awaited], max(0.0, min(left)) if left else None)
        for worker in awaited:
            if worker.connection in heard:
                self._hear(worker)
            elif timeout and worker.ready and worker.seconds > timeout:
                self._give_up(worker, f"timed out after {timeout:g} s")

    def _hear(self, worker: WorkerProcess) -> None:
        try:
            message = worker.receive()
        except EOFError:
            self._give_up(worker, "")
            return
        if isinstance(message, Result):
            index, worker.index = worker.index, None
            if index is not None:
                self._record(index, message)
        elif message.error:
            self._give_up(worker, f"the worker process could not start\n{message.error}")
            return
        else:
            worker.ready = True
            self.outcome.startups.append(worker.seconds)
            self.outcome.environment = self.outcome.environment or message.environment
        if self.queue:
            index = self.queue.popleft()
            worker.assign(index, self.tasks[index])

    def _give_up(self, worker: WorkerProcess, reason: str) -> None:
        """Fail what the worker was doing or, if it never started, what it would have done."""
        self.workers.remove(worker)
        seconds = worker.seconds
        if reason:
            worker.kill()
        ending = worker.join()
        index = worker.index
        if index is None and self.queue:
            index = self.queue.popleft()
        if index is not None:
            self._record(index, Result(False, reason or ending, seconds))

    def _record(self, index: int, result: Result) -> None:
        self.results[index] = result
        task, position = self.tasks[index], self.owner[index]
        if all(number in self.results for number in self.owned[position]):
            self.finished(self._claim(position))
        self.progressed(f"{task.claim}: {task.evidence}", len(self.results), len(self.tasks))

    def _tasks(self, item: Selected) -> list[Task]:
        options = self.options
        return [
            Task(
                item.proof.path,
                item.proof.name,
                evidence.name,
                options.seed,
                options.quick,
                options.certificates,
            )
            for evidence in item.evidence
        ]

    def _claim(self, position: int) -> ClaimOutcome:
        item, outcomes = self.selected[position], []
        for index, evidence in zip(self.owned[position], item.evidence, strict=True):
            result = self.results.get(index, _INTERRUPTED)
            outcomes.append(
                EvidenceOutcome(
                    evidence.name,
                    evidence.level,
                    result.passed,
                    result.detail,
                    result.seconds,
                    evidence.assumes,
                )
            )
        return ClaimOutcome(item, tuple(outcomes))


_INTERRUPTED = Result(None, "not run: the verification was interrupted")
