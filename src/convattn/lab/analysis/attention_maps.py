"""What a query attends to in given images, for each head and layer: Figures 6 to 10 of C20."""

from collections.abc import Iterator, Sequence

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from convattn.encodings.layer import AttentionLayer
from convattn.fast.application import attention_maps as maps_of_layer
from convattn.lab.analysis.position_maps import Maps
from convattn.lab.analysis.score_tables import check_query
from convattn.lab.models.downsampling import downsample
from convattn.lab.models.encoder import Encoder

BATCH = 10


def image_maps(
    model: Encoder,
    images: Float[np.ndarray, "images height width channels"],
    query: tuple[int, int],
) -> Maps:
    """For each layer the maps `[images, heads, rows, columns]` of each image.

    Args:
        images: Normalised.
        query: (row, column) of a token, counted from 0.

    Raises:
        ValueError: For a query outside the image.
    """
    batches = [
        [attended(layer, tokens, query) for layer, tokens in layer_inputs(model, part)]
        for part in (images[start : start + BATCH] for start in range(0, len(images), BATCH))
    ]
    return [np.concatenate(parts) for parts in zip(*batches, strict=True)]


def layer_inputs(
    model: Encoder, images: Float[np.ndarray, "images height width channels"]
) -> Iterator[tuple[AttentionLayer, Array]]:
    """The attention of each layer and the tokens `[images, rows, columns, width]` that it sees."""
    squares = downsample(jnp.asarray(images), model.settings.downsampling)
    tokens = model.embedding(squares.astype(model.dtype))
    for layer in model.layers:
        yield layer.attention.layer(), tokens
        tokens = layer(tokens)


def attended(layer: AttentionLayer, tokens: Array, query: tuple[int, int]) -> np.ndarray:
    """What the query of each image attends to, `[images, heads, rows, columns]`."""
    count, rows, columns = tokens.shape[:3]
    check_query(query, (rows, columns))
    if not layer.heads:
        return np.zeros((count, 0, rows, columns))
    weights = maps_of_layer(layer, tokens).weights
    seen = np.asarray(weights[..., query[0], query[1], :, :], np.float64)
    return np.broadcast_to(seen, (count, layer.heads, rows, columns))


def averaged(maps: Sequence[np.ndarray]) -> Maps:
    """The means over the images."""
    return [layer.mean(axis=0) for layer in maps]
