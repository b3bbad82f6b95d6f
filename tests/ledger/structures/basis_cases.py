"""Bases of every type beside the integer matrices they stand for; every axis has its own size."""

import jax.numpy as jnp
import numpy as np

from convattn_ledger.structures import Basis, DenseBasis, ShiftBasis, sparse_basis

SPARSE_SHAPE = (3, 7, 5)
SHIFTS = (((6,), ((0,), (2,), (-1,), (9,))), ((3, 4), ((0, 0), (1, -2), (-3, 1))))
NAMES = ("dense", "sparse", "sequence", "grid")
ORDERS = ("basis_first", "parameter_first", "operator")


def slow_shift(grid: tuple[int, ...], shift: tuple[int, ...]) -> np.ndarray:
    """A19's Definition 1, node by node."""
    nodes = list(np.ndindex(*grid))
    return np.array(
        [
            [int(all(n - m == d for n, m, d in zip(b, a, shift, strict=True))) for b in nodes]
            for a in nodes
        ]
    )


def case(name: str) -> tuple[Basis, np.ndarray]:
    """A basis of small integers in float32 (zeros and ones for shifts), and A in int64."""
    rng = np.random.default_rng(0)
    if name in ("sequence", "grid"):
        grid, shifts = SHIFTS[name == "grid"]
        return ShiftBasis(grid, shifts), np.stack([slow_shift(grid, d) for d in shifts])
    matrices = rng.integers(-3, 4, SPARSE_SHAPE)
    if name == "dense":
        return DenseBasis(jnp.asarray(matrices, jnp.float32)), matrices
    matrices *= rng.random(SPARSE_SHAPE) < 0.3
    return sparse_basis(matrices.astype(np.float32)), matrices


def operands(matrices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """x and Θ of small integers for a basis, from two channels to four."""
    rng = np.random.default_rng(1)
    size, inputs, _ = matrices.shape
    return rng.integers(-5, 6, (3, inputs, 2)), rng.integers(-5, 6, (size, 2, 4))
