"""Heads without content on the grid of whole real images: their weights, what they attend to."""

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int, Num

from convattn.encodings.base import PositionalEncoding
from convattn.encodings.layer import AttentionLayer
from convattn.fast.application import apply_attention
from convattn.fast.dense import layer_weights
from convattn.operators.attention import attention_weights
from convattn.operators.shifts import TokenGrid
from convattn_ledger.claim import EvidenceFailed
from convattn_ledger.evidence.layer_runs import within
from convattn_ledger.evidence.softmax_rounding import Within, mixture_within, weights_within

BARE = ((0, 0), (0, 0))
_weights = jax.jit(layer_weights, static_argnames="grid")
_attend = jax.jit(apply_attention, static_argnames="border")


def bare_grid(images: Int[np.ndarray, "batch height width channels"]) -> TokenGrid:
    """The pixels of an image, each one token, without a ring."""
    return TokenGrid((images.shape[1], images.shape[2]), BARE)


def scores_by_shift(
    grid: TokenGrid, score: Callable[[np.ndarray], np.ndarray]
) -> Float[np.ndarray, "queries keys"]:
    """The scores of one head from a function of the shifts δ = key - query, `[..., 2]`.

    >>> grid = TokenGrid((1, 2), ((0, 0), (0, 0)))
    >>> scores_by_shift(grid, lambda shifts: shifts[..., 1]).tolist()
    [[0.0, 1.0], [-1.0, 0.0]]
    """
    shifts = grid.key_positions[None, :, :] - grid.query_positions[:, None, :]
    return np.asarray(score(shifts), np.float64)


def images_as_tokens(
    images: Num[np.ndarray, "batch height width channels"],
) -> Float[np.ndarray, "keys columns"]:
    """Every pixel a row, the channels of all images side by side."""
    batch, height, width, channels = images.shape
    rows = images.reshape(batch, height * width, channels).transpose(1, 0, 2)
    return rows.reshape(height * width, batch * channels).astype(np.float64)


def head_weights(encoding: PositionalEncoding, grid: TokenGrid) -> Float[Array, "heads q k"]:
    """The attention weights that the library computes."""
    return _weights(AttentionLayer(encoding, None, None), grid, None)


def attended(
    encoding: PositionalEncoding, head: int, images: Float[Array, "batch height width channels"]
) -> Float[Array, "batch height width channels"]:
    """What one head alone attends to, on the bare grid."""
    layer = AttentionLayer(encoding.take_heads([head]), None, None)
    result = _attend(layer, images, border="none")
    if result.dtype != images.dtype:
        raise EvidenceFailed(f"images of {images.dtype} gave a result of {result.dtype}")
    return result


def heads_within(
    dtype: str,
    encoding: PositionalEncoding,
    scores: list[Float[np.ndarray, "queries keys"]],
    images: Int[np.ndarray, "batch height width channels"],
    score_error: float = 0.0,
) -> list[Within]:
    """Compare each head's weights, and what it attends to, with exactly known scores.

    Returns:
        The exact weights of each head and the bound that was kept.
    """
    weights = head_weights(encoding, bare_grid(images))
    tokens, typed = images_as_tokens(images), jnp.asarray(images, dtype)
    bounds = []
    for head, exact in enumerate(scores):
        allowed = weights_within(exact, dtype, score_error)
        within(f"{dtype}, weights of head {head}", weights[head], *allowed)
        mixture = mixture_within(allowed, tokens, dtype)
        outputs = images_as_tokens(np.asarray(attended(encoding, head, typed), np.float64))
        within(f"{dtype}, pixels of head {head}", jnp.asarray(outputs), *mixture)
        bounds.append(allowed)
    return bounds


def products_within(
    name: str,
    features: Num[np.ndarray, "queries keys position_features"],
    targets: Float[Array, "heads position_features"],
    allowed: Sequence[Within],
) -> None:
    """Softmax of the printed products r_δ·v_h, head by head, against the exact weights."""
    for head, target in enumerate(targets):
        products = jnp.matmul(jnp.asarray(features, targets.dtype), target, precision="highest")
        within(f"{name}, head {head}", attention_weights(products), *allowed[head])
