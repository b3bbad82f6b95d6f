"""What the runs of the papers would take on this device, from the rate of some steps.

Source    C20 Tables 1 and 4, Fig. 14; L21 Table 1: the rows that were not run
Command   python experiments/training_hours.py [--config NAME ...] [--json FILE] [--quick]
Expected  a line for each config: images a second, hours, and the command that runs it
Cost      a minute for each config on an accelerator; --quick measures C20's quadratic model alone

The trainer's own step, on random images of the size that the config trains on; what augments them
is not counted. Where the memory ends, half as many images are tried.
"""

import argparse
import json
import statistics
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
from benchmarks.environment import environment
from benchmarks.training.implementations import jax_step, random_batch
from flax import nnx

from convattn.cli.running import guarded
from convattn.files import write_file
from convattn_lab.models.build import build_model
from convattn_lab.runs.configs import get_config
from convattn_lab.runs.settings import RunSettings

CONFIGS = Path(__file__).parent / "configs"
# The rows of the ledger that stay NOT RUN, by config; the last is the archive that it needs.
RUNS = {
    "quadratic": ("C20.quadratic", "cifar10-binary"),
    "learned": ("C20.learned", "cifar10-binary"),
    "gaussian": ("C20.gaussian, C20.pruned", "cifar10-binary"),
    "content": ("C20.content", "cifar10-binary"),
    "heads16": ("C20.heads16", "cifar10-binary"),
    "cmhsa3_convolution": ("L21.twophase", "cifar100-binary"),
    "cmhsa3_attention": ("L21.twophase", "cifar100-binary"),
    "vit_base": ("L21.twophase", "cifar100-binary"),
    "deit_small": ("L21.twophase", "cifar100-binary"),
    "deit_base": ("L21.twophase", "cifar100-binary"),
}
QUICK, QUICK_BATCH = ("quadratic",), 2
IMAGES, CLASSES, SIDE = 50_000, 10, 32  # of CIFAR; some ninety classes more cost nothing
STEPS = 4


def hours(epochs: int, rate: float) -> float:
    """Of a run on all images.

    >>> hours(300, 5_000.0) * 3600
    3000.0
    """
    return epochs * IMAGES / rate / 3600


def images_per_second(settings: RunSettings, batch: int) -> tuple[int, float]:
    """How many images a step takes at once, at most `batch`, and their rate."""
    side = settings.images.resize or SIDE
    model = build_model(settings.model, classes=CLASSES, image_size=(side, side), rngs=nnx.Rngs(0))
    while True:
        training = replace(settings.training, batch_size=batch)
        try:
            step = jax_step(model, training, *random_batch(batch, side))
            step.run()
            times = []
            for _ in range(STEPS):
                began = time.perf_counter()
                step.run()
                times.append(time.perf_counter() - began)
        except jax.errors.JaxRuntimeError as error:
            if batch == 1 or "RESOURCE_EXHAUSTED" not in str(error):
                raise
            batch //= 2
            continue
        return batch, batch / statistics.median(times)


def row_of(name: str, batch: int | None) -> dict[str, Any]:
    """What a config would take."""
    settings = get_config(CONFIGS, name).load()
    claims, archive = RUNS[name]
    size, rate = images_per_second(settings, batch or settings.training.batch_size)
    epochs = settings.training.epochs
    return {
        "config": name,
        "claims": claims,
        "batch": size,
        "images_per_second": rate,
        "epochs": epochs,
        "hours": hours(epochs, rate),
        "command": f"python experiments/cifar.py --config {name} --download {archive}",
    }


def main() -> None:
    """Measure, print, and write after each config."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--config", nargs="+", choices=tuple(RUNS), metavar="NAME")
    parser.add_argument("--batch", type=int, help="images in a step; default: the config's")
    parser.add_argument("--json", type=Path, help="where to write every line")
    parser.add_argument("--quick", action="store_true", help="one config, with a small batch")
    args = parser.parse_args()
    if args.batch is not None and args.batch < 1:
        parser.error(f"--batch {args.batch}, but expected an integer ≥ 1")
    names = args.config or (QUICK if args.quick else tuple(RUNS))
    rows: list[dict[str, Any]] = []
    for name in names:
        row = row_of(name, args.batch or (QUICK_BATCH if args.quick else None))
        rows.append(row)
        print(
            f"{name} ({row['claims']}): {row['images_per_second']:.4g} images/s at batch "
            f"{row['batch']}, {row['epochs']} epochs in {row['hours']:.3g} hours: {row['command']}",
            flush=True,
        )
        if args.json is not None:
            record = {"environment": environment(None), "rows": rows}
            write_file(args.json, (json.dumps(record, indent=1) + "\n").encode())


if __name__ == "__main__":
    sys.exit(guarded("experiments/training_hours.py", main))
