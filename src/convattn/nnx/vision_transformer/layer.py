"""One layer of a vision transformer, its norms before its sublayers.

    Y = X + drop_path(dropout(Mix(LayerNorm(X)))),
    Z = Y + drop_path(dropout(dropout(gelu(LayerNorm(Y) W_in + b_in)) W_out + b_out)),

with the exact gelu(x) = x·Φ(x). Mix is attention, or the convolution of L21's first phase.

The sums X, Y and Z are kept in at least float32, so that nothing is rounded from layer to layer but
what a sublayer adds. Norms and gelu keep their argument alone for the backward pass, and are
computed again.
"""

from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax import Array
from jax.typing import DTypeLike
from jaxtyping import Float

from convattn.nnx.layers.compute import compute_dtype, gelu, layer_norm, wide_dtype
from convattn.nnx.layers.dropout import drop_path, dropout, split_keys
from convattn.nnx.layers.linear import linear
from convattn.nnx.vision_transformer.attention_mixing import AttentionMixing
from convattn.nnx.vision_transformer.convolution_mixing import ConvolutionMixing
from convattn.nnx.vision_transformer.rotary_mixing import RotaryMixing
from convattn.nnx.vision_transformer.settings import VisionTransformerSettings

Tokens = Float[Array, "batch *grid features"]
ATTENTION, MIXED, HIDDEN, FED_FORWARD, FIRST, SECOND = range(
    6
)  # what the layer's key is folded with


class VisionTransformerLayer(nnx.Module):
    """`[batch, *grid, width]` to the same shape.

    Args:
        tokens: How many there are on each axis.
        skipped: The probability with which an image skips a sublayer.
        backend: Of attention, as `apply_attention` takes it.

    Source: L21 §2.2; Dosovitskiy et al. 2021, eqs. 2 and 3; DeiT.

    >>> settings = VisionTransformerSettings(width=8, inner=6, heads=2)
    >>> layer = VisionTransformerLayer(settings, (4, 5), rngs=nnx.Rngs(0))
    >>> layer(jnp.ones((2, 4, 5, 8))).shape
    (2, 4, 5, 8)
    """

    def __init__(
        self,
        settings: VisionTransformerSettings,
        tokens: tuple[int, ...],
        *,
        rngs: nnx.Rngs,
        dtype: DTypeLike = jnp.float32,
        skipped: float = 0.0,
        backend: str = "auto",
    ) -> None:
        self.dropout, self.skipped, self.dtype = settings.dropout, skipped, compute_dtype(dtype)
        width, hidden_width = settings.width, settings.inner
        how: dict[str, Any] = {"rngs": rngs, "dtype": self.dtype}
        attention = RotaryMixing if settings.position == "rotary" else AttentionMixing
        self.mixing: AttentionMixing | ConvolutionMixing = (
            ConvolutionMixing(settings, **how)
            if settings.mixing == "convolution"
            else attention(settings, tokens, backend=backend, **how)
        )
        self.inner = linear(width, hidden_width, normal=True, **how)
        self.outer = linear(hidden_width, width, normal=True, **how)
        self.mixing_norm, self.inner_norm = (
            layer_norm(width, settings.norm_epsilon, **how) for _ in range(2)
        )

    def __call__(
        self, tokens: Tokens, *, training: bool = False, dropout_key: Array | None = None
    ) -> Tokens:
        """Z of X in at least float32; nothing is drawn but in training, and with a key."""
        keys = split_keys(dropout_key, 6, training)
        mixed = self.mixing(self.mixing_inputs(tokens), keys[ATTENTION])
        tokens = self.residual_add(tokens, dropout(mixed, self.dropout, keys[MIXED]), keys[FIRST])
        fed_forward = self.feed_forward(self.normalized(self.inner_norm, tokens), keys[HIDDEN])
        return self.residual_add(
            tokens, dropout(fed_forward, self.dropout, keys[FED_FORWARD]), keys[SECOND]
        )

    def mixing_inputs(self, tokens: Tokens) -> Tokens:
        """LayerNorm(X), the tokens that are mixed."""
        return self.normalized(self.mixing_norm, tokens)

    def normalized(self, norm: nnx.LayerNorm, tokens: Tokens) -> Tokens:
        """LayerNorm in at least float32, rounded once."""
        return jax.checkpoint(norm)(tokens).astype(self.dtype)

    def feed_forward(self, tokens: Tokens, key: Array | None) -> Tokens:
        """The feed-forward part."""

        def rest(hidden: Tokens) -> Tokens:
            return self.outer(dropout(gelu(hidden), self.dropout, key))

        return jax.checkpoint(rest)(self.inner(tokens))

    def residual_add(self, tokens: Tokens, more: Tokens, key: Array | None) -> Tokens:
        """X + drop_path(more), in at least float32."""
        return tokens + drop_path(more.astype(wide_dtype(self.dtype)), self.skipped, key)
