"""Running the selected evidence in worker processes, and when the results count as success.

Every check runs in a worker, also with one job, so that nothing a check does can end the runner: a
worker that dies makes the evidence it was checking fail, and is replaced. Workers are started once
and kept, since importing JAX takes a second.
"""

import contextlib
import multiprocessing
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pebble import ProcessExpired, ProcessPool

from convattn.temporary import temporary_folder
from convattn_ledger.claim import Evidence, Level, Run, Verdict
from convattn_ledger.environment import cores
from convattn_ledger.journal import Journal
from convattn_ledger.selection import Selected
from convattn_ledger.worker import Result, Worker, execute, start

_SPAWN = multiprocessing.get_context("spawn")
# Also ends the wait for a worker whose end pebble overlooks: one that left by exit(0), or died in
# the first milliseconds of a check, before the pool had seen it start.
_LONGEST = 3600.0
_INTERRUPTED = Result(None, "not run: the verification was interrupted")


@dataclass(frozen=True)
class Options:
    """How to run.

    Attributes:
        certificates: The directory of the committed certificates.
        seed: The seed from which every check derives its generators.
        quick: Passed on to the checks.
        jobs: The number of worker processes; as many as cores if ``None``.
        timeout: Seconds after which a check is ended and counts as failed; an hour if ``None``.
        preload: Modules that a worker imports before its first check.
        journal: Where to keep what has passed until the run ends, and what an ended one has kept.
    """

    certificates: Path
    seed: int = 0
    quick: bool = False
    jobs: int | None = None
    timeout: float | None = None
    preload: tuple[str, ...] = ("jax",)
    journal: Journal | None = None


@dataclass(frozen=True)
class EvidenceOutcome:
    """What became of one piece of evidence.

    Attributes:
        evidence: The evidence.
        passed: ``None`` if it was not run here, which satisfies nothing.
        detail: The numbers computed, the reason for the failure, or why it was not run.
        seconds: Wall time of the check.
    """

    evidence: Evidence
    passed: bool | None
    detail: str
    seconds: float


@dataclass(frozen=True)
class ClaimOutcome:
    """What became of one claim."""

    selected: Selected
    evidence: tuple[EvidenceOutcome, ...]

    @property
    def id(self) -> str:
        """The claim's id, or the label of a file that could not be loaded."""
        return self.selected.proof.name

    @property
    def seconds(self) -> float:
        """The summed wall time of its checks."""
        return sum(item.seconds for item in self.evidence)

    def at_level(self, level: Level) -> list[bool | None]:
        """Which evidence of exactly this level passed."""
        return [item.passed for item in self.evidence if item.evidence.level is level]

    @property
    def levels(self) -> dict[Level, bool | None]:
        """What became of each level of the claim, the strongest first, run here or not.

        ``False`` if some of its evidence failed, ``True`` if all that was selected passed, else
        ``None``: some of it was not run, or none was selected.
        """
        claim = self.selected.proof.claim
        pieces = claim.evidence if claim else self.selected.evidence
        levels = sorted({piece.level for piece in pieces}, reverse=True)
        passed = {level: self.at_level(level) for level in levels}
        return {
            level: False if False in results else True if results and all(results) else None
            for level, results in passed.items()
        }

    def level_words(self, level: Level) -> str:
        """A level as the tables name it, such as "TESTED not run in full"."""
        passed = self.levels[level]
        if passed is not None:
            return level.name if passed else f"{level.name} failed"
        extent = "in full" if any(self.at_level(level)) else "here"
        return f"{level.name} not {'re-checked' if level is Level.PROVED else 'run'} {extent}"

    @property
    def problems(self) -> tuple[str, ...]:
        """Why the evidence for the claim fails; empty if it passes.

        It passes if the claim's file loaded, no evidence failed, some evidence ran, and, where all
        of its evidence was selected, each level that its kinds require was reached. A claim whose
        verdict is "not run" says nothing that evidence must bear: what it has may need the
        repository.
        """
        if self.selected.problem:
            return (self.selected.problem,)
        problems = [
            f"{item.evidence.name} ({item.evidence.level.name}): {item.detail}"
            for item in self.evidence
            if item.passed is False
        ]
        claim = self.selected.proof.claim
        if claim is not None and claim.verdict is Verdict.NOT_RUN:
            return tuple(problems)
        if all(item.passed is None for item in self.evidence):
            problems.append("none of its evidence was run")
        missing = sorted(level for level in self.selected.required if not any(self.at_level(level)))
        if missing and not problems:
            names = ", ".join(level.name for level in reversed(missing))
            problems.append(f"not reached, though its kind requires it: {names}")
        return tuple(problems)

    @property
    def passed(self) -> bool:
        """Whether nothing that was asked for speaks against the claim; see `result` for words."""
        return not self.problems

    @property
    def result(self) -> str:
        """What the evidence does: "passes", "fails", or "is incomplete".

        It is incomplete where some of the selected evidence did not run, whether it could not or
        the run was interrupted, and where none was selected of a level of the claim.
        """
        if self.selected.problem or any(item.passed is False for item in self.evidence):
            return "fails"
        return "passes" if self.passed and all(self.levels.values()) else "is incomplete"


