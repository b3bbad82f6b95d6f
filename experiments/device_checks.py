"""Checks every back end on this device against float64: values, gradients, several devices.

Source    the bounds are `convattn_ledger.bounds.back_ends`
Command   python experiments/device_checks.py [--json FILE] [--quick]
Expected  every difference is within its bound
Cost      a minute or two; --quick half of that

Products are at the highest precision, so that a device that runs float32 products with fewer bits
(TF32, passes of bfloat16) unasked fails. How far the default precision is off is measured beside
it. The reference is the dense back end in float64 on the CPU, with its own bound. Where there are
several devices, the images are spread over all of them too.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from benchmarks import layers
from benchmarks.environment import environment
from benchmarks.settings import Settings
from jax import Array
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import convattn as ca
from convattn.cli.running import FAILED, SUCCESS, guarded
from convattn.encodings.layer import AttentionLayer
from convattn.fast.options import AttentionOptions, Window
from convattn.fast.selection import BACK_ENDS
from convattn.files import write_file
from convattn.operators.shifts import TokenGrid
from convattn_ledger.audit.matmul_precision import (
    BITS,
    MatmulPrecision,
    measure_matmul_precision,
)
from convattn_ledger.bounds.back_ends.bounds import gradient_bounds, value_bound

CASES = {
    "quadratic": layers.quadratic,
    "grid": layers.grid_of_centers,
    "learned": layers.learned,
    "gaussian": layers.gaussian,
    "finite": layers.finite,
    "content": layers.content,
}
QUICK = ("quadratic", "finite", "content")
DTYPES = ("float32", "bfloat16", "float16")
SIDE, FEATURES = 8, 8


class Check(NamedTuple):
    """One comparison.

    Attributes:
        case, back_end, dtype: Which.
        what: Values, gradients, or values spread over all devices.
        difference: The largest.
        of_largest: It, over the largest expected number.
        of_bound: The largest share of its bound that a difference takes.
        passed: Whether it is at most 1; None where that is not asked.
    """

    case: str
    back_end: str
    dtype: str
    what: str
    difference: float
    of_largest: float
    of_bound: float
    passed: bool | None


class Layer(NamedTuple):
    """A layer with its images and a cotangent, in one dtype."""

    layer: AttentionLayer
    images: Array
    cotangent: Array

    @property
    def grid(self) -> TokenGrid:
        """Of its tokens."""
        return TokenGrid(self.images.shape[1:3], self.layer.ring)


def make_layer(case: str, dtype: str, batch: int) -> Layer:
    """A layer whose every number is one of the dtype."""
    settings = Settings(batch=batch, dtype="float32")
    layer = CASES[case](SIDE, FEATURES, settings)
    images = layers.images(SIDE, FEATURES, settings)
    cotangent = layers.normal(images.shape, 1.0, 9, jnp.dtype("float32"))
    return Layer(*jax.tree.map(lambda leaf: leaf.astype(dtype), (layer, images, cotangent)))


def results(setup: Layer, back_end: str, precision: str = "highest") -> tuple[Any, Any]:
    """Values, and the gradients of layer and images."""
    windows = everything(setup) if back_end == "windowed" else None

    @jax.jit
    def run(layer: AttentionLayer, images: Array, cotangent: Array) -> tuple[Any, Any]:
        def apply(layer: AttentionLayer, images: Array) -> Array:
            return ca.apply_attention(
                layer, images, backend=back_end, precision=precision, windows=windows
            )

        values, pull_back = jax.vjp(apply, layer, images)
        return values, pull_back(cotangent)

    return run(*setup)


def everything(setup: Layer) -> tuple[Window, ...]:
    """Windows that leave nothing out."""
    axes = tuple((shifts.start, shifts.stop - 1) for shifts in setup.grid.shift_ranges)
    return (axes,) * setup.layer.heads


def serving(setup: Layer) -> list[str]:
    """The back ends that serve it."""
    options = {"windowed": AttentionOptions(windows=everything(setup))}
    return [
        name
        for name, back_end in BACK_ENDS.items()
        if back_end.refusal(setup.layer, setup.grid, options.get(name, AttentionOptions())) is None
    ]


def compare(
    labels: tuple[str, str, str, str],
    values: Any,
    expected: Any,
    allowed: Any,
    *,
    asked: bool = True,
) -> Check:
    """Whether every number is within its bound.

    Args:
        labels: Case, back end, dtype, and what is compared.
        values, expected, allowed: Trees of the same structure.
        asked: Whether they have to be.

    >>> labels = ("a", "dense", "float32", "values")
    >>> compare(labels, [1.0, 2.0], [1.0, 2.5], [0.1, 1.0])[4:]
    (0.5, 0.2, 0.5, True)
    >>> compare(labels, [1.0, float("nan")], [1.0, 2.5], [0.1, 1.0]).passed
    False
    """
    difference = largest = of_bound = 0.0
    for value, right, bound in zip(*map(jax.tree.leaves, (values, expected, allowed)), strict=True):
        right, bound = np.asarray(right, np.float64), np.asarray(bound, np.float64)
        abs_diff = np.abs(np.asarray(value).astype(np.float64) - right)
        abs_diff = np.where(np.isnan(abs_diff), np.inf, abs_diff)
        difference = max(difference, float(abs_diff.max(initial=0)))
        largest = max(largest, float(np.abs(right).max(initial=0)))
        fractions = np.where(abs_diff > 0, abs_diff / np.where(bound > 0, bound, 1e-300), 0.0)
        of_bound = max(of_bound, float(fractions.max(initial=0)))
    passed = of_bound <= 1 if asked else None
    return Check(*labels, difference, difference / max(largest, 1e-300), of_bound, passed)


def reference(setup: Layer) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """What float64 gives on the CPU, and the bounds on how far both are from exact."""
    with jax.enable_x64(True), jax.default_device(jax.local_devices(backend="cpu")[0]):
        narrow = Layer(*jax.tree.map(np.asarray, setup))
        wide = Layer(*jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), narrow))
        narrow = Layer(*jax.tree.map(jnp.asarray, narrow))
        expected = jax.tree.map(np.asarray, results(wide, "dense"))
        values, gradients = (
            jax.tree.map(lambda one, other: np.asarray(one) + np.asarray(other), *both)
            for both in (
                tuple(value_bound(setup.layer, setup.images) for setup in (narrow, wide)),
                tuple(gradient_bounds(*setup) for setup in (narrow, wide)),
            )
        )
    return expected, (values, gradients)


def check_products(measured: Iterable[MatmulPrecision]) -> Check:
    """Whether float32 products at the highest precision keep all bits of their operands.

    A bound on rounding allows for sums in the worst order, in which fewer bits could hide.
    """
    (highest,) = (row for row in measured if row.precision == "HIGHEST")
    lost = BITS - min(highest.left_bits, highest.right_bits, highest.accumulator_bits)
    labels = ("products", "dot", "float32", f"bits that the highest precision loses, of {BITS}")
    return Check(*labels, float(lost), lost / BITS, float(lost), passed=lost == 0)


def checks(quick: bool) -> Iterator[Check]:
    """All checks, one after the other."""
    yield check_products(measure_matmul_precision())
    for case in QUICK if quick else CASES:
        for dtype in DTYPES[:2] if quick else DTYPES:
            setup = make_layer(case, dtype, 2 * jax.device_count())
            expected, allowed = reference(setup)
            for name in serving(setup):
                values = results(setup, name)
                for index, what in enumerate(("values", "gradients")):
                    labels = (case, name, dtype, what)
                    yield compare(labels, values[index], expected[index], allowed[index])
                if name == "dense" and dtype == "float32":
                    labels = (case, name, dtype, "values at the default precision")
                    loose = results(setup, name, "default")[0]
                    yield compare(labels, loose, expected[0], allowed[0], asked=False)
            if jax.device_count() > 1:
                labels = (case, "auto", dtype, f"values on {jax.device_count()} devices")
                yield compare(labels, results(spread(setup), "auto")[0], expected[0], allowed[0])


def spread(setup: Layer) -> Layer:
    """Images and cotangents over all devices, the layer on each."""
    mesh = Mesh(np.array(jax.devices()), ("images",))
    sharded, replicated = (NamedSharding(mesh, PartitionSpec(*axes)) for axes in (("images",), ()))
    return Layer(
        jax.device_put(setup.layer, replicated),
        jax.device_put(setup.images, sharded),
        jax.device_put(setup.cotangent, sharded),
    )


def describe_precision(rows: list[Check]) -> str:
    """What the default precision of float32 products is worth here."""
    worst = max((row for row in rows if row.passed is None), key=lambda row: row.of_bound)
    verdict = "keeps float32" if worst.of_bound <= 1 else "has fewer bits than float32"
    return (
        f"The default precision of float32 products {verdict}: off by {worst.of_largest:.2g} of "
        f"the largest number, {worst.of_bound:.2g} of the bound at the highest precision."
    )


def main() -> int:
    """Check, print, and write what is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", type=Path, help="where to write every check")
    parser.add_argument("--quick", action="store_true", help="fewer layers and dtypes")
    args = parser.parse_args()
    rows = []
    for row in checks(args.quick):
        rows.append(row)
        verdict = {True: "within", False: "OUTSIDE", None: "measured,"}[row.passed]
        print(
            f"{row.case}, {row.back_end}, {row.dtype}, {row.what}: {verdict} {row.of_bound:.2g} of "
            f"the bound, {row.of_largest:.2g} of the largest",
            flush=True,
        )
    failed = [row for row in rows if row.passed is False]
    description = describe_precision(rows)
    print(f"{description}\n{len(rows)} checks, {len(failed)} outside their bound")
    if args.json is not None:
        written = [row._asdict() for row in rows]
        record = {"environment": environment(None), "precision": description, "rows": written}
        write_file(args.json, (json.dumps(record, indent=1) + "\n").encode())
    return FAILED if failed else SUCCESS


if __name__ == "__main__":
    sys.exit(guarded("experiments/device_checks.py", main))
