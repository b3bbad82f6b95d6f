"""First parameters that others print for the same network: impulses by fit, mimetic, truncated
normal.

*Truncated normal.* Weights of linear maps and positions N(0, 0.02²), cut off at ±2, class and
register tokens N(0, 1e-12), biases zero, LayerNorm the identity: timm's.

*Mimetic* (Trockman and Kolter 2023): W_Q W_Kᵀ ≈ α Z + β I in each head and W_V W_O ≈ α Z - β I over
all, with Z uniform of variance 1/C, factored by the singular value decomposition, that of the
scores cut to d. α = β = 0.7 and 0.4.

*Impulse* (Zheng et al. 2025): positions 18 times as large; W_Q and W_K of the rank d such that the
scores of the normalised positions are near 1000 at one key and small noise elsewhere, by least
squares within the d leading directions of the positions, both of the Frobenius norm 7; W_V and W_O
as in mimetic. Head i looks at the i-th of nine offsets in a fixed order.

The numbers are those of the authors of the latter, whose code has all three
(github.com/osiriszjq/structured_initialization, commit 2623dcc, `vision_transformer.py`); of the
papers only the abstracts were read. That code stores the two factors of the mimetic W_V W_O without
transposing them, so that their product is LᵀRᵀ; here it is the printed one. It divides by all d
singular values of the positions, also by those that are zero (normalised positions of C channels
span C - 1 directions); here these are left out. It leaves all else at PyTorch's defaults; here it
stays as it was given.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.stats import truncnorm

from convattn.initialization.options import read_parameters
from convattn.networks.vision_transformer.state_dicts import (
    Block,
    VisionTransformer,
    read_transformer,
    with_parts,
)
from convattn.networks.vision_transformer.token_grid import token_grid
from convattn.operators.integers import as_integer, per_axis

DEVIATION, OTHERS = 0.02, 1e-6  # of weights and positions; of class and register tokens
SCORES, MAPS = 0.7, 0.4  # α = β of mimetic initialisation
ORDER = (4, 1, 5, 3, 7, 0, 2, 6, 8)  # of the offsets of a 3 × 3 kernel, row by row
PEAK, NOISE, NOISE_DEVIATION = 1000.0, 3.0, 0.6
POSITIONS, QUERIES = 18.0, 7.0
_NORM_EPSILON = 1e-5
RANK = 1e-9  # singular values below this part of the tokens are rounding, and left out

Square = Float[np.ndarray, "channels channels"]
Parameters = Mapping[str, Any]


def truncated_normal(
    parameters: Parameters, *, heads: int | None = None, seed: int = 0
) -> dict[str, np.ndarray]:
    """Those of timm and DeiT; the patch projection and what stands behind the blocks stay.

    Args:
        parameters: A state dict that `convattn diagnose` reads.
        heads: Of each layer; None takes width / 64.
        seed: Of what is drawn.

    Raises:
        ValueError: For what is no state dict of a vision transformer.

    Source: Wightman 2019, timm; Touvron et al. 2021.
    """

    def normal(rng: np.random.Generator, array: np.ndarray) -> np.ndarray:
        limit = 2 / DEVIATION
        return DEVIATION * truncnorm.rvs(-limit, limit, size=array.shape, random_state=rng)

    def block(rng: np.random.Generator, block: Block, heads: int) -> Block:
        initialized = {}
        for name, array in block.items():
            module, _, kind = name.partition(".")
            if kind == "bias" or module.startswith("norm"):
                initialized[name] = np.full_like(array, float(kind == "weight"))
            else:
                initialized[name] = normal(rng, array) if array.ndim == 2 else array
        return initialized

    def stem(rng: np.random.Generator, model: VisionTransformer) -> VisionTransformer:
        positions = None if model.positions is None else normal(rng, model.positions)
        prefix = OTHERS * rng.normal(size=model.prefix.shape)
        return replace(model, positions=positions, prefix=prefix)

    return _initialized(parameters, heads, seed, stem, block)


def mimetic(
    parameters: Parameters, *, heads: int | None = None, seed: int = 0
) -> dict[str, np.ndarray]:
    """W_Q W_Kᵀ near the identity, W_V W_O near the negative identity; all else stays.

    Args:
        parameters, heads, seed: As for `truncated_normal`.

    Raises:
        ValueError: For what is no state dict of a vision transformer, and where heads times
            their features are not the width.

    Source: Trockman and Kolter 2023 (arXiv:2305.09828).
    """

    def block(rng: np.random.Generator, block: Block, heads: int) -> Block:
        width, head_dim = block["query.weight"].shape[1], len(block["query.weight"]) // heads
        queries, keys = [], []
        for _ in range(heads):
            left, right = _factored(_noisy(rng, width, SCORES, SCORES))
            queries.append(left[:, :head_dim].T)
            keys.append(right[:head_dim])
        return _attention(rng, block, queries, keys)

    return _initialized(parameters, heads, seed, lambda rng, model: model, block)


def impulse(
    parameters: Parameters,
    *,
    heads: int | None = None,
    seed: int = 0,
    image_size: int | Sequence[int] | None = None,
) -> dict[str, np.ndarray]:
    """Scores fitted to 3 × 3 impulses by the positions, which are made larger; all else stays.

    Args:
        parameters, heads, seed: As for `truncated_normal`.
        image_size: Pixels on each axis; None where the positions are those of a square.

    Raises:
        ValueError: As `mimetic`, and without added positions of that size, or of a square.

    Source: Zheng et al. 2025 (arXiv:2505.19985).
    """
    grids: list[tuple[tuple[int, int], np.ndarray]] = []

    def stem(rng: np.random.Generator, model: VisionTransformer) -> VisionTransformer:
        if model.positions is None:
            raise ValueError(
                "the parameters have no added positions (pos_embed, position_embeddings), but "
                "expected them: impulses are read off them"
            )
        sides = None if image_size is None else per_axis(image_size, 2, "image_size")
        grid = token_grid(model, None if sides is None else (sides[0], sides[1]))
        positions = POSITIONS * model.positions
        grids.append((grid, positions[-grid[0] * grid[1] :]))
        return replace(model, positions=positions)

    def block(rng: np.random.Generator, block: Block, heads: int) -> Block:
        head_dim = len(block["query.weight"]) // heads
        grid, positions = grids[0]
        inverse = _inverse(positions, head_dim)
        queries, keys = [], []
        for head in range(heads):
            fitted = inverse @ _impulse_scores(rng, grid, ORDER[head % len(ORDER)]) @ inverse.T
            left, right = _factored(fitted)
            query, key = left[:, :head_dim].T, right[:head_dim]
            queries.append(QUERIES * query / np.linalg.norm(query))
            keys.append(QUERIES * key / np.linalg.norm(key))
        return _attention(rng, block, queries, keys)

    return _initialized(parameters, heads, seed, stem, block)


def _initialized(
    parameters: Parameters,
    heads: int | None,
    seed: int,
    stem: Callable[[np.random.Generator, VisionTransformer], VisionTransformer],
    block: Callable[[np.random.Generator, Block, int], Block],
) -> dict[str, np.ndarray]:
    """The parameters with a changed stem and changed blocks."""
    file = read_parameters(parameters)
    rng = np.random.default_rng(as_integer(seed, "seed", 0))
    model = read_transformer(file, None if heads is None else as_integer(heads, "heads"))
    changed = stem(rng, model)
    blocks = tuple(block(rng, each, model.heads) for each in changed.blocks)
    return with_parts(file, replace(changed, blocks=blocks))


def _noisy(rng: np.random.Generator, size: int, noise: float, identity: float) -> Square:
    """α Z + β I, Z uniform of variance 1/size."""
    limit = np.sqrt(3 / size)
    return noise * rng.uniform(-limit, limit, (size, size)) + identity * np.eye(size)


def _factored(matrix: Square) -> tuple[Square, Square]:
    """U√S and √S Vᵀ of U S Vᵀ."""
    left, singular, right = np.linalg.svd(matrix)
    return left * np.sqrt(singular), np.sqrt(singular)[:, None] * right


def _attention(
    rng: np.random.Generator, block: Block, queries: list[np.ndarray], keys: list[np.ndarray]
) -> Block:
    """The block with the scores of these heads, and W_V W_O near the negative identity."""
    attended, width = block["value.weight"].shape
    if attended != width:
        raise ValueError(
            f"the heads have {attended} features in all, but expected {width}, the width: W_V and "
            "W_O are factored over all heads"
        )
    value, output = _factored(_noisy(rng, width, MAPS, -MAPS))
    return dict(block) | {
        "query.weight": np.concatenate(queries),
        "key.weight": np.concatenate(keys),
        "value.weight": value.T,
        "output.weight": output.T,
    }


def _inverse(
    positions: Float[np.ndarray, "tokens channels"], rank: int
) -> Float[np.ndarray, "channels tokens"]:
    """The pseudo-inverse of the normalised positions within their leading directions."""
    centred = positions - positions.mean(axis=1, keepdims=True)
    normal = centred / np.sqrt(np.mean(centred**2, axis=1, keepdims=True) + _NORM_EPSILON)
    left, singular, right = np.linalg.svd(normal, full_matrices=False)
    rank = min(rank, int((singular > RANK * len(normal)).sum()))
    if not rank:
        raise ValueError(
            "positions are the same at all tokens, but expected different ones: impulses are read "
            "off them"
        )
    return right[:rank].T / singular[:rank] @ left[:, :rank].T


def _impulse_scores(
    rng: np.random.Generator, grid: tuple[int, int], tap: int
) -> Float[np.ndarray, "tokens tokens"]:
    """1000 at the key of an offset, where it is on the grid, and noise elsewhere."""
    row, column = np.divmod(np.arange(grid[0] * grid[1]), grid[1])
    at = row + tap // 3 - 1, column + tap % 3 - 1
    is_inside = (at[0] >= 0) & (at[0] < grid[0]) & (at[1] >= 0) & (at[1] < grid[1])
    peaks = np.zeros((len(row), len(row)))
    peaks[np.flatnonzero(is_inside), (at[0] * grid[1] + at[1])[is_inside]] = PEAK
    limit = 2 / NOISE_DEVIATION
    noise = NOISE_DEVIATION * truncnorm.rvs(-limit, limit, size=peaks.shape, random_state=rng)
    return np.where(peaks > 0, peaks, NOISE * noise)
