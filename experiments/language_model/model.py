"""A causal language model of bytes: layers of 1-D MSAC (B19 §5).

    X ← X + drop(mix(LayerNorm(X))),      X ← X + drop(FFN(LayerNorm(X))),

logits from LayerNorm of the last X. `mix` is a causal MSAC of filter widths 1, 2, 3, …: every
m-gram of the past attends to every m-gram of the past. There is no embedding of positions: which
position is meant, only the even bias b_|i-j|, the causal mask and the order of the taps say.

**From the paper:** the operator in place of a Transformer's self-attention, with filters 1 × m.
**Not from the paper:** causality (it speaks of whole sentences), pre-normalisation, the exact gelu.
"""

from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax import Array
from jax.typing import DTypeLike
from jaxtyping import Float, Int

from convattn.nnx.layers.compute import (
    compute_dtype,
    gelu,
    layer_norm,
    product_precision,
    wide_dtype,
)
from convattn.nnx.layers.dropout import dropout, split_keys
from convattn.nnx.layers.linear import linear, uniform_within
from convattn.operators.integers import as_integer
from convattn.sac.filters import convolve
from convattn.sac.modules import MultiscaleSelfAttentiveConvolution
from language_model.settings import LanguageModelSettings

Features = Float[Array, "batch length features"]


class MultiscaleCausalConvolution(nnx.Module):
    """Causal convolutions of several widths, joined by a 1 × 1 convolution: MSAC without attention.

    >>> layer = MultiscaleCausalConvolution(3, (1, 2), rngs=nnx.Rngs(0))
    >>> layer(jnp.ones((1, 9, 3))).shape
    (1, 9, 3)
    """

    def __init__(self, features: int, widths: tuple[int, ...], *, rngs: nnx.Rngs) -> None:
        self.kernels = nnx.List(
            [
                nnx.Param(
                    uniform_within(width * features)(rngs.params(), (width, features, features))
                )
                for width in widths
            ]
        )
        joined = len(widths) * features
        self.merge = nnx.Param(uniform_within(joined)(rngs.params(), (joined, features)))

    def __call__(self, tokens: Features) -> Features:
        """Position i from positions ≤ i; in at least float32."""
        wide = tokens.astype(wide_dtype(tokens.dtype))
        scales = [
            convolve(wide, kernel[...], stride=(1,), dilation=(1,), causal=True)
            for kernel in self.kernels
        ]
        joined = jnp.concatenate(scales, axis=-1)
        return jnp.matmul(joined, self.merge[...], precision=product_precision(joined.dtype))


class LanguageModelLayer(nnx.Module):
    """One layer: what mixes positions, and the feed-forward part."""

    def __init__(
        self,
        settings: LanguageModelSettings,
        *,
        length: int,
        rngs: nnx.Rngs,
        dtype: DTypeLike,
    ) -> None:
        self.settings, self.dtype = settings, compute_dtype(dtype)
        width = settings.width
        self.mixing: MultiscaleCausalConvolution | MultiscaleSelfAttentiveConvolution
        if settings.operator == "convolution":
            self.mixing = MultiscaleCausalConvolution(width, settings.scales, rngs=rngs)
        else:
            self.mixing = MultiscaleSelfAttentiveConvolution(
                width,
                width,
                [(scale,) for scale in settings.scales],
                heads=settings.heads,
                key_features=settings.key_features,
                image_size=(length,),
                causal=True,
                rngs=rngs,
            )
        how: dict[str, Any] = {"rngs": rngs, "dtype": self.dtype}
        self.inner = linear(width, settings.inner, **how)
        self.outer = linear(settings.inner, width, **how)
        self.mixing_norm, self.inner_norm = (
            layer_norm(width, settings.norm_epsilon, **how) for _ in range(2)
        )

    def __call__(
        self, tokens: Features, *, training: bool = False, dropout_key: Array | None = None
    ) -> Features:
        """The tokens and what both parts add to them."""
        keys = split_keys(dropout_key, 2, training)
        normed = self.mixing_norm(tokens).astype(self.dtype)
        mixed = self.mixing(normed).astype(self.dtype)
        tokens = tokens + dropout(mixed, self.settings.dropout, keys[0])
        hidden = gelu(self.inner(self.inner_norm(tokens).astype(self.dtype)))
        return tokens + dropout(self.outer(hidden), self.settings.dropout, keys[1])


class LanguageModel(nnx.Module):
    """Sequences of symbols to the scores of the symbol after each.

    Args:
        classes: How many symbols there are, 256 for bytes.
        length: Of the bias tables; the sequences may be longer, and have bias 0 beyond.
        dtype: In which it computes; the mixing, norms and logits in at least float32.

    Raises:
        ValueError: For sizes below one.

    Source: B19 §5.

    >>> settings = LanguageModelSettings(scales=(1, 2), width=8, depth=1, key_features=4, inner=8)
    >>> model = LanguageModel(settings, classes=256, length=9, rngs=nnx.Rngs(0))
    >>> model(jnp.zeros((2, 9), jnp.int32)).shape
    (2, 9, 256)
    """

    def __init__(
        self,
        settings: LanguageModelSettings,
        *,
        classes: int = 256,
        length: int,
        rngs: nnx.Rngs,
        dtype: DTypeLike = jnp.float32,
    ) -> None:
        self.classes, length = as_integer(classes, "classes", 1), as_integer(length, "length", 1)
        self.settings, self.dtype = settings, compute_dtype(dtype)
        embedding = jax.random.normal(rngs.params(), (self.classes, settings.width), jnp.float32)
        self.embedding = nnx.Param(embedding)
        self.layers = nnx.List(
            LanguageModelLayer(settings, length=length, rngs=rngs, dtype=dtype)
            for _ in range(settings.depth)
        )
        self.norm = layer_norm(settings.width, settings.norm_epsilon, rngs=rngs, dtype=dtype)
        self.classifier = linear(settings.width, self.classes, rngs=rngs, dtype=wide_dtype(dtype))

    def __call__(
        self,
        symbols: Int[Array, "batch length"],
        *,
        training: bool = False,
        dropout_key: Array | None = None,
    ) -> Float[Array, "batch length classes"]:
        """Logits, in at least float32: those at position i depend on positions ≤ i alone.

        Args:
            symbols: Integers from 0 to classes - 1; their values are not checked, as they may be
                traced.
            training, dropout_key: Dropout takes place only if `training` is set, and draws from the
                key alone.

        Raises:
            ValueError: For what is not integers of the shape [batch, length].
        """
        symbols = jnp.asarray(symbols)
        if symbols.ndim != 2 or not jnp.issubdtype(symbols.dtype, jnp.integer):
            raise ValueError(
                f"symbols are {symbols.dtype}{list(symbols.shape)}, but expected integers of the "
                "shape [batch, length]; add the batch axis of a single sequence with symbols[None]"
            )
        tokens = self.embedding[...][symbols].astype(self.dtype)
        keys = split_keys(dropout_key, len(self.layers), training)
        for layer, key in zip(self.layers, keys, strict=True):
            tokens = layer(tokens, training=training, dropout_key=key)
        return self.classifier(self.norm(tokens))
