"""`train`: from a model and images to a trained model, through interruptions.

A run is a folder. Whatever ends the process, calling `train` again with the same model, images and
settings goes on from the newest whole checkpoint and ends with the same bits: the state holds
everything that the next step depends on, and what was logged after the checkpoint is dropped.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import jax
import numpy as np
from flax import nnx
from rich.console import Console

from convattn.training.checkpoints import CheckpointStore
from convattn.training.devices import data_mesh, replicated, spread
from convattn.training.failures import NonFiniteLoss
from convattn.training.images import TrainingImages, on_devices
from convattn.training.interruption import watch_signals
from convattn.training.metrics import MetricsLog
from convattn.training.optimizer import learning_rate_schedule, make_optimizer
from convattn.training.program import Program, compile_evaluation, compile_program
from convattn.training.progress import TrainingProgress
from convattn.training.settings import TrainingSettings
from convattn.training.snapshots import write_snapshot
from convattn.training.state import TrainState, initial_state
from convattn.training.step import Recipe

CHECKPOINTS, BEST = "checkpoints", "best"
SECONDS_PER_CALL = 30.0
EVALUATION_BATCH = 500
Snapshot = Callable[[nnx.Module], dict[str, np.ndarray]]


@dataclass(frozen=True)
class Outcome:
    """How a run ended.

    **Fields:**

    - `status`: `"finished"`, or `"stopped"` by a signal: `train` again goes on.
    - `step`, `steps`: how many were taken, and how many there are in all.
    - `test_loss`, `test_accuracy`: of the chosen parameters; None if it was stopped.
    - `seconds`: of all sittings together, compilation and evaluation included.
    - `model`: with the chosen parameters.
    """

    status: Literal["finished", "stopped"]
    step: int
    steps: int
    test_loss: float | None
    test_accuracy: float | None
    seconds: float
    model: nnx.Module


def train(
    model: nnx.Module,
    images: TrainingImages,
    settings: TrainingSettings,
    *,
    folder: Path,
    console: Console | None = None,
    snapshot: Snapshot | None = None,
) -> Outcome:
    """Train a model, or go on training it.

    **Arguments:**

    - `model`: called as `model(images, training=…, dropout_key=…)`, giving logits; it is left as
      it is.
    - `folder`: of the run; checkpoints, metrics and snapshots go there.
    - `console`: where progress is shown; nowhere if not given.
    - `snapshot`: a small summary of the model, kept at some epochs.

    **Raises:** `NonFiniteLoss`; `OtherModel` if the folder holds checkpoints of other settings;
    `ValueError` for a batch larger than the set, and for `select="best"` without validation images.
    """
    return _Sitting(model, images, settings, folder, console or Console(quiet=True), snapshot).run()


class _Sitting:
    """One process's part of a run."""

    def __init__(
        self,
        model: nnx.Module,
        images: TrainingImages,
        settings: TrainingSettings,
        folder: Path,
        console: Console,
        snapshot: Snapshot | None,
    ) -> None:
        self.settings, self.folder, self.console, self.snapshot = (
            settings,
            folder,
            console,
            snapshot,
        )
        self.steps_per_epoch = len(images.train) // settings.batch_size
        if not self.steps_per_epoch:
            raise ValueError(
                f"batch_size={settings.batch_size}, but there are only {len(images.train)} training "
                "images; take a smaller batch"
            )
        if settings.select == "best" and images.validation is None:
            raise ValueError(
                "select='best' chooses by validation images, and none are split off; give a "
                "validation share, or select='last'. Nothing is chosen by the test images"
            )
        self.steps = settings.epochs * self.steps_per_epoch
        self.rate = learning_rate_schedule(settings, self.steps)
        self.snapshot_every = settings.snapshot_every or math.ceil(settings.epochs / 60)
        self.mesh = data_mesh(settings.batch_size, settings.devices)
        optimizer = make_optimizer(settings, self.steps)
        structure, state = initial_state(model, optimizer, settings.seed)
        self.recipe = Recipe(
            structure,
            optimizer,
            settings,
            images.mean,
            images.std,
            images.augmentation,
            spread(self.mesh),
        )
        self.data = on_devices(images.train, self.mesh)
        self.judged = {name: on_devices(part, self.mesh) for name, part in images.judged.items()}
        batch = EVALUATION_BATCH - EVALUATION_BATCH % self.mesh.size or self.mesh.size
        self.evaluate = compile_evaluation(self.recipe, self.mesh, batch)
        self.store = CheckpointStore(folder / CHECKPOINTS, settings.keep_checkpoints)
        self.best_store = CheckpointStore(folder / BEST, 1)
        self.seconds, self.best = 0.0, -1.0
        self.state = self._begin(state)
        self.step = int(self.state.step)

    def _begin(self, fresh: TrainState) -> TrainState:
        """The newest checkpoint, or the fresh state; in arrays that the program may use up."""
        restored = self.store.restore_newest(fresh)
        if restored is not None:
            self.seconds, self.best = restored.record["seconds"], restored.record["best"]
            self.console.print(f"going on from the checkpoint of step {restored.step}")
            fresh = restored.state
        return self._placed(jax.tree.map(np.array, fresh))

    def _placed(self, state: TrainState) -> TrainState:
        return jax.device_put(state, replicated(self.mesh))

    def run(self) -> Outcome:
        """Train until the end or a signal."""
        started = time.monotonic() - self.seconds
        with (
            watch_signals() as signals,
            MetricsLog(self.folder, self.step) as log,
            TrainingProgress(self.steps, self.console) as progress,
        ):
            if self.step == 0:
                self._take_snapshot(0)
            if self.step < self.steps:
                program = compile_program(
                    self.recipe, self.mesh, self.state, self.data, self.steps_per_epoch
                )
                self._train(program, log, progress, started, signals)
            self.store.wait()
            self.store.close()
            self.seconds = time.monotonic() - started
        if self.step < self.steps:
            self.console.print(f"stopped by {signals.signal} at step {self.step} of {self.steps}")
            return self._outcome("stopped", None, None)
        if self.settings.select == "best":
            chosen = self.best_store.restore_newest(self.state)
            if chosen is not None:
                self.state = self._placed(chosen.state)
        loss, accuracy = self.evaluate(self.state, self.judged["test"])
        return self._outcome("finished", loss, accuracy)

    def _train(
        self,
        program: Program,
        log: MetricsLog,
        progress: TrainingProgress,
        started: float,
        signals: Any,
    ) -> None:
        saved, order, calls, spent, taken = time.monotonic(), program.order(self.state), 1, 0.0, 0
        while self.step < self.steps and not signals:
            left = self.steps_per_epoch - self.step % self.steps_per_epoch
            count = min(left, self.settings.steps_per_call or calls)
            before = time.monotonic()
            self.state, losses = program.advance(self.state, self.data, order, count)
            passed = time.monotonic() - before
            self._check(losses)
            calls = max(1, min(self.steps_per_epoch, int(SECONDS_PER_CALL / passed * count)))
            log.losses(self.step + 1, losses.tolist())
            self.step, spent, taken = self.step + count, spent + passed, taken + count
            progress.advanced(self.step, float(losses[-1]))
            if count == left:
                speed = taken * self.settings.batch_size / spent
                line = self._end_epoch(speed, time.monotonic() - started)
                log.write(line)
                progress.epoch(line)
                spent, taken = 0.0, 0
                if self.step < self.steps:
                    order = program.order(self.state)
            due = time.monotonic() - saved >= 60 * self.settings.checkpoint_minutes
            if due or signals or self.step == self.steps:
                self.store.save(self.state, self._record(time.monotonic() - started))
                saved = time.monotonic()

    def _check(self, losses: np.ndarray) -> None:
        """**Raises:** `NonFiniteLoss` with the first step whose loss is not finite."""
        bad = np.flatnonzero(~np.isfinite(losses))
        if len(bad):
            self.store.wait()
            step = self.step + int(bad[0])
            newest = self.store.steps()
            raise NonFiniteLoss(
                step + 1,
                float(losses[bad[0]]),
                float(self.rate(step)),
                newest[0] if newest else None,
            )

    def _end_epoch(self, speed: float, seconds: float) -> dict[str, Any]:
        """Evaluate and summarise; keep a snapshot and the best parameters where they are due."""
        epoch, last = self.step // self.steps_per_epoch, self.step == self.steps
        pictures = self.steps_per_epoch * self.settings.batch_size
        line: dict[str, Any] = {
            "step": self.step,
            "epoch": epoch,
            "train_loss": float(self.state.loss_sum) / self.steps_per_epoch,
            "train_accuracy": int(self.state.correct) / pictures,
            "learning_rate": float(self.rate(self.step - 1)),
        }
        if last or epoch % self.settings.evaluate_every == 0:
            for name, part in self.judged.items():
                line[f"{name}_loss"], line[f"{name}_accuracy"] = self.evaluate(self.state, part)
        if line.get("validation_accuracy", -1.0) > self.best and self.settings.select == "best":
            self.best = line["validation_accuracy"]
            self.best_store.save(self.state, self._record(seconds))
            self.best_store.wait()
        if last or epoch % self.snapshot_every == 0:
            self._take_snapshot(epoch)
        return {**line, "images_per_second": speed, "seconds": seconds}

    def _record(self, seconds: float) -> dict[str, Any]:
        return {"step": self.step, "seconds": seconds, "best": self.best}

    def _take_snapshot(self, epoch: int) -> None:
        if self.snapshot is not None:
            write_snapshot(self.folder, epoch, self.snapshot(self._model()))

    def _model(self) -> nnx.Module:
        return nnx.merge(self.recipe.structure, self.state.parameters, self.state.statistics)

    def _outcome(
        self, status: Literal["finished", "stopped"], loss: float | None, accuracy: float | None
    ) -> Outcome:
        model = self._model()
        return Outcome(status, self.step, self.steps, loss, accuracy, self.seconds, model)
