"""Times a whole ResNet18 as attention beside the same network with its convolutions.

Source    S.network of this project's ledger; He et al. 2016, the form for images of 32 × 32 pixels
Command   python experiments/network_time.py [--images N] [--rounds N] [--json FILE]
Expected  attention takes at most 1.2 times as long as the convolutions, forward, on two cores
Cost      about a minute, and 2 GiB

Both are folded networks with the same random parameters: one has `lax` convolutions, the other the
exact attention layers that `convattn convert --network` writes. They run one after the other in
every round, the other one first each time, so that the ratio of a round belongs to one moment.
"""

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

import jax
import numpy as np
from benchmarks.environment import environment
from benchmarks.measurement import repeat, seconds_of

from convattn.lab.analysis.resnet_comparison import ConvertedResNet, convert_resnet
from convattn.lab.models.resnet_network import random_resnet
from convattn.lab.models.settings import ResNetSettings
from convattn.networks import apply_network


def random_resnet18() -> ConvertedResNet:
    """ResNet18 for ten classes with random parameters and statistics, and its attention network."""
    model = random_resnet(np.random.default_rng(0), ResNetSettings(), 10)
    half = np.full(3, 0.5)
    return convert_resnet(model, half, half)


def ratios(converted: ConvertedResNet, images: jax.Array, rounds: int) -> list[tuple[float, float]]:
    """Seconds of (convolutions, attention) in every round, after one run of each to compile."""
    networks = (converted.folded, converted.attention)
    programs = [jax.jit(apply_network).lower(one, images).compile() for one in networks]
    runs = [
        lambda times, program=program, network=network: repeat(program, (network, images), times)
        for program, network in zip(programs, networks, strict=True)
    ]
    for run in runs:
        run(1)
    found = []
    for number in range(rounds):
        order = (0, 1) if number % 2 == 0 else (1, 0)
        seconds = {index: seconds_of(runs[index], 3, time.perf_counter) for index in order}
        found.append((seconds[0], seconds[1]))
    return found


def main() -> int:
    """Print the median times and the median ratio."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--images", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    if given.images < 1 or given.rounds < 1:
        parser.error(f"--images={given.images}, --rounds={given.rounds}, but expected integers ≥ 1")
    drawn = np.random.default_rng(1).integers(0, 256, (given.images, 32, 32, 3))
    times = ratios(random_resnet18(), jax.numpy.asarray(drawn, np.float32), given.rounds)
    convolutions, attention = (statistics.median(column) for column in zip(*times, strict=True))
    each = sorted(attention / convolution for convolution, attention in times)
    print(
        f"ResNet18, {given.images} images, forward, {given.rounds} rounds: convolutions "
        f"{1000 * convolutions:.0f} ms, attention {1000 * attention:.0f} ms, ratio "
        f"{statistics.median(each):.2f} ({each[0]:.2f} to {each[-1]:.2f})"
    )
    if given.json:
        document = {"environment": environment(None), "seconds": times, "ratios": each}
        given.json.write_text(json.dumps(document, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
