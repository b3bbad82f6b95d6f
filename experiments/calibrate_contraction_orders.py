"""Fits the constants of the cost model of contraction orders to times on random shapes.

Source    claim A19.orders; the constants are SECONDS in structures/contraction_order.py
Command   python experiments/calibrate_contraction_orders.py [--shapes 120] [--seed 3]
Expected  an intermediate number costs some fifty products; up to 200 on a machine that is busy
Cost      about two minutes on two cores

The shapes are drawn, not those of contraction_orders.py, which stay unseen. Sizes are uniform in
their logarithms; a shape is kept if the second cheapest order takes 3e5 to 2e8 products. The model,
with one more constant for the overhead of a call, is fitted to the logarithms of the least times,
with a loss that outliers do not dominate.
"""

import argparse
import sys

import numpy as np
from contraction_orders import Shape, measure, operands
from scipy.optimize import least_squares

from convattn.cli.running import guarded
from convattn_ledger.structures.contraction_order import SECONDS, Work, contraction_work

KINDS = ("dense", "sparse", "shift")
START = Work(0.02e-9, 1e-9, 0.3e-9, 1e-9, 1e-9, 0.5e-9)


def random_shape(rng: np.random.Generator, kind: str) -> Shape:
    """A shape with sizes uniform in their logarithms."""

    def size(low: int, high: int) -> int:
        return round(float(np.exp(rng.uniform(np.log(low), np.log(high)))))

    grid: tuple[int, ...] = ()
    inputs, outputs, bases = size(8, 300), size(8, 300), size(1, 25)
    if kind == "shift":
        sequence = bool(rng.random() < 0.5)
        grid = (size(16, 400),) if sequence else (size(5, 20), size(5, 20))
        inputs = outputs = int(np.prod(grid))
        bases = bases if sequence else int(rng.choice([1, 9, 25]))
    return Shape(size(1, 64), inputs, outputs, size(1, 128), size(1, 128), bases, kind, grid)


def main() -> None:
    """Draw, measure, fit, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--shapes", type=int, default=120)
    parser.add_argument("--seed", type=int, default=3)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    works: list[Work] = []
    times: list[float] = []
    count = 0
    while count < options.shapes:
        shape = random_shape(rng, KINDS[count % 3])
        if shape.size * shape.inputs * shape.outputs > 2e6 and shape.kind != "shift":
            continue
        arguments = operands(shape, rng)
        work = contraction_work(*shape[:5], arguments[1])
        products = sorted(steps.products + steps.entries for steps in work.values())
        if not 3e5 < products[1] < 2e8 or products[2] > 2e9:
            continue
        count += 1
        for order, seconds in measure(arguments, turns=7).items():
            works.append(work[order])
            times.append(min(seconds))
        print(f"{count} {shape}", flush=True)
    steps, measured = np.array(works), np.log(times)

    def residual(logarithms: np.ndarray) -> np.ndarray:
        return np.log(steps @ np.exp(logarithms[1:]) + np.exp(logarithms[0])) - measured

    start = np.log([1e-5, *START])
    solution = np.exp(least_squares(residual, start, loss="soft_l1", bounds=(-30, 0)).x)
    print(f"\noverhead of a call: {solution[0] * 1e6:.1f} μs")
    for name, fitted, stored in zip(Work._fields, solution[1:], SECONDS, strict=True):
        ratios = f"{fitted / solution[1]:.1f} (stored {stored / SECONDS.products:.1f})"
        print(f"{name:<13}{fitted * 1e9:8.3f} ns, in products {ratios}")


if __name__ == "__main__":
    sys.exit(guarded("experiments/calibrate_contraction_orders.py", main))
