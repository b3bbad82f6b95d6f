"""Tokens mixed by multi-head attention, as in ViT and in L21's self-attention phase.

    SA_h(X) = softmax(Q_h K_hᵀ/√d_H + B_h) V_h,      Layer(X) = Σ_h SA_h(X) W^O_h + b,

with Q_h = X W^Q_h + a_h, K_h = X W^K_h + c_h and V_h = X W^V_h + v_h. B_h holds one number for each
shift of the grid; with absolute positions it is zero. The rows of softmax sum to one, so that all
v_h together add Σ_h v_h W^O_h to every token, and are part of the layer's bias. (So dropout of
attention weights, which DeiT does not use, leaves them alone.)
"""

import jax.numpy as jnp
from flax import nnx
from jax import Array
from jax.typing import DTypeLike
from jaxtyping import Float

from convattn.encodings.bias import BiasEncoding
from convattn.encodings.layer import AttentionLayer, ContentScores
from convattn.fast.application import apply_attention
from convattn.fast.products import product
from convattn.nnx.layers.compute import compute_dtype, product_precision, wide_dtype
from convattn.nnx.layers.linear import normal_parameter, zero_parameter
from convattn.nnx.vision_transformer.settings import VisionTransformerSettings
from convattn.operators.patches import check_ring
from convattn.operators.shifts import TokenGrid


class AttentionMixing(nnx.Module):
    """`[batch, *grid, width]` to the same shape.

    Its parameters are `query`, `key` and `value` `[heads, width, key_width]`, their biases
    `query_bias`, `key_bias` and `value_bias` `[heads, key_width]`, `output`
    `[heads, key_width, width]` and `bias` `[width]`; with relative positions also `position_bias`
    `[heads, shifts]`, in the order of `TokenGrid.shifts`, the ring included.

    Args:
        tokens: How many there are on each axis: rows and columns, or the length of a sequence.
        backend: As `apply_attention` takes it.

    Source: L21 eqs. 2 to 4; Dosovitskiy et al. 2021, appendix A.

    >>> settings = VisionTransformerSettings(width=8, heads=3, ring=1)
    >>> mixing = AttentionMixing(settings, (4, 5), rngs=nnx.Rngs(0))
    >>> mixing(jnp.ones((2, 4, 5, 8))).shape, mixing.position_bias.shape
    ((2, 4, 5, 8), (3, 99))
    """

    def __init__(
        self,
        settings: VisionTransformerSettings,
        tokens: tuple[int, ...],
        *,
        rngs: nnx.Rngs,
        dtype: DTypeLike = jnp.float32,
        backend: str = "auto",
    ) -> None:
        self.dtype, self.backend = compute_dtype(dtype), backend
        self.precision = product_precision(dtype)
        self.attention_dropout = settings.attention_dropout
        self.grid = TokenGrid(tokens, check_ring(settings.ring, len(tokens)))
        heads, width, head_width = settings.heads, settings.width, settings.key_width
        self.query = normal_parameter(rngs, heads, width, head_width)
        self.key = normal_parameter(rngs, heads, width, head_width)
        self.value = normal_parameter(rngs, heads, width, head_width)
        self.output = normal_parameter(rngs, heads, head_width, width)
        self.query_bias, self.key_bias = (
            zero_parameter(heads, head_width),
            zero_parameter(heads, head_width),
        )
        self.value_bias, self.bias = zero_parameter(heads, head_width), zero_parameter(width)
        relative = settings.position == "relative"
        self.position_bias = zero_parameter(heads, len(self.grid.shifts)) if relative else None

    def layer(self) -> AttentionLayer:
        """This attention for `apply_attention`."""
        wide = wide_dtype(self.dtype)
        output = self.output[...].astype(self.dtype)
        shared = product(
            "he,heo->o",
            self.value_bias[...].astype(self.dtype),
            output,
            dtype=wide,
            precision=self.precision,
        )
        axes = len(self.grid.queries)
        return AttentionLayer(
            encoding=self.encoding(),
            value=self.value[...].astype(self.dtype),
            output=output,
            bias=(shared + self.bias[...].astype(wide)).astype(self.dtype),
            content=ContentScores(
                *(parameter[...].astype(wide) for parameter in (self.query, self.key)),
                *(parameter[...].astype(wide) for parameter in (self.query_bias, self.key_bias)),
            ),
            patch_size=(1,) * axes,
            stride=(1,) * axes,
            dilation=(1,) * axes,
            ring=self.grid.ring,
        )

    def encoding(self) -> BiasEncoding:
        """B_h: the table of all shifts, or zeros."""
        wide = wide_dtype(self.dtype)
        if self.position_bias is None:
            nowhere = (0,) * len(self.grid.queries)
            return BiasEncoding(jnp.zeros((self.query.shape[0], 1), wide), None, (nowhere,))
        shifts = tuple(map(tuple, self.grid.shifts.tolist()))
        return BiasEncoding(self.position_bias[...].astype(wide), None, shifts)

    def __call__(
        self, tokens: Float[Array, "batch *grid features"], dropout_key: Array | None = None
    ) -> Float[Array, "batch *grid features"]:
        """Layer(X); weights are dropped only with a key."""
        return apply_attention(
            self.layer(),
            tokens,
            backend=self.backend,
            precision=self.precision,
            dropout_rate=0.0 if dropout_key is None else self.attention_dropout,
            dropout_key=dropout_key,
        )
