"""`Sitting`: one process's part of a run, from the newest checkpoint to the end or a signal."""

import math
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import jax
import numpy as np
from flax import nnx
from rich.console import Console

from convattn.training.best import BestParameters
from convattn.training.checkpoints import BEST, CHECKPOINTS, CheckpointStore, OtherModel
from convattn.training.devices import data_mesh, replicated, spread
from convattn.training.examples import TrainingExamples
from convattn.training.failures import NonFiniteLoss
from convattn.training.identity import differences, identity_of
from convattn.training.interruption import Interruption, watch_signals
from convattn.training.metrics import MetricsLog
from convattn.training.optimizer import learning_rate_schedule, make_optimizer
from convattn.training.outcome import Outcome
from convattn.training.program import Program, compile_evaluation, compile_program, is_finite
from convattn.training.progress import TrainingProgress
from convattn.training.settings import TrainingSettings
from convattn.training.snapshots import Snapshot, write_snapshot
from convattn.training.state import TrainState, initial_state
from convattn.training.step import Recipe

SECONDS_PER_CALL = 30.0
EVALUATION_BATCH = 500


class Sitting:
    """One process's part of a run.

    **Arguments:** those of `train`, which has checked them and holds the folder.
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
        self.console, self.snapshot = console, snapshot
        self.steps_per_epoch = len(examples.train) // settings.batch_size
        self.steps = settings.epochs * self.steps_per_epoch
        self.rate = learning_rate_schedule(settings, self.steps)
        self.snapshot_every = settings.snapshot_every or math.ceil(settings.epochs / 60)
        self.mesh = data_mesh(settings.batch_size, settings.devices)
        optimizer = make_optimizer(settings, self.steps)
        structure, state = initial_state(model, optimizer, settings.seed)
        self.recipe = Recipe(structure, optimizer, settings, examples, spread(self.mesh))
        whole = replicated(self.mesh)
        self.data = examples.put(examples.train, whole)
        self.judged = {name: examples.put(part, whole) for name, part in examples.judged.items()}
        batch = EVALUATION_BATCH - EVALUATION_BATCH % self.mesh.size or self.mesh.size
        self.evaluate = compile_evaluation(self.recipe, self.mesh, batch)
        self.store = CheckpointStore(folder / CHECKPOINTS, settings.keep_checkpoints)
        self.best = BestParameters(folder / BEST)
        self.identity, self.seconds = identity_of(settings, examples, structure), 0.0
        self.state = self._begin(state)
        self.step = int(self.state.step)

    def _begin(self, fresh: TrainState) -> TrainState:
        """The newest checkpoint, or the fresh state; in arrays that the program may use up."""
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
        self.best.resume(record, fresh)
        self.before = self.seconds
        return self._placed(jax.tree.map(np.array, fresh))

    def _placed(self, state: TrainState) -> TrainState:
        return jax.device_put(state, replicated(self.mesh))

    def run(self) -> Outcome:
        """Train until the end or a signal."""
        with ExitStack() as stack:
            stack.callback(self.best.store.close)
            stack.callback(self.store.close)
            signals = stack.enter_context(watch_signals())
            log = stack.enter_context(MetricsLog(self.folder, self.step))
            progress = stack.enter_context(TrainingProgress(self.steps, self.console, self.step))
            if self.step == 0:
                self._take_snapshot(0)
            if self.step < self.steps:
                lengths = (self.state, self.data, self.steps_per_epoch)
                program = compile_program(self.recipe, self.mesh, *lengths)
                self._train(program, log, progress, signals)
            self.store.wait()
        if self.step < self.steps:
            self.console.print(
                f"stopped by {signals.signal} at step {self.step} of {self.steps}; "
                "the next sitting goes on from there"
            )
            return Outcome(
                "stopped", self.step, self.steps, None, None, self.seconds, self._model()
            )
        if self.settings.select == "best":
            self.state = self._placed(self.best.take(self.state))
        loss, accuracy = self.evaluate(self.state, self.judged["test"])
        ends = (loss, accuracy, self.seconds, self._model())
        return Outcome("finished", self.step, self.steps, *ends)

    def _train(
        self, program: Program, log: MetricsLog, progress: TrainingProgress, signals: Interruption
    ) -> None:
        saved, order, calls, spent, taken = time.monotonic(), program.order(self.state), 1, 0.0, 0
        stop = bool(signals)
        while self.step < self.steps and not stop:
            left = self.steps_per_epoch - self.step % self.steps_per_epoch
            count = min(left, self.settings.steps_per_call or calls)
            before = time.monotonic()
            self.state, losses = program.advance(self.state, self.data, order, count)
            passed = time.monotonic() - before
            self._check_losses(losses)
            calls = max(1, min(self.steps_per_epoch, int(SECONDS_PER_CALL / passed * count)))
            log.losses(self.step + 1, losses.tolist())
            self.step, spent, taken = self.step + count, spent + passed, taken + count
            progress.advanced(self.step, float(losses[-1]))
            due = time.monotonic() - saved >= 60 * self.settings.checkpoint_minutes
            if count == left:
                self._check_state()
                speed, spent, taken = taken * self.settings.batch_size / spent, 0.0, 0
                line = self._end_epoch()
                line |= {"images_per_second": speed, "seconds": self._seconds()}
                log.write(line)
                progress.epoch(line)
                order = program.order(self.state)
            stop = bool(signals)  # read once: what ends the loop is saved
            if due or stop or self.step == self.steps:
                self._save(log)
                saved = time.monotonic()

    def _save(self, log: MetricsLog) -> None:
        self._check_state()
        log.flush()
        self.seconds = self._seconds()
        shared = {"step": self.step, "seconds": self.seconds, "identity": self.identity}
        self.store.save(self.state, {**shared, **self.best.record})

    def _seconds(self) -> float:
        return self.before + time.monotonic() - self.began

    def _check_losses(self, losses: np.ndarray) -> None:
        """**Raises:** `NonFiniteLoss` with the first step whose loss is not finite."""
        bad = np.flatnonzero(~np.isfinite(losses))
        if len(bad):
            step = self.step + int(bad[0]) + 1
            self._stop(f"the loss of step {step} is {float(losses[bad[0]])}", step)

    def _check_state(self) -> None:
        """**Raises:** `NonFiniteLoss` if the last step left numbers that are not finite."""
        if not is_finite(self.state):
            self._stop(
                f"the parameters or the optimiser after step {self.step} overflow", self.step
            )

    def _stop(self, problem: str, step: int) -> None:
        self.store.wait()
        newest = self.store.steps()
        rate = float(self.rate(step - 1))
        raise NonFiniteLoss(problem, step, rate, newest[0] if newest else None)

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
        if self.settings.select == "best" and "validation_accuracy" in line:
            self.best.offer(self.state, self.step, line["validation_accuracy"])
        if last or epoch % self.snapshot_every == 0:
            self._take_snapshot(epoch)
        return line

    def _take_snapshot(self, epoch: int) -> None:
        if self.snapshot is not None:
            write_snapshot(self.folder, epoch, self.snapshot(self._model()))

    def _model(self) -> nnx.Module:
        return nnx.merge(
            self.recipe.structure, self.state.parameters, self.state.statistics, copy=True
        )
