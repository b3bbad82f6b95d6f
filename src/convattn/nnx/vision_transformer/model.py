"""Vision transformers: L21's networks of both phases, and the ViT and DeiT beside them."""

from typing import Any

import jax.numpy as jnp
from flax import nnx
from jax import Array
from jax.typing import DTypeLike
from jaxtyping import Float

from convattn.encodings.layer import AttentionLayer
from convattn.nnx.layers.compute import compute_dtype, layer_norm, wide_dtype
from convattn.nnx.layers.dropout import depth_rates, dropout, split_keys
from convattn.nnx.layers.images import read_images, token_grid
from convattn.nnx.layers.linear import Linear, linear, normal_parameter
from convattn.nnx.vision_transformer.attention_mixing import AttentionMixing
from convattn.nnx.vision_transformer.layer import VisionTransformerLayer
from convattn.nnx.vision_transformer.settings import VisionTransformerSettings
from convattn.operators.integers import as_integer
from convattn.operators.patches import patchify


class VisionTransformer(nnx.Module):
    """Images to the scores of their classes.

    Patches of P × P pixels become tokens, as they are or through a learned projection; the layers;
    a last LayerNorm; the mean of all tokens, or the class token; and a linear classifier.

    Args:
        classes, channels: Of the images.
        image_size: (height, width) of every image; P divides both.
        dtype: In which it computes: bfloat16, float16, float32 or float64. Parameters are float32;
            norms, softmax, the sums from layer to layer and logits at least float32.
        backend: Of attention, as `apply_attention` takes it.

    Raises:
        ValueError: For sizes that do not fit.

    Source: L21 §2.2 and §4.1; Dosovitskiy et al. 2021; Touvron et al. 2021.

    >>> settings = VisionTransformerSettings(depth=2, width=12, inner=6, patch_size=2)
    >>> model = VisionTransformer(settings, classes=10, image_size=(8, 6), rngs=nnx.Rngs(0))
    >>> model(jnp.ones((2, 8, 6, 3))).shape
    (2, 10)
    """

    def __init__(
        self,
        settings: VisionTransformerSettings,
        *,
        classes: int,
        image_size: tuple[int, int],
        rngs: nnx.Rngs,
        dtype: DTypeLike = jnp.float32,
        channels: int = 3,
        backend: str = "auto",
    ) -> None:
        self.classes = as_integer(classes, "classes", 1)
        self.channels = as_integer(channels, "channels", 1)
        self.settings, self.dtype, self.backend = settings, compute_dtype(dtype), backend
        self.tokens = token_grid(image_size, settings.patch_size, name="patch_size")
        self.image_size: tuple[int, int] = (
            self.tokens[0] * settings.patch_size,
            self.tokens[1] * settings.patch_size,
        )
        width, count = settings.width, self.tokens[0] * self.tokens[1]
        features = settings.patch_size**2 * channels
        how: dict[str, Any] = {"rngs": rngs, "dtype": self.dtype}
        if settings.projection == "identity" and features != width:
            raise ValueError(
                f"width={width} with projection='identity', but patches of {settings.patch_size} × "
                f"{settings.patch_size} pixels and {channels} channels have {features} features; "
                "take that width, or projection='learned'"
            )
        learned = settings.projection == "learned"
        self.projection: Linear | None = linear(features, width, **how) if learned else None
        is_class = settings.pooling == "class"
        self.class_token = normal_parameter(rngs, width) if is_class else None
        absolute = settings.position == "absolute"
        self.positions = normal_parameter(rngs, count + is_class, width) if absolute else None
        shape = (count + 1,) if is_class else self.tokens
        rates = depth_rates(settings.stochastic_depth, settings.depth)
        self.layers = nnx.List(
            VisionTransformerLayer(settings, shape, skipped=rate, backend=backend, **how)
            for rate in rates
        )
        self.norm = layer_norm(width, settings.norm_epsilon, **how)
        self.classifier = linear(width, classes, rngs=rngs, dtype=wide_dtype(dtype), normal=True)

    def __call__(
        self,
        images: Float[Array, "batch height width channels"],
        *,
        training: bool = False,
        dropout_key: Array | None = None,
    ) -> Float[Array, "batch classes"]:
        """Logits, in at least float32.

        Args:
            images: Floats, normalised, of the size that the model is made for.
            training, dropout_key: Dropout and stochastic depth take place only if `training` is
                set, and draw from the key alone.

        Raises:
            ValueError: For images that the model does not take.
        """
        keys = split_keys(dropout_key, len(self.layers) + 1, training)
        tokens = dropout(self.embedded(images), self.settings.dropout, keys[-1])
        for layer, key in zip(self.layers, keys[:-1], strict=True):
            tokens = layer(tokens, training=training, dropout_key=key)
        return self.classified(tokens)

    def embedded(
        self, images: Float[Array, "batch height width channels"]
    ) -> Float[Array, "batch *grid features"]:
        """The tokens that the first layer is given, in at least float32.

        Raises:
            ValueError: For images that the model does not take.
        """
        images = read_images(images, self.channels)
        if images.shape[1:3] != self.image_size:
            raise ValueError(
                f"images.shape={images.shape}, but the model is made for images of "
                f"{self.image_size[0]} × {self.image_size[1]} pixels; resize them, or make the "
                "model for theirs"
            )
        tokens, wide = patchify(images, self.settings.patch_size), wide_dtype(self.dtype)
        if self.projection is not None:
            tokens = self.projection(tokens.astype(self.dtype))
        tokens = tokens.astype(wide)
        if self.class_token is not None:
            flat = tokens.reshape(len(tokens), -1, tokens.shape[-1])
            own = jnp.broadcast_to(
                self.class_token[...].astype(wide), (len(flat), 1, flat.shape[2])
            )
            tokens = jnp.concatenate([own, flat], axis=1)
        if self.positions is not None:
            tokens = tokens + self.positions[...].astype(wide).reshape(1, *tokens.shape[1:])
        return tokens

    def classified(
        self, tokens: Float[Array, "batch *grid features"]
    ) -> Float[Array, "batch classes"]:
        """Logits of the tokens that the last layer gives."""
        if self.class_token is not None:
            return self.classifier(self.norm(tokens[:, 0]))
        return self.classifier(self.norm(tokens).mean(axis=(1, 2)))

    def attention_layers(self) -> tuple[AttentionLayer, ...]:
        """The attention of each layer; none in the convolution phase."""
        mixings = (layer.mixing for layer in self.layers)
        return tuple(mixing.layer() for mixing in mixings if isinstance(mixing, AttentionMixing))
