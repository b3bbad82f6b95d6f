"""`Session`: one process's part of a run, from the newest checkpoint to the end or a signal."""

import math
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Literal

import jax
import numpy as np
from flax import nnx
from rich.console import Console

from convattn.lab.training.best import BestParameters
from convattn.lab.training.checkpoints import (
    BEST,
    CHECKPOINTS,
    CheckpointStore,
    OtherModel,
    digest,
)
from convattn.lab.training.devices import (
    data_mesh,
    everywhere,
    here,
    place,
    replicated_here,
    spread,
)
from convattn.lab.training.examples import TrainingExamples
from convattn.lab.training.failures import NonFiniteLoss
from convattn.lab.training.hosts import (
    broadcast,
    check_equal,
    checksum_of,
    environment_of,
    from_first,
    gather,
    is_first,
)
from convattn.lab.training.metrics import FILE_NAME as METRICS
from convattn.lab.training.metrics import MetricsLog
from convattn.lab.training.optimizer import learning_rate_schedule, make_optimizer
from convattn.lab.training.program import Program, compile_evaluation, compile_program, is_finite
from convattn.lab.training.progress import TrainingProgress
from convattn.lab.training.settings import TrainingSettings
from convattn.lab.training.snapshots import Snapshot, write_snapshot
from convattn.lab.training.state import (
    TrainState,
    initial_state,
    named_arrays,
    with_named_arrays,
)
from convattn.lab.training.step import Recipe
from convattn.lab.training.structure import differences, identity_of

SECONDS_PER_CALL = 30.0
EVALUATION_BATCH = 500


@dataclass(frozen=True)
class Outcome:
    """How a run ended.

    Attributes:
        status: `"finished"`, or `"stopped"` by a signal: `train` again goes on.
        step, steps: How many were taken, and how many there are in all.
        test_loss, test_accuracy: Of the chosen parameters; None if it was stopped.
        seconds: Of all training sessions together, compilation and evaluations included, each up to
            its last checkpoint: what was lost and done again counts once.
        model: With the chosen parameters.
    """

    status: Literal["finished", "stopped"]
    step: int
    steps: int
    test_loss: float | None
    test_accuracy: float | None
    seconds: float
    model: nnx.Module


