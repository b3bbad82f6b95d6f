"""Times the three orders of A19's Figure 1 on fifty shapes, and asks the cost model for its choice.

Source    Andreoli 2019, Section 1.4 and Figure 1; claim A19.orders
Command   python experiments/contraction_orders.py [--json FILE]
Expected  the model picks the fastest order, or one within 5 % of it, for at least 45 of the 50
Cost      about a minute and a half on two cores

The shapes are fixed: dense, sparse (5 % of the entries) and shift bases, float32. Every order is
compiled once per shape and warmed up; then the orders take turns, and each turn lasts at least a
millisecond. An order whose first run takes over twenty times as long as the quickest one's is timed
by that run alone. The median of the turns is printed. On a machine that does other work as well the
least time is steadier; it decides which order was the fastest.
"""

import argparse
import json
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from convattn.cli.running import guarded
from convattn_ledger.structures import (
    ORDERS,
    Basis,
    DenseBasis,
    cheapest_order,
    shift_basis,
    sparse_basis,
    structured_convolution,
)

TURNS = 45
TURN_SECONDS = 1e-3
HOPELESS = 20
TIE = 1.05


class Shape(NamedTuple):
    """One convolution: B, M, N, P, Q, K, the type of basis, and for shifts the grid."""

    batch: int
    inputs: int
    outputs: int
    in_channels: int
    out_channels: int
    size: int
    kind: str
    grid: tuple[int, ...] = ()


CHANNELS = ((2, 64), (64, 2), (16, 48), (48, 16))
STRUCTURES = {  # M, N, K, B
    "dense": ((64, 64, 4, 16), (32, 128, 9, 4), (128, 32, 2, 32), (16, 16, 16, 64)),
    "sparse": ((96, 96, 4, 8), (48, 192, 9, 2), (192, 48, 2, 16), (256, 256, 6, 1)),
}
GRIDS = (((256,), 3, 8), ((16, 16), 9, 4), ((10, 12), 25, 16))  # grid, K, B
GRID_CHANNELS = ((1, 32), (3, 64), (64, 3), (16, 96), (96, 16), (32, 32))


def fifty_shapes() -> list[Shape]:
    """16 dense, 16 sparse and 18 shift bases."""
    shapes = [
        Shape(batch, inputs, outputs, *channels, size, kind)
        for kind, structures in STRUCTURES.items()
        for inputs, outputs, size, batch in structures
        for channels in CHANNELS
    ]
    for grid, size, batch in GRIDS:
        nodes = int(np.prod(grid))
        shapes += [Shape(batch, nodes, nodes, *c, size, "shift", grid) for c in GRID_CHANNELS]
    return shapes


