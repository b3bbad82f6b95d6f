"""Whether two images show the same class, by cross attention (B19 §6.1).

Both images pass one stem. Then, layer after layer, they stand side by side, every patch of either
attends to the patches of both, and what comes out is added to what went in; between them lie as
many columns of zeros as keep the filters from mixing them, masked as keys. Or, for comparison, each
image passes the same layers by itself. The cosine of the two mean features says how alike they are:

    logits = (0, a·cos - b).

**From the paper:** the images side by side, the segments, that a network of MSAC analyses both.
**Not from the paper:** the stem, the gap, the cosine of the means, and all that is trained.
"""

from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax import Array
from jax.typing import DTypeLike
from jaxtyping import Float

from convattn.nnx.layers.compute import batch_norm, compute_dtype, wide_dtype
from convattn.nnx.layers.images import read_images, token_grid
from convattn.operators.integers import as_integer
from convattn.sac.cross_attention import seam_reach
from convattn.sac.modules import CrossAttentiveFeatures, MultiscaleSelfAttentiveConvolution
from convattn.sac.similarity import cosine_similarity
from convattn_lab.models.resnet import NormalizedConvolution
from image_similarity.settings import SimilaritySettings

Patches = Float[Array, "batch height width channels"]
STEM_STRIDE = 4
FIRST_SHARPNESS = 4.0


class SimilarityLayer(nnx.Module):
    """X + relu(BatchNorm(MSAC(X))) of both images, together or each by itself.

    Args:
        size: (height, width) of an image in patches.
        first: Whether the segments belong to this layer.
    """

    def __init__(
        self,
        settings: SimilaritySettings,
        size: tuple[int, int],
        *,
        first: bool,
        rngs: nnx.Rngs,
        dtype: DTypeLike,
    ) -> None:
        channels, cross = settings.channels, settings.attention == "cross"
        segments = settings.segments if first else "none"
        extra = settings.segment_features if segments == "concatenate" else 0
        gap = max(settings.scales) // 2 if settings.gap is None else settings.gap
        operator = MultiscaleSelfAttentiveConvolution(
            channels + extra,
            channels,
            settings.scales,
            heads=settings.heads,
            key_features=settings.key_features,
            image_size=(size[0], 2 * size[1] + gap if cross else size[1]),
            rngs=rngs,
        )
        shapes = {"add": (channels,), "concatenate": (extra,), "none": None}
        self.operator: CrossAttentiveFeatures | MultiscaleSelfAttentiveConvolution = operator
        if cross:
            self.operator = CrossAttentiveFeatures(
                operator,
                segment_shape=shapes[segments],
                how="add" if segments == "none" else segments,
                gap=seam_reach(operator.parameters) if settings.gap is None else settings.gap,
                rngs=rngs,
            )
        self.norm = batch_norm(channels, rngs=rngs, dtype=dtype)

    def __call__(self, both: Patches, training: bool) -> Patches:
        """Both images, the first ones of all pairs before the second ones, to the same."""
        if isinstance(self.operator, CrossAttentiveFeatures):
            outputs = jnp.concatenate(self.operator(*jnp.split(both, 2)))
        else:
            outputs = self.operator(both)
        outputs = self.norm(outputs, use_running_average=not training).astype(both.dtype)
        return both + jax.nn.relu(outputs)


class SimilarityNetwork(nnx.Module):
    """Pairs of images side by side to the scores of "different" and "same".

    Args:
        classes: 2, as every model is told how many.
        image_size: (height, width) of a pair; 8 divides the width, 4 the height.
        dtype: In which it computes; the operators, norms and logits in at least float32.

    Raises:
        ValueError: For sizes that do not fit.

    Source: B19 §6.1.

    >>> settings = SimilaritySettings(channels=4, depth=1, key_features=2)
    >>> model = SimilarityNetwork(settings, image_size=(8, 16), rngs=nnx.Rngs(0))
    >>> model(jnp.ones((3, 8, 16, 3))).shape
    (3, 2)
    """

    def __init__(
        self,
        settings: SimilaritySettings,
        *,
        classes: int = 2,
        image_size: tuple[int, int],
        rngs: nnx.Rngs,
        dtype: DTypeLike = jnp.float32,
        channels: int = 3,
    ) -> None:
        if classes != 2:
            raise ValueError(f"classes={classes}, but expected 2: different, same")
        self.channels = as_integer(channels, "channels", 1)
        token_grid(image_size, 1)
        height, width = image_size
        if width % 2:
            raise ValueError(
                f"image_size={image_size}, but expected an even width: two images side by side"
            )
        size = token_grid((height, width // 2), STEM_STRIDE)
        self.settings, self.dtype = settings, compute_dtype(dtype)
        how: dict[str, Any] = {"rngs": rngs, "dtype": self.dtype}
        outputs = settings.channels
        self.stem = nnx.List(
            [
                NormalizedConvolution(channels, outputs // 2, 3, 2, **how),
                NormalizedConvolution(outputs // 2, outputs, 3, 2, **how),
            ]
        )
        self.layers = nnx.List(
            SimilarityLayer(settings, size, first=not number, **how)
            for number in range(settings.depth)
        )
        self.last = NormalizedConvolution(outputs, outputs, 1, 1, **how)
        self.sharpness = nnx.Param(jnp.full((), FIRST_SHARPNESS, jnp.float32))
        self.bias = nnx.Param(jnp.zeros((), jnp.float32))

    def __call__(
        self,
        images: Patches,
        *,
        training: bool = False,
        dropout_key: Array | None = None,
    ) -> Float[Array, "batch 2"]:
        """Logits of "different" and "same", in at least float32.

        Args:
            images: `[batch, height, 2·width, channels]`, x on the left and z on the right.
            training: Normalise by the batch, and gather its statistics.
            dropout_key: Taken, as by every model, and unused: nothing is dropped here.

        Raises:
            ValueError: For images that the model does not take.
        """
        first, second = self.features(images, training=training)
        cosine = cosine_similarity(first, second).astype(wide_dtype(self.dtype))
        same = self.sharpness[...] * cosine - self.bias[...]
        return jnp.stack([jnp.zeros_like(same), same], axis=-1)

    def features(self, images: Patches, *, training: bool = False) -> tuple[Patches, Patches]:
        """The features of x and z whose means are compared, `[batch, rows, columns, channels]`."""
        images = read_images(images, self.channels)
        if images.shape[2] % 2:
            raise ValueError(
                f"images.shape={images.shape}, but expected an even width: two images side by side"
            )
        features = jnp.concatenate(jnp.split(images, 2, axis=2)).astype(self.dtype)
        for convolution in self.stem:
            features = jax.nn.relu(convolution(features, training))
        for layer in self.layers:
            features = layer(features, training)
        first, second = jnp.split(self.last(features, training), 2)
        return first, second
