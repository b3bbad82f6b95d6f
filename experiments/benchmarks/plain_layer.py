"""The layer as anybody would write it first, and the convolution that is the floor.

Scores of all queries with all keys, softmax, one einsum, one map over heads × features. Rows and
columns are broadcast rather than listed, which is the most that plain code can be expected to do.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from convattn.encodings import GaussianEncoding, LearnedEncoding, QuadraticEncoding
from convattn.encodings.layer import AttentionLayer, ContentScores


class PlainParameters(NamedTuple):
    """What the plain layer is differentiated by."""

    encoding: Any
    content: ContentScores | None
    linear: Array


def plain_parameters(layer: AttentionLayer) -> PlainParameters:
    """The parameters of a layer, its output maps as one map over heads × features."""
    assert layer.output is not None
    heads, features, out = layer.output.shape
    return PlainParameters(
        layer.encoding, layer.content, layer.output.reshape(heads * features, out)
    )


def plain_attention(
    parameters: PlainParameters, images: Array, precision: lax.PrecisionLike
) -> Array:
    """The layer's output on `[batch, height, width, features]`."""
    batch, height, width, features = images.shape
    tokens = images.reshape(batch, height * width, features)
    scores = positional_scores(parameters.encoding, height, width)
    if parameters.content is not None:
        left = jnp.einsum("btd,hde->bhte", tokens, parameters.content.query, precision=precision)
        right = jnp.einsum("btd,hde->bhte", tokens, parameters.content.key, precision=precision)
        products = jnp.einsum("bhqe,bhke->bhqk", left, right, precision=precision)
        scores = scores + products.astype(scores.dtype) / math.sqrt(left.shape[-1])
    weights = jax.nn.softmax(scores, axis=-1).astype(images.dtype)
    formula = "hqk,bkd->bqhd" if weights.ndim == 3 else "bhqk,bkd->bqhd"
    gathered = jnp.einsum(formula, weights, tokens, precision=precision)
    mixed = jnp.matmul(
        gathered.reshape(batch, height * width, -1), parameters.linear, precision=precision
    )
    return mixed.reshape(batch, height, width, -1)


def positional_scores(encoding: Any, height: int, width: int) -> Array:
    """`[heads, queries, keys]` for the quadratic, the learned and the Gaussian encoding."""
    if isinstance(encoding, QuadraticEncoding):
        rows, columns = differences(encoding.centers, height, width)
        squares = rows[:, :, None, :, None] ** 2 + columns[:, None, :, None, :] ** 2
        scores = -encoding.alpha[:, None, None, None, None] * squares
    elif isinstance(encoding, GaussianEncoding):
        rows, columns = differences(encoding.centers, height, width)
        root = encoding.root_precision[..., None, None, None, None]
        first, second = (
            root[:, i, 0] * rows[:, :, None, :, None] + root[:, i, 1] * columns[:, None, :, None, :]
            for i in range(2)
        )
        scores = -(first**2 + second**2) / 2
    elif isinstance(encoding, LearnedEncoding):
        rows, columns = (
            jnp.einsum("hd,sd->hs", query, table)[:, steps(n) + table.shape[0] // 2]
            for query, table, n in zip(
                jnp.split(encoding.query, [encoding.tables[0].shape[1]], axis=-1),
                encoding.tables,
                (height, width),
                strict=True,
            )
        )
        scores = rows[:, :, None, :, None] + columns[:, None, :, None, :]
    else:
        raise ValueError(f"encoding is {type(encoding).__name__}; the plain layer has no such one")
    return scores.reshape(-1, height * width, height * width)


def steps(length: int) -> Array:
    """Key - query for every query and key of an axis."""
    return jnp.arange(length)[None, :] - jnp.arange(length)[:, None]


def differences(centers: Array, height: int, width: int) -> tuple[Array, Array]:
    """δ - Δ_h on rows and on columns, `[heads, queries, keys]`."""
    rows, columns = (
        steps(n).astype(centers.dtype) - centers[:, axis, None, None]
        for axis, n in enumerate((height, width))
    )
    return rows, columns


def convolution(kernel: Array, images: Array, precision: lax.PrecisionLike) -> Array:
    """XLA's own convolution, zero-padded."""
    return lax.conv_general_dilated(
        images,
        kernel,
        window_strides=(1, 1),
        padding="SAME",
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        precision=precision,
    )


def maps_alone(kernel: Array, patches: Array, precision: lax.PrecisionLike) -> Array:
    """What is left of the layer when all heads have attended: one product with all their maps.

    Args:
        kernel: `[3, 3, features, out_features]`, a head for each tap.
        seen: `[batch, rows, columns, heads·features]`.
    """
    flat = patches.reshape(-1, patches.shape[-1])
    result = jnp.matmul(flat, kernel.reshape(-1, kernel.shape[-1]), precision=precision)
    return result.reshape(*patches.shape[:-1], -1)