@dataclass
class Outcome:
    """The results of a run.

    Attributes:
        claims: One outcome for each selected claim, in their order.
        environment: What the workers ran on.
        startups: Seconds that each worker took to start.
        seconds: Wall time of the whole run.
        interrupted: The exit status if a signal ended the run early, else 0; checks that had not
            ended by then are not run.
    """

    claims: list[ClaimOutcome] = field(default_factory=list)
    environment: dict[str, Any] = field(default_factory=dict)
    startups: list[float] = field(default_factory=list)
    seconds: float = 0.0
    interrupted: int = 0

    @property
    def passed(self) -> bool:
        """Whether the run came to its end, some evidence ran, and no claim has a problem."""
        return not self.interrupted and self.ran and all(claim.passed for claim in self.claims)

    @property
    def ran(self) -> bool:
        """Whether any evidence passed or failed."""
        return any(item.passed is not None for claim in self.claims for item in claim.evidence)


def run(
    selected: Sequence[Selected],
    options: Options,
    finished: Callable[[ClaimOutcome], None] = lambda outcome: None,
    progressed: Callable[[str, int, int], None] = lambda name, done, total: None,
) -> Outcome:
    """Run the selected evidence; what is not quick runs first, so that no worker idles at the end.

    Args:
        selected: The claims and what to run of them.
        options: How to run.
        finished: Called with each claim once all its evidence has run.
        progressed: Called after each piece of evidence with its name and the counts.

    Returns:
        The outcome, with the claims in the order given.
    """
    began, interrupted = time.perf_counter(), 0
    results: list[dict[str, Result]] = [{} for _ in selected]
    workers: dict[int, Worker] = {}
    work = [(number, piece) for number, item in enumerate(selected) for piece in item.evidence]
    work.sort(key=lambda pair: pair[1].quick)
    total = len(work)
    recorded = options.journal.read() if options.journal is not None else {}
    for number, piece in work[: total - 1]:  # one runs, which says on what device
        result = recorded.get((selected[number].proof.name, piece.name))
        if result is not None:
            results[number][piece.name] = result
    work = [(number, piece) for number, piece in work if piece.name not in results[number]]
    jobs = max(1, min(options.jobs or cores(), len(work)))
    with temporary_folder("convattn-verify-") as programs:
        preparation = (options.preload, max(1, cores() // jobs), str(programs))
        pool = ProcessPool(jobs, initializer=start, initargs=preparation, context=_SPAWN)
        try:
            for item, passed in zip(selected, results, strict=True):
                if len(passed) == len(item.evidence):
                    finished(_claim_outcome(item, passed))
            if len(work) < total:
                progressed("starting", total - len(work), total)
            with _interrupt_ignored():
                futures = {
                    _submit(pool, selected[number], piece, options): (number, piece)
                    for number, piece in work
                }
            for done, future in enumerate(as_completed(futures), start=total - len(work) + 1):
                number, piece = futures[future]
                result = _result(future, options)
                workers.setdefault(result.worker.pid, result.worker)
                results[number][piece.name] = result
                if options.journal is not None:
                    options.journal.add(selected[number].proof.name, piece.name, result)
                if len(results[number]) == len(selected[number].evidence):
                    finished(_claim_outcome(selected[number], results[number]))
                progressed(f"{selected[number].proof.name}: {piece.name}", done, total)
        except KeyboardInterrupt:
            interrupted = 130
        except SystemExit as ended:  # the command raises it on SIGTERM and SIGHUP
            interrupted = int(ended.code or 0)
        finally:
            pool.stop()
            pool.join()
    if options.journal is not None and not interrupted:
        options.journal.remove()
    started = [item for item in workers.values() if item.pid and not item.error]
    return Outcome(
        claims=[_claim_outcome(*pair) for pair in zip(selected, results, strict=True)],
        environment=started[0].environment if started else {},
        startups=[item.startup for item in started],
        seconds=time.perf_counter() - began,
        interrupted=interrupted,
    )


def _submit(
    pool: ProcessPool, item: Selected, piece: Evidence, options: Options
) -> "Future[Result]":
    circumstances = Run(
        options.seed, options.quick, options.certificates, item.proof.name, piece.name
    )
    arguments = (item.proof.path, circumstances)
    return pool.schedule(execute, arguments, timeout=options.timeout or _LONGEST)


def _result(future: "Future[Result]", options: Options) -> Result:
    """The result of a check, also if its worker died or was ended."""
    try:
        return future.result()
    except TimeoutError:
        seconds = options.timeout or _LONGEST
        return Result(False, f"timed out after {seconds:g} s", seconds)
    except ProcessExpired as ended:
        code = ended.exitcode
        name = signal.Signals(-code).name if -code in set(signal.Signals) else ""
        hint = " (often: out of memory)" if name == "SIGKILL" else ""
        ending = f": {name}{hint}" if name else ""
        return Result(False, f"the worker process died with exit code {code}{ending}")
    except BrokenProcessPool:
        modules = ", ".join(options.preload) or "sys"
        return Result(
            False,
            "the worker processes ended as they started, before any check; see what they printed "
            f'to stderr, or try: python -c "import {modules}"',
        )
    except Exception as error:
        return Result(False, f"the worker processes could not be kept running: {error!r}")


def _claim_outcome(item: Selected, results: dict[str, Result]) -> ClaimOutcome:
    outcomes = []
    for piece in item.evidence:
        result = results.get(piece.name, _INTERRUPTED)
        outcomes.append(EvidenceOutcome(piece, result.passed, result.detail, result.seconds))
    return ClaimOutcome(item, tuple(outcomes))


@contextlib.contextmanager
def _interrupt_ignored() -> Iterator[None]:
    """Start workers with interrupts ignored, since this process handles them for all."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
