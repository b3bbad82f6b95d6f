"""`train`: from a model and examples to a trained model, through interruptions.

A run is a folder. Whatever ends the process, calling `train` again with the same model, examples
and settings goes on from the newest whole checkpoint and ends with the same bits: the state holds
everything that the next step depends on, and what was logged after the checkpoint is dropped.
"""

import math
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Literal

import jax
import numpy as np
from flax import nnx
from rich.console import Console

from convattn.files import lock_directory
from convattn_lab.training.checkpoints import (
    BEST,
    CHECKPOINTS,
    DAMAGE,
    CheckpointStore,
    OtherModel,
    digest,
)
from convattn_lab.training.devices import data_mesh, here, place, spread
from convattn_lab.training.examples import TrainingExamples
from convattn_lab.training.failures import BestLost, NonFiniteLoss
from convattn_lab.training.hosts import check_equal, environment_of, from_first, gather, is_first
from convattn_lab.training.metrics import FILE_NAME as METRICS
from convattn_lab.training.metrics import MetricsLog
from convattn_lab.training.optimizer import learning_rate_schedule, make_optimizer
from convattn_lab.training.program import compile_evaluation, compile_program, is_finite
from convattn_lab.training.progress import TrainingProgress
from convattn_lab.training.settings import TrainingSettings
from convattn_lab.training.snapshots import Snapshot, write_snapshot
from convattn_lab.training.state import TrainState, initial_state, named_arrays, with_named_arrays
from convattn_lab.training.step import Recipe
from convattn_lab.training.structure import differences, identity_of

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


def train(
    settings: TrainingSettings,
    examples: TrainingExamples,
    model: nnx.Module,
    folder: Path,
    *,
    console: Console | None = None,
    snapshot: Snapshot | None = None,
    locked: bool = False,
) -> Outcome:
    """Train a model, or go on training it.

    After `jax.distributed.initialize`, all processes call it alike, and train one model over the
    devices of all. The first alone reads and writes the folder and shows progress.

    Args:
        model: Called as `model(inputs, training=…, dropout_key=…)`, giving logits; it is left as it
            is.
        folder: Of the run; checkpoints, metrics and snapshots go there.
        console: Where progress is shown; nowhere if not given.
        snapshot: A small summary of the model, kept at some epochs.
        locked: Whether the caller holds the lock of the folder already.

    Raises:
        ValueError: `NonFiniteLoss`; `OtherModel` if the folder holds checkpoints of another model,
            of other settings or of other examples; `NoWholeCheckpoint` if all that it holds are
            damaged, `BestLost` if the best parameters are; `DirectoryLockedError` if another
            process trains there; `ProcessesDiffer` among several processes; `ValueError` for a
            batch that is larger than the set or that the devices do not divide, and for
            `select="best"` without validation examples.
    """
    check_examples(examples, settings)
    if console is None or not is_first():
        console = Console(quiet=True)
    with nullcontext() if locked or not is_first() else lock_directory(folder):
        return _Session(settings, examples, model, folder, console, snapshot).run()


def check_examples(examples: TrainingExamples, settings: TrainingSettings) -> None:
    """Refuse settings that these examples do not serve."""
    unit_name = examples.unit_name
    if len(examples.train) < settings.batch_size:
        raise ValueError(
            f"--training.batch-size {settings.batch_size}, but there are only "
            f"{len(examples.train)} training {unit_name}; take a smaller batch"
        )
    for name, eval_set in examples.eval_sets.items():
        if not len(eval_set):
            raise ValueError(
                f"there are no {name} {unit_name}, but expected at least one to judge by"
            )
    if settings.select == "best" and "validation" not in examples.eval_sets:
        raise ValueError(
            f"--training.select best chooses by validation {unit_name}, and none are split off; "
            f"give {examples.validation_option} 0.1, or select last. Nothing is chosen by the test "
            f"{unit_name}"
        )


