"""A process of several that train a tiny model together: JSON with what it is to do, job by job.

For each job it says, as JSON, how it ended. A job is what `train` is given, and a plant, for the
processes that it names:

- `halt`: before the first step after this epoch, make the file `waiting-EPOCH` in the folder, and
  wait for the file `go-EPOCH` there, so that a signal meets the process while it trains.
- `full`: after this epoch there is no space on the disk.
- `share`: it takes other examples for its share of each batch.
- `drift`: its first parameters are not those of the others.
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
MOVED = 2.0**-20
PATIENCE = 60.0


def settings_of(**changes: Any) -> Any:
    """Sixteen steps; a checkpoint after each call, whose number of steps is measured."""
    from lab.training.tiny import settings

    given = {"epochs": EPOCHS, "batch_size": BATCH, "devices": None, "steps_per_call": None}
    return settings(**{**given, "learning_rate": 0.1, "warmup": 0.2, **changes})


def wait_for(path: Path) -> None:
    """Return when the file is there."""
    end = time.monotonic() + PATIENCE
    while not path.exists():
        if time.monotonic() > end:
            raise TimeoutError(f"nobody made {path}")
        time.sleep(0.01)


def train_as(job: dict[str, Any], index: int) -> dict[str, Any]:
    """Do one job."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    from flax import nnx
    from lab.training.tiny import Normalized, run, training_images

    from convattn.lab.training import sitting
    from convattn.lab.training.failures import OtherProcessFailed
    from convattn.lab.training.images import TrainingImages

    plant = job.get("plant", {}) if index in job.get("in", ()) else {}
    folder, losses = Path(job["folder"]), list[float]()
    order, end_epoch = sitting.compile_program, sitting.Sitting._end_epoch
    load, place, check = TrainingImages.load, sitting.place, sitting.Sitting._check_losses

    def compile_and_halt(*parts: Any) -> Any:
        program = order(*parts)
        advance = program.advance

        def halt_and_advance(state: Any, *rest: Any) -> Any:
            epoch = int(state.step) // STEPS_OF_EPOCH
            if plant.get("halt") == epoch:
                plant.clear()
                (folder / f"waiting-{epoch}").touch()
                wait_for(folder / f"go-{epoch}")
            return advance(state, *rest)

        return type(program)(halt_and_advance, program.order, program.looped)

    def end(self: Any) -> Any:
        found = end_epoch(self)
        if plant.get("full") == found["epoch"]:
            raise OSError("no space left on device")
        return found

    def load_other(self: Any, held: Any, indices: Any, *rest: Any) -> Any:
        return load(self, held, (indices + plant.get("share", 0)) % IMAGES, *rest)

    def place_other(state: Any, mesh: Any) -> Any:
        by = plant.get("drift", 0)
        return place(jax.tree.map(lambda leaf: leaf + leaf.dtype.type(by), state), mesh)

    def note(self: Any, found: Any) -> None:
        check(self, found)
        losses.extend(np.asarray(found, np.float64).tolist())

    changes = {**job.get("settings", {}), **plant.get("settings", {})}
    dtype = jnp.float64 if jax.config.jax_enable_x64 else jnp.float32
    with ExitStack() as stack:
        for where, name, what in (
            (sitting, "compile_program", compile_and_halt),
            (sitting.Sitting, "_end_epoch", end),
            (sitting.Sitting, "_check_losses", note),
            (sitting, "place", place_other),
            (TrainingImages, "load", load_other),
        ):
            stack.enter_context(mock.patch.object(where, name, what))
        try:
            outcome = run(
                folder,
                settings_of(**changes),
                model=Normalized(0, 0.25, dtype),
                images=training_images(plant.get("images", IMAGES)),
            )
        except (OSError, OtherProcessFailed, ValueError) as problem:
            return {"error": type(problem).__name__, "message": str(problem)}
    arrays = [np.asarray(leaf).tolist() for leaf in jax.tree.leaves(nnx.state(outcome.model))]
    figures = {"test": [outcome.test_loss, outcome.test_accuracy], "arrays": arrays}
    return {"status": outcome.status, "step": outcome.step, "losses": losses, **figures}


def losses_in_one_process() -> dict[str, Any]:
    """With the same program on one device and on two, and with first parameters that are moved."""
    from dataclasses import replace

    import jax
    import jax.numpy as jnp
    import numpy as np
    from lab.training.tiny import Normalized, parts, placed, training_images

    from convattn.lab.training.program import compile_program

    found: dict[str, Any] = {"moved": []}
    for devices, seed in ((1, 0), (2, 0), (1, 1), (1, 2)):
        if not seed:
            model, given = Normalized(0, 0.25, jnp.float64), settings_of(devices=devices)
            recipe, mesh, fresh, data, epoch = parts(model, given, training_images(IMAGES))
            program = compile_program(recipe, mesh, fresh, data, epoch)
            if devices == 1:
                one = program, mesh, fresh, data
        rng = np.random.default_rng(seed)
        if seed:
            program, mesh, fresh, data = one

        def move(leaf: Any, rng: Any = rng, by: float = MOVED if seed else 0.0) -> Any:
            return np.array(leaf) * (1 + by * rng.choice([-1, 1], leaf.shape))

        first = fresh.parameters if not seed else one[2].parameters
        state = placed(replace(fresh, parameters=jax.tree.map(move, first)), mesh)
        losses: list[float] = []
        for _ in range(EPOCHS):
            state, of_epoch = program.advance(state, data, program.order(state), epoch)
            losses += of_epoch.tolist()
        found["moved"].append(losses) if seed else found.update({str(devices): losses})
    return found


def main(given: dict[str, Any]) -> None:
    """Do the jobs."""
    devices = given.get("devices", 1)
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={devices}"
    import jax
    from lab.training.sitting_process import cache_options

    options = {"jax_platforms": "cpu", "jax_enable_x64": True, **cache_options(given["cache"])}
    for name, value in {**options, "jax_disable_most_optimizations": True}.items():
        jax.config.update(name, value)
    if "coordinator" not in given:
        print(json.dumps(losses_in_one_process()), flush=True)
        return
    from convattn.lab.training.hosts import start_processes

    where = (given["coordinator"], given["processes"], given["index"])
    start_processes(*where, patience=given.get("patience", PATIENCE))
    for job in given["jobs"]:
        print(json.dumps(train_as(job, given["index"])), flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