@contextmanager
def watch_signals() -> Iterator[list[int]]:
    """Note SIGTERM and SIGINT in the list; a second SIGINT interrupts at once.

    Works in the main thread; elsewhere signals are left alone.
    """
    seen: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        if seen and number == signal.SIGINT:
            raise KeyboardInterrupt
        seen.append(number)

    before = {}
    try:
        for number in (signal.SIGTERM, signal.SIGINT):
            before[number] = signal.signal(number, note)
    except ValueError:  # not the main thread
        pass
    try:
        yield seen
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Session:
    """One process's part of a run.

    Where several processes train together, each has one of these, and all take the same way through
    it; the first alone has the folder, so that what comes from there is broadcast.

    Args:
        Those of `train`, which has checked them and holds the folder.
    """

    def __init__(
        self,
        model: nnx.Module,
        examples: TrainingExamples,
        settings: TrainingSettings,
        folder: Path,
        console: Console,
        snapshot: Snapshot | None,
    ) -> None:
        self.began = time.monotonic()
        self.settings, self.examples, self.folder = settings, examples, folder
        self.console, self.snapshot = console, snapshot if is_first() else None
        self.steps_per_epoch = len(examples.train) // settings.batch_size
        self.steps = settings.epochs * self.steps_per_epoch
        self.rate = learning_rate_schedule(settings, self.steps)
        self.snapshot_every = settings.snapshot_every or math.ceil(settings.epochs / 60)
        optimizer = make_optimizer(settings, self.steps)
        structure, state = initial_state(model, optimizer, settings.seed)
        self.identity, self.seconds = identity_of(settings, examples, structure), 0.0
        check_equal({**self.identity, **environment_of(settings)})
        self.mesh = data_mesh(settings.batch_size, settings.devices, everywhere=True)
        self.recipe = Recipe(structure, optimizer, settings, examples, spread(self.mesh))
        self.data = self._put(examples.train)
        self.judged = {name: self._put(part) for name, part in examples.judged.items()}
        if jax.process_count() > 1:
            check_equal({"examples": checksum_of(here((self.data, self.judged)))})
        batch = EVALUATION_BATCH - EVALUATION_BATCH % self.mesh.size or self.mesh.size
        self.evaluate = compile_evaluation(self.recipe, self.mesh, batch)
        self.store = CheckpointStore(folder / CHECKPOINTS, settings.keep_checkpoints)
        self.best = BestParameters(folder / BEST)
        self.state = self._begin(state)
        self.step = int(self.state.step)

    def _begin(self, fresh: TrainState) -> TrainState:
        """The newest checkpoint, or the fresh state; in arrays that the program may use up."""
        if is_first():
            fresh = self._read(fresh)
        self.before = self.seconds = from_first(self.seconds)
        return self._of_first(fresh)

    def _read(self, fresh: TrainState) -> TrainState:
        restored = self.store.restore_newest(fresh)
        record: dict[str, Any] = {"best_step": 0} if restored is None else restored.record
        if restored is not None:
            other = differences(record["identity"], self.identity)
            if other:
                raise OtherModel(
                    f"{self.folder} holds a run that differs in {', '.join(other)}; take what it "
                    "was begun with, or another folder"
                )
            self.console.print(f"going on from the checkpoint of step {restored.step}")
            self.seconds, fresh = record["seconds"], restored.state
        elif (self.folder / METRICS).exists():
            self.console.print("no checkpoint was written before the run ended: it begins anew")
        self.best.resume(record, fresh)
        return fresh

    def _put(self, part: Any) -> Any:
        return everywhere(self.examples.put(part, replicated_here(self.mesh)), self.mesh)

    def _of_first(self, state: TrainState) -> TrainState:
        """The state that the first process has, on all devices."""
        arrays = named_arrays(here(state))
        given = dict(zip(arrays, broadcast(list(arrays.values())), strict=True))
        return place(jax.tree.map(np.array, with_named_arrays(state, given)), self.mesh)

    def run(self) -> Outcome:
        """Train until the end or a signal."""
        with ExitStack() as stack:
            stack.callback(self.best.store.close)
            stack.callback(self.store.close)
            signals = stack.enter_context(watch_signals())
            log = None
            if is_first():
                log = stack.enter_context(MetricsLog(self.folder, self.step))
            how = (self.steps, self.console, self.step, self.examples.noun)
            progress = stack.enter_context(TrainingProgress(*how))
            if self.step == 0:
                self._take_snapshot(0)
            if self.step < self.steps:
                lengths = (self.state, self.data, self.steps_per_epoch)
                program = compile_program(self.recipe, self.mesh, *lengths)
                stopped_by = self._train(program, log, progress, signals)
            self.store.wait()
        if self.step < self.steps:
            self.console.print(
                f"stopped by {stopped_by} at step {self.step} of {self.steps}; "
                "the next training session goes on from there"
            )
            return Outcome(
                "stopped", self.step, self.steps, None, None, self.seconds, self._model()
            )
        if self.settings.select == "best":
            best = self.best.take(self.state) if is_first() else self.state
            self.state = self._of_first(best)
        loss, accuracy = self.evaluate(self.state, self.judged["test"])
        ends = (loss, accuracy, self.seconds, self._model())
        return Outcome("finished", self.step, self.steps, *ends)

    def _train(
        self,
        program: Program,
        log: MetricsLog | None,
        progress: TrainingProgress,
        signals: list[int],
    ) -> str | None:
        """Returns:
        The signal that ended it, in whichever process it came.
        """
        saved, order, calls, spent, taken = time.monotonic(), program.order(self.state), 1, 0.0, 0
        calls, _, stop = self._agree(calls, False, signals)
        while self.step < self.steps and not stop:
            left = self.steps_per_epoch - self.step % self.steps_per_epoch
            count = min(left, self.settings.steps_per_call or calls)
            before = time.monotonic()
            self.state, losses = program.advance(self.state, self.data, order, count)
            passed = time.monotonic() - before
            self._check_losses(losses)
            calls = max(1, min(self.steps_per_epoch, int(SECONDS_PER_CALL / passed * count)))
            if log is not None:
                log.losses(self.step + 1, losses.tolist())
            self.step, spent, taken = self.step + count, spent + passed, taken + count
            progress.advanced(self.step, float(losses[-1]))
            due = time.monotonic() - saved >= 60 * self.settings.checkpoint_minutes
            if count == left:
                self._check_state()
                speed, spent, taken = taken * self.settings.batch_size / spent, 0.0, 0
                line = self._end_epoch()
                line |= {"images_per_second": speed, "seconds": self._seconds()}
                if log is not None:
                    log.write(line)
                progress.epoch(line)
                order = program.order(self.state)
            calls, due, stop = self._agree(calls, due, signals)  # what ends the loop is saved
            if due or stop or self.step == self.steps:
                self._save(log)
                saved = time.monotonic()
        return stop

    def _agree(self, calls: int, due: bool, signals: list[int]) -> tuple[int, bool, str | None]:
        """What the first process's clock says, and a signal that any process has got."""
        said = gather(calls, due, signals[0] if signals else 0)
        number = int(said[:, 2].max())
        return int(said[0, 0]), bool(said[0, 1]), signal.Signals(number).name if number else None

    def _save(self, log: MetricsLog | None) -> None:
        self._check_state()
        if jax.process_count() > 1:
            check_equal({f"the state after step {self.step}": digest(named_arrays(self.state))})
        self.seconds = self._seconds()
        if log is None:
            return
        log.flush()
        shared = {"step": self.step, "seconds": self.seconds, "identity": self.identity}
        self.store.save(self.state, {**shared, **self.best.record})

    def _seconds(self) -> float:
        return self.before + time.monotonic() - self.began

    def _check_losses(self, losses: np.ndarray) -> None:
        """Raises:
        NonFiniteLoss: With the first step whose loss is not finite.
        """
        bad = np.flatnonzero(~np.isfinite(losses))
        if len(bad):
            step = self.step + int(bad[0]) + 1
            self._stop(f"the loss of step {step} is {float(losses[bad[0]])}", step)

    def _check_state(self) -> None:
        """Raises:
        NonFiniteLoss: If the last step left numbers that are not finite.
        """
        if not is_finite(self.state):
            self._stop(
                f"the parameters or the optimiser after step {self.step} overflow", self.step
            )

    def _stop(self, problem: str, step: int) -> None:
        newest = None
        if is_first():
            self.store.wait()
            newest = max(self.store.steps(), default=None)
        newest = from_first(newest)
        raise NonFiniteLoss(problem, step, float(self.rate(step - 1)), newest)

    def _end_epoch(self) -> dict[str, Any]:
        """Evaluate and summarise; keep a snapshot and the best parameters where they are due."""
        epoch, last = self.step // self.steps_per_epoch, self.step == self.steps
        positions = self.steps_per_epoch * self.settings.batch_size * self.examples.positions
        line: dict[str, Any] = {
            "step": self.step,
            "epoch": epoch,
            "train_loss": float(self.state.loss_sum) / self.steps_per_epoch,
            "train_accuracy": int(self.state.correct) / positions,
            "learning_rate": float(self.rate(self.step - 1)),
        }
        if last or epoch % self.settings.evaluate_every == 0:
            for name, part in self.judged.items():
                line[f"{name}_loss"], line[f"{name}_accuracy"] = self.evaluate(self.state, part)
                if not math.isfinite(line[f"{name}_loss"]):
                    after = f"the loss on the {name} images after step {self.step}"
                    self._stop(f"{after} is {line[f'{name}_loss']}", self.step)
        select = self.settings.select == "best" and is_first()
        if select and "validation_accuracy" in line:
            self.best.offer(self.state, self.step, line["validation_accuracy"])
        if last or epoch % self.snapshot_every == 0:
            self._take_snapshot(epoch)
        return line

    def _take_snapshot(self, epoch: int) -> None:
        if self.snapshot is not None:
            write_snapshot(self.folder, epoch, self.snapshot(self._model()))

    def _model(self) -> nnx.Module:
        held = here((self.state.parameters, self.state.statistics))
        return nnx.merge(self.recipe.structure, *held, copy=True)
