"""The self-attention model of C20: down-sampling, layers of attention, a mean, a classifier."""

import jax.numpy as jnp
from flax import nnx
from jax import Array
from jax.typing import DTypeLike
from jaxtyping import Float

from convattn.encodings.layer import AttentionLayer
from convattn.nnx.layers.compute import compute_dtype, wide_dtype
from convattn.nnx.layers.dropout import split_keys
from convattn.nnx.layers.images import read_images, token_grid
from convattn.nnx.layers.linear import linear
from convattn.operators.integers import as_integer
from convattn.operators.patches import patchify
from convattn_lab.models.encoder_layer import EncoderLayer
from convattn_lab.models.settings import EncoderSettings


class Encoder(nnx.Module):
    """Images to the scores of their classes.

    s × s invertible down-sampling, a linear map of s²·channels to `width` features, the layers, the
    mean of all tokens, and a linear classifier.

    Args:
        classes, channels: Of the images.
        image_size: (height, width) at most; the learned tables are as large as it needs.
        dtype: In which it computes: bfloat16, float16, float32 or float64. Parameters are float32;
            norms, softmax and logits at least float32.
        backend: As `apply_attention` takes it.
        fold: See `EncoderLayer`.

    Raises:
        ValueError: For sizes that do not fit.

    Source: C20 §4.1, appendix B.

    >>> settings = EncoderSettings(heads=(3, 2), width=8, inner=6)
    >>> model = Encoder(settings, classes=10, image_size=(8, 8), rngs=nnx.Rngs(0))
    >>> model(jnp.ones((2, 8, 8, 3))).shape
    (2, 10)
    """

    def __init__(
        self,
        settings: EncoderSettings,
        *,
        classes: int,
        image_size: tuple[int, int],
        rngs: nnx.Rngs,
        dtype: DTypeLike = jnp.float32,
        channels: int = 3,
        backend: str = "auto",
        fold: bool | None = None,
    ) -> None:
        classes = as_integer(classes, "classes", 1)
        channels = self.channels = as_integer(channels, "channels", 1)
        self.settings, self.dtype = settings, compute_dtype(dtype)
        tokens = token_grid(image_size, settings.downsampling)
        features = settings.downsampling**2 * channels
        self.embedding = linear(features, settings.width, rngs=rngs, dtype=self.dtype)
        self.layers = nnx.List(
            EncoderLayer(
                settings, heads, tokens, rngs=rngs, dtype=dtype, backend=backend, fold=fold
            )
            for heads in settings.heads
        )
        self.classifier = linear(settings.width, classes, rngs=rngs, dtype=wide_dtype(dtype))

    def __call__(
        self,
        images: Float[Array, "batch height width channels"],
        *,
        training: bool = False,
        dropout_key: Array | None = None,
    ) -> Float[Array, "batch classes"]:
        """Logits, in at least float32.

        Args:
            images: Floats, normalised.
            training, dropout_key: Dropout takes place only if `training` is set, and draws from the
                key alone.

        Raises:
            ValueError: For images that the model does not take.
        """
        images = read_images(images, self.channels)
        tokens = self.embedding(patchify(images, self.settings.downsampling).astype(self.dtype))
        keys = split_keys(dropout_key, len(self.layers), training)
        for layer, key in zip(self.layers, keys, strict=True):
            tokens = layer(tokens, training=training, dropout_key=key)
        wide = wide_dtype(self.dtype)
        return self.classifier(tokens.astype(wide).mean(axis=(1, 2)))

    def attention_layers(self) -> tuple[AttentionLayer, ...]:
        """The attention of each layer, without the dense map that follows it."""
        return tuple(layer.attention.layer() for layer in self.layers)
