"""Tokens mixed by multi-head attention with rotary positions (RoPE), on a grid.

    SA_h(X) = softmax(Q̃_h K̃_hᵀ/√d_H) V_h,      Layer(X) = Σ_h SA_h(X) W^O_h + b,

with Q_h, K_h and V_h of `AttentionMixing`. Q̃ and K̃ are Q and K with the pair of coordinates 2j and
2j + 1 of the token at p turned by the angle ω_j·p, so that scores depend on the shift of two tokens
beside what they hold.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from convattn.encodings.layer import AttentionLayer
from convattn.encodings.rotary import axial_turns
from convattn.fast.products import product
from convattn.nnx.layers.compute import wide_dtype, with_bias
from convattn.nnx.vision_transformer.attention_mixing import AttentionMixing
from convattn.nnx.vision_transformer.settings import VisionTransformerSettings


class RotaryMixing(AttentionMixing):
    """`[batch, rows, columns, width]` to the same shape, by all weights at once.

    Its parameters are those of `AttentionMixing` without relative positions.

    Source: Su et al. 2021 (RoFormer, arXiv:2104.09864), eq. 16; Heo et al. 2024
    (arXiv:2403.13298), axial frequencies.

    >>> from flax import nnx
    >>> settings = VisionTransformerSettings(width=8, heads=2, head_width=4, position="rotary")
    >>> mixing = RotaryMixing(settings, (4, 5), rngs=nnx.Rngs(0))
    >>> mixing(jnp.ones((2, 4, 5, 8))).shape
    (2, 4, 5, 8)
    """

    def __init__(
        self, settings: VisionTransformerSettings, tokens: tuple[int, ...], **how: Any
    ) -> None:
        super().__init__(settings, tokens, **how)
        self.base = settings.rotary_base

    def layer(self) -> AttentionLayer:
        """None: an `AttentionLayer` does not turn queries and keys.

        Raises:
            ValueError: Always.
        """
        raise ValueError(
            "position='rotary', but expected 'relative' or 'absolute': an AttentionLayer does not "
            "turn queries and keys; take the model's state dict (convattn.nnx.state_dict)"
        )

    def __call__(
        self, tokens: Float[Array, "batch rows columns features"], dropout_key: Array | None = None
    ) -> Float[Array, "batch rows columns features"]:
        """Layer(X); no weights are dropped."""
        wide, precision = wide_dtype(self.dtype), self.precision
        flat = tokens.reshape(len(tokens), -1, tokens.shape[-1]).astype(self.dtype)

        def features(weight: Any, bias: Any) -> Float[Array, "batch heads tokens features"]:
            cast_weight = weight[...].astype(self.dtype)
            projected = product("btf,hfe->bhte", flat, cast_weight, dtype=wide, precision=precision)
            return projected + bias[...].astype(wide)[None, :, None]

        positions = np.argwhere(np.ones(self.grid.queries))
        turns = axial_turns(self.query.shape[-1] // 4, 2, base=self.base)
        waves = np.exp(2j * np.pi * positions @ turns.T)
        query = turned(features(self.query, self.query_bias), waves)
        key = turned(features(self.key, self.key_bias), waves)
        value = features(self.value, self.value_bias)
        scores = product("bhqe,bhke->bhqk", query, key, dtype=wide, precision=precision)
        weights = jax.nn.softmax(scores / math.sqrt(query.shape[-1]), axis=-1)
        attended = product("bhqk,bhke->bhqe", weights, value, dtype=wide, precision=precision)
        output = self.output[...].astype(self.dtype)
        mixed = product("bhqe,heo->bqo", attended, output, dtype=wide, precision=precision)
        return (
            with_bias(mixed, self.bias[...].astype(wide)).astype(self.dtype).reshape(tokens.shape)
        )


def turned(
    features: Float[Array, "batch heads tokens features"], waves: np.ndarray
) -> Float[Array, "batch heads tokens features"]:
    """Pairs 2j and 2j + 1 as complex numbers, times those of their token.

    >>> turned(jnp.array([[[[1.0, 0.0]]]]), np.array([[1j]])).ravel().tolist()
    [0.0, 1.0]
    """
    cosine, sine = (
        jnp.asarray(part[None, None], features.dtype) for part in (waves.real, waves.imag)
    )
    first, second = features[..., ::2], features[..., 1::2]
    pairs = jnp.stack([first * cosine - second * sine, first * sine + second * cosine], axis=-1)
    return pairs.reshape(features.shape)
