"""A small summary of a model's attention, kept at many epochs of a run.

For each layer the table of positional scores at every shift, for the encodings that have them the
centres and the roots of the inverse covariances, and the Gram matrix of the heads' value maps,
G_gh = <W_g, W_h>. With it the distance of the layer to a convolution follows without the maps.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import Array

from convattn.encodings.base import RelativePosition
from convattn.encodings.gaussian import GaussianEncoding
from convattn.encodings.layer import AttentionLayer, ContentScores
from convattn.encodings.learned import LearnedEncoding
from convattn.encodings.quadratic import QuadraticEncoding
from convattn.nnx.layers.images import token_grid
from convattn.operators.attention import HIGHEST
from convattn.operators.shifts import TokenGrid
from convattn_lab.models.encoder import Encoder


def attention_snapshot(model: nnx.Module, image_size: tuple[int, int]) -> dict[str, np.ndarray]:
    """The arrays `layerN.scores`, `.value_gram`, and `.centers`, `.root_precision` if it has them.

    A layer with content is seen at X = 0. Other models have no attention and give nothing.

    Args:
        image_size: (height, width) of the images.
    """
    if not isinstance(model, Encoder):
        return {}
    grid = TokenGrid(token_grid(image_size, model.settings.downsampling), ((0, 0), (0, 0)))
    arrays: dict[str, Array] = {}
    for number, layer in enumerate(model.attention_layers(), 1):
        for name, array in _layer_summary(layer, grid).items():
            arrays[f"layer{number}.{name}"] = array
    return {name: np.asarray(array, np.float32) for name, array in jax.device_get(arrays).items()}


def _layer_summary(layer: AttentionLayer, grid: TokenGrid) -> dict[str, Array]:
    """The summary of one layer."""
    encoding = layer.encoding
    if not isinstance(encoding, RelativePosition):
        raise ValueError(
            f"the scores of {type(encoding).__name__} depend on more than the shift, so there is "
            "no table of them"
        )
    sides = tuple(2 * n - 1 for n in grid.queries)
    scores = encoding.shift_scores(grid.shifts, grid.number_of_keys)
    if layer.content is not None:
        scores = scores + content_at_zero(layer.content, grid)
    summary = {"scores": scores.reshape(layer.heads, *sides)}
    if isinstance(encoding, QuadraticEncoding):
        roots = jnp.sqrt(2 * encoding.alpha)[:, None, None] * jnp.eye(encoding.centers.shape[1])
        summary |= {"centers": encoding.centers, "root_precision": roots}
    if isinstance(encoding, GaussianEncoding):
        summary |= {"centers": encoding.centers, "root_precision": encoding.root_precision}
    if layer.value is not None:
        flat = layer.value.reshape(layer.heads, math.prod(layer.value.shape[1:]))
        summary["value_gram"] = jnp.matmul(flat, flat.T, precision=HIGHEST)
    return summary


def content_at_zero(content: ContentScores, grid: TokenGrid) -> Array:
    """What content scores are at X = 0, but for a constant of each head: a_h·r_δ / scale.

    There a query is its bias a_h and a key its bias c_h, and a_h·c_h is the same for all keys, so
    that the softmax does not see it.

    Returns:
        `[heads, shifts]`; zeros if there are no tables or no biases.
    """
    if content.tables is None or content.query_bias is None:
        return jnp.zeros((content.query.shape[0], len(grid.shifts)), jnp.float32)
    met = LearnedEncoding(content.query_bias, content.tables)
    scores = met.shift_scores(grid.shifts, grid.number_of_keys)
    return scores / math.sqrt(content.query.shape[-1]) if content.scaled else scores
