"""Times the conversion of a CMHSA of the paper's size, from random initialisation.

Source    Li et al. 2021, §4.1: 6 layers of 768 features, 224 × 224 images, 100 classes
Command   python experiments/conversion_time.py [--kernel-size 3|5] [--kind limit|exact] [--turns N]
Expected  less than ten seconds on two cores
Cost      a few seconds a turn, and 2 GiB

The first turn compiles; each turn converts a whole network anew and waits for its arrays.
"""

import argparse
import sys
import time

import jax
from flax import nnx

from convattn.cli.running import guarded
from convattn.nnx.vision_transformer.model import VisionTransformer
from convattn_lab.models.presets import cmhsa
from convattn_lab.two_phase.settings import ConversionSettings, phase_two_settings
from convattn_lab.two_phase.transfer import transfer


def main() -> None:
    """One line for each turn: seconds by the clock, and of processor time."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--kernel-size", type=int, choices=(3, 5), default=5)
    parser.add_argument("--kind", choices=("limit", "exact"), default="exact")
    parser.add_argument("--turns", type=int, default=3)
    args = parser.parse_args()

    settings, how = cmhsa(args.kernel_size, "convolution"), ConversionSettings(args.kind)
    one = VisionTransformer(settings, classes=100, image_size=(224, 224), rngs=nnx.Rngs(0))
    for turn in range(1, args.turns + 1):
        clock, processor = time.monotonic(), time.process_time()
        two = transfer(one, phase_two_settings(settings, how), how, rngs=nnx.Rngs(turn))
        jax.block_until_ready(nnx.state(two))
        clock, processor = time.monotonic() - clock, time.process_time() - processor
        count = sum(leaf.size for leaf in jax.tree.leaves(nnx.state(two, nnx.Param)))
        print(
            f"turn {turn}: {two.settings.heads} heads, {count:,} parameters: {clock:.1f} s by the "
            f"clock, {processor:.1f} s of processor time"
        )


if __name__ == "__main__":
    sys.exit(guarded("experiments/conversion_time.py", main))
