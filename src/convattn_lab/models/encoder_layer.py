"""One layer of C20's encoder: attention, then a feed-forward part, each added and normalised.

    Y = LayerNorm(X + drop(Attention(X) D + d)),
    Z = LayerNorm(Y + drop(gelu(Y W_in + b_in) W_out + b_out)),

with the exact gelu(x) = x·Φ(x): a layer of BERT.

*Folding.* Attention ends with the value maps W_h and the dense map D follows with nothing between
them, so that heads·d³ products make maps W_h D of them, in place of d² for each token. The backward
pass takes twice either. So that is done where there are more tokens in the batch than heads·d.

*Memory.* Norms and gelu keep their argument alone for the backward pass, and are computed again.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax import Array
from jax.typing import DTypeLike
from jaxtyping import Float

from convattn.fast.application import apply_attention
from convattn.nnx.layers.compute import (
    compute_dtype,
    gelu,
    layer_norm,
    product_precision,
    wide_dtype,
)
from convattn.nnx.layers.dropout import dropout, split_keys
from convattn.nnx.layers.linear import linear
from convattn_lab.models.positional_attention import PositionalAttention
from convattn_lab.models.settings import EncoderSettings

Tokens = Float[Array, "batch rows columns features"]


class EncoderLayer(nnx.Module):
    """`[batch, rows, columns, width]` to the same shape.

    Args:
        heads: Of this layer; without heads attention is its bias.
        tokens: How many rows and columns of tokens there are at most.
        backend: As `apply_attention` takes it.
        fold: Fold the dense map into the value maps; None decides by the number of tokens.

    Source: C20 §4.1 and appendix B; Devlin et al. 2018.

    >>> settings = EncoderSettings(heads=(3,), width=8, inner=6)
    >>> layer = EncoderLayer(settings, 3, (4, 5), rngs=nnx.Rngs(0))
    >>> layer(jnp.ones((2, 4, 5, 8))).shape
    (2, 4, 5, 8)
    """

    def __init__(
        self,
        settings: EncoderSettings,
        heads: int,
        tokens: tuple[int, int],
        *,
        rngs: nnx.Rngs,
        dtype: DTypeLike = jnp.float32,
        backend: str = "auto",
        fold: bool | None = None,
    ) -> None:
        self.settings, self.dtype = settings, compute_dtype(dtype)
        self.backend, self.fold = backend, fold
        self.precision = product_precision(dtype)
        width, hidden = settings.width, settings.inner
        how: dict[str, Any] = {"rngs": rngs, "dtype": self.dtype}
        self.attention = PositionalAttention(settings, heads, tokens, rngs=rngs, dtype=dtype)
        self.dense = linear(width, width, **how)
        self.inner, self.outer = linear(width, hidden, **how), linear(hidden, width, **how)
        self.attention_norm, self.outer_norm = (
            layer_norm(width, settings.norm_epsilon, **how) for _ in range(2)
        )

    def __call__(
        self, tokens: Tokens, *, training: bool = False, dropout_key: Array | None = None
    ) -> Tokens:
        """Z of X; dropout only in training, and only with a key."""
        keys = split_keys(dropout_key, 3, training)
        attended = dropout(self.attend(tokens, keys[0]), self.settings.dropout, keys[1])
        tokens = self.add_and_norm(self.attention_norm, tokens, attended)
        hidden = self.recomputed(self.activated)(self.inner(tokens))
        return self.add_and_norm(
            self.outer_norm, tokens, dropout(hidden, self.settings.dropout, keys[2])
        )

    def attend(self, tokens: Tokens, key: Array | None) -> Tokens:
        """Attention and the dense map that follows."""
        if not self.attention.heads:
            bias = self.dense(self.attention.bias[...].astype(self.dtype))
            wide = bias.astype(wide_dtype(self.dtype))  # so that its gradient's sum is wide, too
            return jnp.broadcast_to(wide, tokens.shape).astype(self.dtype)
        folded = self.fold
        if folded is None:
            count = tokens.shape[0] * tokens.shape[1] * tokens.shape[2]
            folded = _folds(count, self.attention.heads, self.settings.width)
        attended = apply_attention(
            self.attention.layer(self.dense if folded else None),
            tokens,
            backend=self.backend,
            precision=self.precision,
            dropout_rate=0.0 if key is None else self.settings.attention_dropout,
            dropout_key=key,
        )
        return attended if folded else self.dense(attended)

    def recomputed(self, function: Callable[..., Array]) -> Callable[..., Array]:
        """The same function, of which the backward pass keeps the argument alone."""
        return jax.checkpoint(function)

    def activated(self, hidden: Tokens) -> Tokens:
        """The second half of the feed-forward part."""
        return self.outer(gelu(hidden))

    def add_and_norm(self, norm: nnx.LayerNorm, tokens: Tokens, more: Tokens) -> Tokens:
        """LayerNorm(X + more), in at least float32."""
        wide = wide_dtype(self.dtype)
        return self.recomputed(norm)(tokens.astype(wide) + more.astype(wide)).astype(self.dtype)


def _folds(tokens: int, heads: int, width: int) -> bool:
    """Whether heads·d³ products are fewer than tokens·d².

    >>> _folds(20 * 256, 9, 400), _folds(256, 9, 400)
    (True, False)
    """
    return heads * width < tokens