def window(grid: tuple[int, ...], size: int) -> Basis:
    """The shifts of a centred window of `size` nodes, K or √K a side."""
    side = round(size ** (1 / len(grid)))
    steps = np.stack(np.meshgrid(*[np.arange(side) - side // 2] * len(grid)), -1)
    return shift_basis(grid, [tuple(map(int, row)) for row in steps.reshape(-1, len(grid))])


def operands(shape: Shape, rng: np.random.Generator) -> tuple[jax.Array, Basis, jax.Array]:
    """x, the basis and Θ, drawn."""
    x = rng.normal(size=(shape.batch, shape.inputs, shape.in_channels))
    theta = rng.normal(size=(shape.size, shape.in_channels, shape.out_channels))
    matrices = rng.normal(size=(shape.size, shape.inputs, shape.outputs)).astype(np.float32)
    basis: Basis = DenseBasis(jnp.asarray(matrices))
    if shape.kind == "sparse":
        basis = sparse_basis(np.where(rng.random(matrices.shape) < 0.05, matrices, 0))
    elif shape.kind == "shift":
        basis = window(shape.grid, shape.size)
    return jnp.asarray(x, jnp.float32), basis, jnp.asarray(theta, jnp.float32)


def compiled(order: str, *arguments: Any) -> Callable[..., jax.Array]:
    """One order, compiled for these operands."""

    def convolve(x: jax.Array, basis: Basis, theta: jax.Array) -> jax.Array:
        return structured_convolution(x, basis, theta, order=order)

    return jax.jit(convolve).lower(*arguments).compile()


def measure(arguments: tuple[Any, ...], turns: int = TURNS) -> dict[str, list[float]]:
    """Seconds for each order in each turn, the orders taking turns."""
    functions, once = {}, {}
    for order in ORDERS:
        functions[order] = compiled(order, *arguments)
        functions[order](*arguments).block_until_ready()
        start = time.perf_counter()
        functions[order](*arguments).block_until_ready()
        once[order] = max(time.perf_counter() - start, 1e-7)
    seconds = {order: [once[order]] for order in ORDERS}
    close = [order for order in ORDERS if once[order] <= HOPELESS * min(once.values())]
    repeats = {order: max(1, round(TURN_SECONDS / once[order])) for order in close}
    for turn in range(turns):
        for order in close:
            start = time.perf_counter()
            for _ in range(repeats[order]):
                result = functions[order](*arguments)
            result.block_until_ready()
            elapsed = (time.perf_counter() - start) / repeats[order]
            seconds[order] = [*seconds[order], elapsed] if turn else [elapsed]
    return seconds


def run() -> list[dict[str, Any]]:
    """A row for every shape, printed as it is measured."""
    rng = np.random.default_rng(0)
    rows = []
    print(f"{'basis':<7}{'B':>4}{'M':>5}{'N':>5}{'P':>4}{'Q':>4}{'K':>4}", end="")
    print("".join(f"{order + ' μs':>20}" for order in ORDERS), "  chosen / fastest")
    for shape in fifty_shapes():
        arguments = operands(shape, rng)
        seconds = measure(arguments)
        shortest = {order: min(turns) for order, turns in seconds.items()}
        fastest = min(shortest, key=shortest.__getitem__)
        chosen = cheapest_order(*shape[:5], arguments[1])
        row = {
            **shape._asdict(),
            "median_seconds": {order: statistics.median(t) for order, t in seconds.items()},
            "least_seconds": shortest,
            "chosen": chosen,
            "fastest": fastest,
            "regret": shortest[chosen] / shortest[fastest],
        }
        rows.append(row)
        print(
            f"{shape.kind:<7}"
            + "".join(f"{n:>{4 + (1 <= i <= 2)}}" for i, n in enumerate(shape[:6])),
            end="",
        )
        print("".join(f"{row['median_seconds'][order] * 1e6:>20.0f}" for order in ORDERS), end="")
        print(
            f"   {chosen} / {fastest}" + ("" if chosen == fastest else f" ({row['regret']:.2f}×)")
        )
    return rows


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """How often the choice was the fastest, strictly and within 5 %, and the confusion matrix."""
    pairs = Counter((row["chosen"], row["fastest"]) for row in rows)
    return {
        "shapes": len(rows),
        "strict": sum(row["chosen"] == row["fastest"] for row in rows),
        "within_5_percent": sum(row["regret"] <= TIE for row in rows),
        "mean_regret": statistics.mean(row["regret"] for row in rows),
        "largest_regret": max(row["regret"] for row in rows),
        "confusion": {c: {f: pairs[c, f] for f in ORDERS} for c in ORDERS},
    }


def main() -> None:
    """Measure, print, and write JSON if asked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", type=Path, help="where to write times, choices and the summary")
    path = parser.parse_args().json
    rows = run()
    totals = summary(rows)
    print("\nchosen \\ fastest" + "".join(f"{order:>17}" for order in ORDERS))
    for chosen, counts in totals["confusion"].items():
        print(f"{chosen:<16}" + "".join(f"{counts[order]:>17}" for order in ORDERS))
    count = totals["shapes"]
    print(f"\nfastest or within 5 % of it: {totals['within_5_percent']} of {count}", end="")
    print(f" ({totals['within_5_percent'] / count:.0%}); strictly the fastest: {totals['strict']}")
    print(f"time of the choice over the fastest: mean {totals['mean_regret']:.3f}", end="")
    print(f", largest {totals['largest_regret']:.2f}")
    if path:
        environment = {"jax": jax.__version__, "device": str(jax.devices()[0].device_kind)}
        record = {"environment": environment, "summary": totals, "shapes": rows}
        path.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(guarded("experiments/contraction_orders.py", main))
