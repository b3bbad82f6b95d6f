"""Times whole networks as attention beside the same networks with their convolutions.

Source    S.network of this project's ledger; He et al. 2016; Liu et al. 2022
Command   python experiments/network_time.py [--network NAME ...] [--rounds N] [--json FILE]
Expected  on two cores ResNet18 at most 1.2 times as long as its convolutions, ResNet50 at most 1.3
Cost      six minutes, and 4 GiB

Both are networks with the same random parameters, batch norms folded: one has convolutions of
`lax`, the other exact attention layers. They run one after the other in every round, the other one
first each time, so that the ratio of a round belongs to one moment. The memory is XLA's count for
the program that is timed: arguments, outputs and temporary arrays.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from benchmarks.environment import environment
from benchmarks.measurement import Memory, analysis, repeat, seconds_of
from flax import nnx

from convattn.cli.running import guarded
from convattn.lab.analysis.resnet_comparison import convert_resnet
from convattn.lab.models.resnet_network import random_resnet
from convattn.lab.models.settings import ResNetSettings
from convattn.networks import apply_network
from convattn.nnx.architectures import ARCHITECTURES
from convattn.nnx.network_file import fold_batch_norms
from convattn.nnx.surgery import replaced

Network = tuple[Callable[[Any, jax.Array], jax.Array], Any]  # a function, and its parameters


class Row(NamedTuple):
    """What is timed.

    Attributes:
        make: Both networks, convolutions first.
        shape: Of the images.
        backward: Whether the gradients by all parameters are computed as well.
    """

    make: Callable[[], tuple[Network, Network]]
    shape: tuple[int, ...]
    backward: bool = False


def small_resnet18() -> tuple[Network, Network]:
    """ResNet18 for images of 32 × 32 pixels, as steps."""
    half = np.full(3, 0.5)
    converted = convert_resnet(
        random_resnet(np.random.default_rng(0), ResNetSettings(), 10), half, half
    )
    return (apply_network, converted.folded), (apply_network, converted.attention)


def checkpoint(name: str) -> tuple[Network, Network]:
    """A network of `convattn.nnx.architectures`, with parameters as Flax draws them."""
    model = fold_batch_norms(ARCHITECTURES[name](rngs=nnx.Rngs(0)))
    model.eval()
    return functional(model), functional(replaced(model, exact=True, leak=0.5, head_dim=None)[0])


def functional(model: Any) -> Network:
    """A Flax module as a function of its parameters."""
    definition, state = nnx.split(model)
    return lambda state, images: nnx.merge(definition, state)(images), state


ROWS = {
    "resnet18": Row(small_resnet18, (8, 32, 32, 3)),
    "resnet18-training": Row(small_resnet18, (8, 32, 32, 3), True),
    "resnet50": Row(partial(checkpoint, "torchvision/resnet50"), (1, 224, 224, 3)),
    "convnext_tiny": Row(partial(checkpoint, "timm/convnext_tiny"), (1, 224, 224, 3)),
}


class Result(NamedTuple):
    """Seconds of (convolutions, attention) in every round, and the memory of both programs."""

    seconds: list[tuple[float, float]]
    memory: list[Memory | None]


def measure(row: Row, rounds: int) -> Result:
    """Both networks in turns, after one run of each to compile."""
    drawn = np.random.default_rng(1).integers(0, 256, row.shape)
    images = jnp.asarray(drawn, jnp.float32)
    runs, memory = [], []
    for apply, parameters in row.make():
        program = gradients(apply) if row.backward else jax.jit(apply)
        compiled = program.lower(parameters, images).compile()
        memory.append(analysis(compiled))
        runs.append(partial(repeat, compiled, (parameters, images)))
    for run in runs:
        run(1)
    found = []
    for number in range(rounds):
        order = (0, 1) if number % 2 == 0 else (1, 0)
        seconds = {index: seconds_of(runs[index], 3, time.perf_counter) for index in order}
        found.append((seconds[0], seconds[1]))
    return Result(found, memory)


def gradients(apply: Callable[[Any, jax.Array], jax.Array]) -> Any:
    """Logits, and the gradient of the sum of their squares by all parameters."""

    def loss(parameters: Any, images: jax.Array) -> tuple[jax.Array, jax.Array]:
        logits = apply(parameters, images)
        return (logits**2).sum(), logits

    return jax.jit(jax.grad(loss, has_aux=True))


def line(name: str, row: Row, result: Result) -> str:
    """The median times, the ratios and the memory."""
    convolutions, attention = (
        1000 * statistics.median(column) for column in zip(*result.seconds, strict=True)
    )
    each = sorted(attention / convolution for convolution, attention in result.seconds)
    lower, middle, upper = np.quantile(each, [0.25, 0.5, 0.75])
    what = "forward and backward" if row.backward else "forward"
    sizes, told = [memory.total for memory in result.memory if memory is not None], ""
    if len(sizes) == 2:
        told = f"; memory {sizes[1] / sizes[0]:.2f} times of {sizes[0] / 2**20:.0f} MiB"
    size = " x ".join(map(str, row.shape[:3]))
    return (
        f"{name}, {size}, {what}: convolutions {convolutions:.0f} ms, attention {attention:.0f} "
        f"ms; ratio {middle:.2f} (quartiles {lower:.2f}, {upper:.2f}){told}"
    )


def main() -> int:
    """Print a line for each network."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--network", nargs="+", choices=ROWS, default=list(ROWS), metavar="NAME")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    if given.rounds < 1:
        parser.error(f"--rounds={given.rounds}, but expected an integer ≥ 1")
    found = {}
    for name in given.network:
        result = measure(ROWS[name], given.rounds)
        print(line(name, ROWS[name], result), flush=True)
        found[name] = {"seconds": result.seconds, "memory": result.memory}
    if given.json:
        document = {"environment": environment(None), "networks": found}
        given.json.write_text(json.dumps(document, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(guarded("experiments/network_time.py", main))