@contextmanager
def watch_signals() -> Iterator[list[int]]:
    """Note SIGTERM and SIGINT in the list; a second SIGINT interrupts at once.

    Works in the main thread; elsewhere signals are left alone.
    """
    received: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        if received and number == signal.SIGINT:
            raise KeyboardInterrupt
        received.append(number)

    before = {}
    try:
        for number in (signal.SIGTERM, signal.SIGINT):
            before[number] = signal.signal(number, note)
    except ValueError:  # not the main thread
        pass
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Session:
    """One process's part of a run, from the newest checkpoint to the end or a signal.

    Where several processes train together, each has one of these, and all take the same way through
    it; the first alone has the folder, so that what comes from there is broadcast.

    Of the epoch that did best on the validation examples, the first of several equal ones, the
    state is kept: on the host until the next checkpoint, and written before that, which names it.
    One more is kept than there are checkpoints, so that whatever ends the process, the state that
    the newest whole checkpoint names is there.
    """

    def __init__(
        self,
        settings: TrainingSettings,
        examples: TrainingExamples,
        model: nnx.Module,
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
        optimizer = make_optimizer(settings, self.steps)
        structure, fresh = initial_state(model, optimizer, settings.seed)
        self.identity = identity_of(settings, examples, structure)
        check_equal({**self.identity, **environment_of(settings)})
        self.mesh = data_mesh(settings.batch_size, settings.devices)
        self.recipe = Recipe(structure, optimizer, settings, examples, spread(self.mesh))
        self.data = place(examples.arrays(examples.train), self.mesh)
        self.eval_sets = {
            name: place(examples.arrays(eval_set), self.mesh)
            for name, eval_set in examples.eval_sets.items()
        }
        batch = EVALUATION_BATCH - EVALUATION_BATCH % self.mesh.size or self.mesh.size
        self.evaluate = compile_evaluation(self.recipe, self.mesh, batch)
        self.store = CheckpointStore(folder / CHECKPOINTS, settings.keep_checkpoints)
        self.best_store = CheckpointStore(folder / BEST, settings.keep_checkpoints + 1)
        self.best: dict[str, Any] = {"best": -1.0, "best_step": 0}
        self.unsaved_best: dict[str, np.ndarray] | None = None
        self.log: MetricsLog | None = None
        self.seconds = 0.0
        state = self._resume(fresh) if is_first() else fresh
        self.before = self.seconds = from_first(self.seconds)
        self.state = self._from_first(state)
        self.step = int(self.state.step)

    def _resume(self, fresh: TrainState) -> TrainState:
        """The state of the newest checkpoint, or the fresh one."""
        restored = self.store.restore_newest(fresh)
        if restored is None:
            if (self.folder / METRICS).exists():
                self.console.print("no checkpoint was written before the run ended: it begins anew")
            self.best_store.discard(self.best_store.steps())
            return fresh
        record = restored.record
        if other := differences(record["identity"], self.identity):
            raise OtherModel(
                f"{self.folder} holds a run that differs in {', '.join(other)}; take what it was "
                "begun with, or another folder"
            )
        self.console.print(f"going on from the checkpoint of step {restored.step}")
        self.seconds = record["seconds"]
        self.best = {name: record[name] for name in self.best}
        self.best_store.discard(n for n in self.best_store.steps() if n > self.best["best_step"])
        if self.best["best_step"]:
            self._best_state(fresh)
        return restored.state

    def _best_state(self, like: TrainState) -> TrainState:
        step = int(self.best["best_step"])
        try:
            return self.best_store.restore(step, like).state
        except DAMAGE as problem:
            raise BestLost(self.best_store.folder, step) from problem

    def _from_first(self, state: TrainState) -> TrainState:
        """The state that the first process has, on all devices; the program may use it up."""
        arrays = from_first(named_arrays(here(state)))
        return place(jax.tree.map(np.array, with_named_arrays(state, arrays)), self.mesh)

    def run(self) -> Outcome:
        """Train until the end or a signal."""
        stopped_by = None
        with ExitStack() as stack:
            stack.callback(self.best_store.close)
            stack.callback(self.store.close)
            signals = stack.enter_context(watch_signals())
            if is_first():
                self.log = stack.enter_context(MetricsLog(self.folder, self.step))
            how = (self.steps, self.console, self.step, self.examples.unit_name)
            progress = stack.enter_context(TrainingProgress(*how))
            if self.step == 0:
                self._take_snapshot(0)
            if self.step < self.steps:
                stopped_by = self._train(progress, signals)
        if self.step < self.steps:
            self.console.print(
                f"stopped by {stopped_by} at step {self.step} of {self.steps}; "
                "the next training session goes on from there"
            )
            return Outcome(
                "stopped", self.step, self.steps, None, None, self.seconds, self._model()
            )
        if self.settings.select == "best":
            if is_first():
                self.state = self._best_state(self.state)
                self.best_store.discard(self.best_store.steps()[1:])
            self.state = self._from_first(self.state)
        loss, accuracy = self.evaluate(self.state, self.eval_sets["test"])
        return Outcome(
            "finished", self.step, self.steps, loss, accuracy, self.seconds, self._model()
        )

    def _train(self, progress: TrainingProgress, signals: list[int]) -> str | None:
        """Returns:
        The signal that ended it, in whichever process it came.
        """
        lengths = (self.state, self.data, self.steps_per_epoch)
        program = compile_program(self.recipe, self.mesh, *lengths)
        saved, order, calls, spent, steps = time.monotonic(), program.order(self.state), 1, 0.0, 0
        calls, _, stop = self._agree(calls, False, signals)
        while self.step < self.steps and not stop:
            left = self.steps_per_epoch - self.step % self.steps_per_epoch
            count = min(left, self.settings.steps_per_call or calls)
            before = time.monotonic()
            self.state, losses = program.advance(self.state, self.data, order, count)
            passed = time.monotonic() - before
            self._check_losses(losses)
            calls = max(1, min(self.steps_per_epoch, int(SECONDS_PER_CALL / passed * count)))
            if self.log is not None:
                self.log.losses(self.step + 1, losses.tolist())
            self.step, spent, steps = self.step + count, spent + passed, steps + count
            progress.advanced(self.step, float(losses[-1]))
            due = time.monotonic() - saved >= 60 * self.settings.checkpoint_minutes
            if count == left:
                line = self._end_epoch(steps * self.settings.batch_size / spent)
                spent, steps = 0.0, 0
                if self.log is not None:
                    self.log.write(line)
                progress.epoch(line)
                order = program.order(self.state)
            calls, due, stop = self._agree(calls, due, signals)  # what ends the loop is saved
            if due or stop or self.step == self.steps:
                self._save()
                saved = time.monotonic()
        return stop

    def _agree(self, calls: int, due: bool, signals: list[int]) -> tuple[int, bool, str | None]:
        """What the first process's clock says, and a signal that any process has got."""
        votes = gather(calls, due, signals[0] if signals else 0)
        number = int(votes[:, 2].max())
        return int(votes[0, 0]), bool(votes[0, 1]), signal.Signals(number).name if number else None

    def _save(self) -> None:
        self._check_state()
        arrays = named_arrays(here(self.state))
        if jax.process_count() > 1:
            check_equal({f"the state after step {self.step}": digest(arrays)})
        self.seconds = self._elapsed()
        if self.log is None:
            return
        self.log.flush()
        if self.unsaved_best is not None:
            self.best_store.save(int(self.best["best_step"]), self.unsaved_best, self.best)
            self.best_store.close()
            self.unsaved_best = None
        shared = {"step": self.step, "seconds": self.seconds, "identity": self.identity}
        self.store.save(self.step, arrays, {**shared, **self.best})

    def _elapsed(self) -> float:
        return self.before + time.monotonic() - self.began

    def _check_losses(self, losses: np.ndarray) -> None:
        bad = np.flatnonzero(~np.isfinite(losses))
        if len(bad):
            step = self.step + int(bad[0]) + 1
            self._stop(f"the loss of step {step} is {float(losses[bad[0]])}", step)

    def _check_state(self) -> None:
        if not is_finite(self.state):
            self._stop(
                f"the parameters or the optimiser after step {self.step} overflow", self.step
            )

    def _stop(self, problem: str, step: int) -> None:
        newest = None
        if is_first():
            self.store.close()
            newest = max(self.store.steps(), default=None)
        raise NonFiniteLoss(problem, step, float(self.rate(step - 1)), from_first(newest))

    def _end_epoch(self, speed: float) -> dict[str, Any]:
        """Evaluate and summarise; keep a snapshot and the best parameters where they are due."""
        self._check_state()
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
            for name, eval_set in self.eval_sets.items():
                loss, accuracy = self.evaluate(self.state, eval_set)
                line |= {f"{name}_loss": loss, f"{name}_accuracy": accuracy}
                if not math.isfinite(loss):
                    after = f"the loss on the {name} images after step {self.step}"
                    self._stop(f"{after} is {loss}", self.step)
        accuracy = line.get("validation_accuracy", -1.0)
        if self.settings.select == "best" and is_first() and accuracy > self.best["best"]:
            self.best = {"best": accuracy, "best_step": self.step}
            self.unsaved_best = named_arrays(here(self.state))
        every = self.settings.snapshot_every or math.ceil(self.settings.epochs / 60)
        if last or epoch % every == 0:
            self._take_snapshot(epoch)
        return line | {"images_per_second": speed, "seconds": self._elapsed()}

    def _take_snapshot(self, epoch: int) -> None:
        if self.snapshot is not None:
            write_snapshot(self.folder, epoch, self.snapshot(self._model()))

    def _model(self) -> nnx.Module:
        state = here((self.state.parameters, self.state.statistics))
        return nnx.merge(self.recipe.structure, *state, copy=True)
