"""Our model with all head outputs kept: in its plain form, and with separable attention.

Both put the mixtures of the heads side by side, `[batch, tokens, heads·width]`, take them through
one map, and leave the derivative to JAX, which keeps them. The plain form mixes with the weights of
all pairs; the other one axis after the other, so that beside it stands what not keeping them costs.
All else is the model's own.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax import Array

from benchmarks.plain_layer import positional_scores
from convattn.encodings.axis_scores import SeparableEncoding
from convattn.encodings.layer import AttentionLayer
from convattn.fast.products import product
from convattn.operators.shifts import TokenGrid
from convattn_lab.models.encoder import Encoder
from convattn_lab.models.encoder_layer import EncoderLayer


class PlainEncoderLayer(EncoderLayer):
    """`EncoderLayer` with plain attention, which keeps everything for the backward pass.

    Position alone decides, and no weight is dropped.
    """

    def recomputed(self, function: Callable[..., Array]) -> Callable[..., Array]:
        """The function as it is."""
        return function

    def attend(self, tokens: Array, key: Array | None) -> Array:
        """Attention, heads side by side, and the dense map."""
        del key
        layer = self.attention.layer()
        assert layer.value is not None
        assert layer.bias is not None
        how: dict[str, Any] = {"dtype": jnp.dtype(tokens.dtype), "precision": self.precision}
        mixtures = self.mixtures(layer, tokens, how)
        value = layer.value.reshape(-1, layer.value.shape[-1])
        return self.dense(product("brce,eo->brco", mixtures, value, **how) + layer.bias)

    def mixtures(self, layer: AttentionLayer, tokens: Array, how: dict[str, Any]) -> Array:
        """What the heads have seen, `[batch, rows, columns, heads·width]`: one product an image."""
        batch, rows, columns, width = tokens.shape
        scores = positional_scores(layer.encoding, rows, columns)
        weights = jax.nn.softmax(scores, axis=-1).astype(tokens.dtype)
        beside = weights.transpose(1, 0, 2).reshape(-1, rows * columns)
        flat = tokens.reshape(batch, rows * columns, width)
        return product("xk,bkd->bxd", beside, flat, **how).reshape(batch, rows, columns, -1)


class KeptEncoderLayer(PlainEncoderLayer):
    """The same with attention that goes along the rows, then along the columns."""

    def mixtures(self, layer: AttentionLayer, tokens: Array, how: dict[str, Any]) -> Array:
        """What the heads have seen, a product for each row of an image and head."""
        encoding, grid = layer.encoding, TokenGrid(tokens.shape[1:3], layer.ring)
        assert isinstance(encoding, SeparableEncoding)
        axes = encoding.axis_scores(grid)
        rows, columns = (
            jax.nn.softmax(scores, axis=-1)[jnp.asarray(groups)].astype(tokens.dtype)
            for scores, groups in zip(axes.scores, axes.groups, strict=True)
        )
        batch, height, width, features = tokens.shape
        down = jnp.broadcast_to(rows, (batch, *rows.shape))
        flat = tokens.reshape(batch, height, -1)
        mixed = product("bhik,bkx->bhix", down, flat, **how)
        mixed = mixed.reshape(*mixed.shape[:3], width, features)
        across = jnp.broadcast_to(columns[:, None], (batch, len(columns), height, width, width))
        mixtures = product("bhijl,bhild->bhijd", across, mixed, **how)
        return mixtures.transpose(0, 2, 3, 1, 4).reshape(batch, height, width, -1)


FORMS = {"plain": PlainEncoderLayer, "kept": KeptEncoderLayer}


def with_stored_outputs(model: Encoder, form: str) -> Encoder:
    """A copy of a model that keeps its head outputs.

    Args:
        model: With heads in every layer, without content and without attention dropout.
        form: `"plain"` or `"kept"`.

    Raises:
        ValueError: For another model.
    """
    settings = model.settings
    if settings.encoding == "content" or settings.attention_dropout or not all(settings.heads):
        raise ValueError(
            f"settings={settings}, but the forms that keep head outputs have no content scores, "
            "no dropout of weights and no layer without heads"
        )
    structure, state = nnx.split(model)
    copy = nnx.merge(structure, jax.tree.map(jnp.array, state))
    for layer in copy.layers:
        layer.__class__ = FORMS[form]
    return copy
