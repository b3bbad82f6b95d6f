"""All that a vision transformer computes on its way from images to logits, sublayer by sublayer."""

from dataclasses import dataclass

import jax
from jax import Array
from jaxtyping import Float

from convattn.lab.models.vision_transformer import VisionTransformer

Tokens = Float[Array, "batch rows columns features"]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class LayerTrace:
    """One layer.

    Attributes:
        inputs: X.
        normed: LayerNorm(X), which is mixed.
        mixed: What attention or the convolution makes of it.
        middle: Y, the sum of X and that.
        inner_normed: LayerNorm(Y).
        inner: Its image inside the feed-forward part, before gelu.
        active: After it.
        found: What the feed-forward part adds.
        outputs: Z, the sum of Y and that.
    """

    inputs: Tokens
    normed: Tokens
    mixed: Tokens
    middle: Tokens
    inner_normed: Tokens
    inner: Tokens
    active: Tokens
    found: Tokens
    outputs: Tokens


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Trace:
    """A whole network.

    Attributes:
        layers: One trace each.
        normed: The last LayerNorm.
        pooled: Its mean over the tokens.
        logits: `[batch, classes]`.
    """

    layers: tuple[LayerTrace, ...]
    normed: Tokens
    pooled: Float[Array, "batch features"]
    logits: Float[Array, "batch classes"]


def trace(model: VisionTransformer, images: Float[Array, "batch height width channels"]) -> Trace:
    """Run a network by its own sublayers, and keep every result.

    Raises:
        ValueError: For a network with a class token: its tokens are no image.

    >>> import jax.numpy as jnp
    >>> from flax import nnx
    >>> from convattn.lab.models.settings import VisionTransformerSettings
    >>> settings = VisionTransformerSettings(depth=2, width=12, inner=6, patch_size=2, heads=2)
    >>> model = VisionTransformer(settings, classes=3, image_size=(4, 6), rngs=nnx.Rngs(0))
    >>> found = trace(model, jnp.ones((5, 4, 6, 3)))
    >>> len(found.layers), found.layers[1].inner.shape, found.logits.shape
    (2, (5, 2, 3, 6), (5, 3))
    """
    if model.settings.pooling != "mean":
        raise ValueError(
            f"pooling={model.settings.pooling!r}, but a network of two phases takes the mean of "
            "all tokens: a class token has no place in the image that is convolved"
        )
    tokens, layers = model.embedded(images), []
    for layer in model.layers:
        normed = layer.mixing_inputs(tokens)
        mixed = layer.mixing(normed)
        middle = layer.added(tokens, mixed, None)
        inner_normed = layer.normalized(layer.inner_norm, middle)
        inner = layer.inner(inner_normed)
        active = jax.nn.gelu(inner, approximate=False)
        found = layer.outer(active)
        outputs = layer.added(middle, found, None)
        layers.append(
            LayerTrace(tokens, normed, mixed, middle, inner_normed, inner, active, found, outputs)
        )
        tokens = outputs
    normed = model.norm(tokens)
    pooled = normed.mean(axis=(1, 2))
    return Trace(tuple(layers), normed, pooled, model.classifier(pooled))
