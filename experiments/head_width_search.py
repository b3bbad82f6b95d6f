"""Searches by alternating least squares for layers with fewer narrow heads than S.width has.

Source    claim S.width: which numbers of heads between its lower and its upper bound suffice
Command   python experiments/head_width_search.py --head-dim 1 --heads 10 --starts 4 --rounds 25000
Expected  K = 3, P = 2, one channel: 10 heads of dimension 1 come within 1e-11 of a random kernel's
          maps, where S.width has 16; with --head-dim 2 --heads 9, 9 of dimension 2, where it has
          10 and S.heads makes 9 necessary
Cost      about two minutes on one core each

The maps M_δ of a random kernel are to be Σ_h a_hδ V_h U_h with weights a_hδ ≥ 0 and d columns in
V_h: the layers of H heads in the limit, up to factors. V, U and a are fitted in turn; the weights
by steps of projected gradients. The relative Frobenius distance of the best of several starts is
printed, and the largest entry of a map. A small distance is no proof that the heads suffice, and a
large one none that they do not.
"""

import argparse
import sys

import numpy as np

from convattn.cli.running import guarded
from convattn_ledger.evidence.printed_output_map import output_blocks

SHRINK, MIN_STRENGTH = 0.99, 1e-9  # regularisation, which keeps the maps small at first


def fit(
    maps: np.ndarray, heads: int, width: int, rng: np.random.Generator, rounds: int
) -> tuple[float, float]:
    """The distance that one start reaches, and the largest entry of a map.

    Args:
        maps: `[offsets, in, out]`.

    >>> rng = np.random.default_rng(0)
    >>> maps = rng.normal(size=(2, 3, 1)) * rng.normal(size=(2, 1, 3))  # two of rank one
    >>> fit(maps, 2, 1, rng, 200)[0] < 1e-6 < fit(maps, 1, 1, rng, 50)[0]
    True
    """
    offsets, into, out = maps.shape
    weights = np.abs(rng.normal(size=(offsets, heads)))
    first, second = rng.normal(size=(heads, into, width)), rng.normal(size=(heads, width, out))
    strength = 1e-3
    for _ in range(rounds):
        strength = max(strength * SHRINK, MIN_STRENGTH)
        first = _half(maps, weights, second, first, strength)
        turned = _half(
            maps.swapaxes(1, 2), weights, first.swapaxes(1, 2), second.swapaxes(1, 2), strength
        )
        second = turned.swapaxes(1, 2)
        scale = np.sqrt(np.linalg.norm(first, axis=(1, 2)) / np.linalg.norm(second, axis=(1, 2)))
        first, second = first / scale[:, None, None], second * scale[:, None, None]
        flat = (first @ second).reshape(heads, -1)
        gram = flat @ flat.T
        products = flat @ maps.reshape(offsets, -1).T
        step = 1 / (np.linalg.norm(gram, 2) + strength)
        for _ in range(10):
            weights = np.maximum(weights - step * (gram @ weights.T - products).T, 0)
    flat = (first @ second).reshape(heads, -1)
    error = np.linalg.norm(weights @ flat - maps.reshape(offsets, -1)) / np.linalg.norm(maps)
    return float(error), float(np.abs(flat).max() * weights.max())


def _half(
    maps: np.ndarray, weights: np.ndarray, other: np.ndarray, old: np.ndarray, strength: float
) -> np.ndarray:
    """The V_h that fit best, given the U_h and the weights."""
    heads, width, _ = other.shape
    features = np.einsum("th,hwo->hwto", weights, other).reshape(heads * width, -1)
    targets = maps.transpose(1, 0, 2).reshape(maps.shape[1], -1)
    before = old.transpose(0, 2, 1).reshape(heads * width, -1)
    right = features @ targets.T + strength * before
    solution = np.linalg.solve(features @ features.T + strength * np.eye(heads * width), right)
    return solution.reshape(heads, width, -1).swapaxes(1, 2)


def main() -> None:
    """Print the best distance for each number of heads."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kernel-size", type=int, default=3, metavar="K")
    parser.add_argument("--patch-size", type=int, default=2, metavar="P")
    parser.add_argument("--channels", type=int, default=1, metavar="D")
    parser.add_argument("--head-dim", type=int, default=1, metavar="d")
    parser.add_argument("--heads", type=int, nargs="+", default=[16, 12, 10], metavar="H")
    parser.add_argument("--starts", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=6000)
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    size, channels = args.kernel_size, args.channels
    kernel = rng.normal(size=(size, size, channels, channels))
    maps = output_blocks(kernel, args.patch_size)
    ranks = [int(np.linalg.matrix_rank(block)) for block in maps]
    print(f"{len(maps)} offsets, ranks {ranks}, heads of dimension {args.head_dim}")
    for heads in args.heads:
        starts = [np.random.default_rng([heads, start]) for start in range(args.starts)]
        fits = [fit(maps, heads, args.head_dim, start, args.rounds) for start in starts]
        error, largest = min(fits)
        print(f"{heads:3d} heads: distance {error:.1e}, largest entry {largest:.1e}", flush=True)


if __name__ == "__main__":
    sys.exit(guarded("experiments/head_width_search.py", main))
