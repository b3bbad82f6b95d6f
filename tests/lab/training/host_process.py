"""A process of several that train a tiny model together: JSON with what it is to do, job by job.

For each job it prints, as JSON, how it ended. A job is a folder and a plant, for the processes that
it names:

- `halt`: before the first step after this epoch, make the file `waiting-EPOCH` in the folder, and
  wait for the file `go-EPOCH` there, so that a signal meets the process while it trains.
- `share`: it takes other examples for its share of each batch.
- `drift`: its first parameters are not those of the others.
- `settings`: it is given other settings.
"""

import json
import os
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest import mock

EPOCHS, STEPS_OF_EPOCH, IMAGES, BATCH = 4, 4, 140, 32
PATIENCE = 60


def train_as(job: dict[str, Any], index: int) -> dict[str, Any]:
    """Do one job."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    from flax import nnx
    from lab.training.tiny import Normalized, run, settings, training_images

    from convattn_lab.training import trainer
    from convattn_lab.training.failures import ProcessesDiffer
    from convattn_lab.training.images import TrainingImages

    plant = job.get("plant", {}) if index in job.get("in", ()) else {}
    folder, losses = Path(job["folder"]), list[float]()
    compiled, check = trainer.compile_program, trainer._Session._check_losses
    load, place = TrainingImages.load, trainer.place

    def compile_and_halt(*args: Any) -> Any:
        program = compiled(*args)

        def halt_and_advance(state: Any, *rest: Any) -> Any:
            epoch = int(state.step) // STEPS_OF_EPOCH
            if plant.get("halt") == epoch:
                plant.clear()
                (folder / f"waiting-{epoch}").touch()
                end = time.monotonic() + PATIENCE
                while not (folder / f"go-{epoch}").exists():
                    assert time.monotonic() < end
                    time.sleep(0.01)
            return program.advance(state, *rest)

        return type(program)(halt_and_advance, program.order, program.looped)

    def load_other(self: Any, data: Any, indices: Any, *rest: Any) -> Any:
        return load(self, data, (indices + plant.get("share", 0)) % IMAGES, *rest)

    def place_other(state: Any, mesh: Any) -> Any:
        by = plant.get("drift", 0)
        return place(jax.tree.map(lambda leaf: leaf + leaf.dtype.type(by), state), mesh)

    def note(self: Any, result: Any) -> None:
        check(self, result)
        losses.extend(np.asarray(result, np.float64).tolist())

    inputs = {"epochs": EPOCHS, "batch_size": BATCH, "devices": None, "steps_per_call": None}
    inputs |= {"learning_rate": 0.1, "warmup": 0.2, **plant.get("settings", {})}
    with ExitStack() as stack:
        for where, name, what in (
            (trainer, "compile_program", compile_and_halt),
            (trainer._Session, "_check_losses", note),
            (trainer, "place", place_other),
            (TrainingImages, "load", load_other),
        ):
            stack.enter_context(mock.patch.object(where, name, what))
        try:
            model, images = Normalized(0, 0.25, jnp.float64), training_images(IMAGES)
            outcome = run(folder, settings(**inputs), model=model, images=images)
        except ProcessesDiffer as problem:
            return {"error": str(problem)}
    arrays = [np.asarray(leaf).tolist() for leaf in jax.tree.leaves(nnx.state(outcome.model))]
    figures = {"test": [outcome.test_loss, outcome.test_accuracy], "arrays": arrays}
    return {"status": outcome.status, "step": outcome.step, "losses": losses, **figures}


def main(inputs: dict[str, Any]) -> None:
    """Do the jobs."""
    devices = inputs.get("devices", 1)
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={devices}"
    import jax
    from lab.training.session_process import cache_options

    options = {"jax_platforms": "cpu", "jax_enable_x64": True, **cache_options(inputs["cache"])}
    for name, value in {**options, "jax_disable_most_optimizations": True}.items():
        jax.config.update(name, value)
    if "coordinator" in inputs:
        from convattn_lab.training.hosts import start_processes

        start_processes(inputs["coordinator"], 2, inputs["index"], patience=PATIENCE)
    for job in inputs["jobs"]:
        print(json.dumps(train_as(job, inputs.get("index", 0))), flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
