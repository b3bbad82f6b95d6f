"""The attention of C20's models: every head mixes the tokens, and has a value map of its own.

    Layer(X) = Σ_h A_h X W_h + b,

A_h the softmax of the head's scores. (Eq. 4 has two maps, W_val and W_out; the authors' code has
the one.) The scores are those of the module's encoding, and `layer` gives all of it as an
`AttentionLayer`, which `apply_attention` serves.
"""

from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax import Array
from jax.typing import DTypeLike

from convattn.encodings import BiasEncoding, GaussianEncoding, LearnedEncoding, QuadraticEncoding
from convattn.encodings.base import PositionalEncoding
from convattn.encodings.layer import AttentionLayer, ContentScores
from convattn.fast.products import product
from convattn.nnx.layers.compute import compute_dtype, product_precision, wide_dtype
from convattn.nnx.layers.linear import uniform_within
from convattn.sac.modules import read
from convattn_lab.models.settings import EncoderSettings


class PositionalAttention(nnx.Module):
    """The attention of one layer.

    Its parameters are those of its encoding, if it has any heads, and `value` `[heads, width,
    width]` and `bias` `[width]`:

    - quadratic: `centers` Δ `[heads, 2]` and `spreads` `[heads]`, the a of Σ^(-1/2) = a·I, so that
      the scores are -½a²|δ - Δ|².
    - gaussian: `centers`, and `spreads` `[heads, 2, 2]`, Σ^(-1/2).
    - learned: `tables`, for each axis `[2n - 1, width]`, and `head_vectors` `[heads, 2·width]`.
    - content: `query`, `key` `[heads, width, width]`, `query_bias`, `key_bias` `[heads, width]`,
      and `tables`, `[2n - 1, width/2]`. Both q·k and q·r are divided by √width, as in the authors'
      code.

    Args:
        tokens: How many rows and columns of tokens there are at most.

    Source: C20 §2.3, §4.2 and §4.3, eqs. 9 and 19, appendix E.

    >>> settings = EncoderSettings(heads=(3,), width=8)
    >>> attention = PositionalAttention(settings, 3, (4, 5), rngs=nnx.Rngs(0))
    >>> attention.layer().value.shape, attention.layer().encoding.alpha.shape
    ((3, 8, 8), (3,))
    """

    def __init__(
        self,
        settings: EncoderSettings,
        heads: int,
        tokens: tuple[int, int],
        *,
        rngs: nnx.Rngs,
        dtype: DTypeLike = jnp.float32,
    ) -> None:
        self.encoding, self.heads, self.width = settings.encoding, heads, settings.width
        self.dtype = compute_dtype(dtype)
        width = settings.width

        def normal(variance: float, *shape: int) -> Array:
            return variance**0.5 * jax.random.normal(rngs.params(), shape, jnp.float32)

        def uniform(inputs: int, *shape: int) -> nnx.Param:
            return nnx.Param(uniform_within(inputs)(rngs.params(), shape, jnp.float32))

        # Arrays without entries are no parameters: nothing trains them, and few formats store them.
        self.value = uniform(heads * width, heads, width, width) if heads else None
        self.bias = uniform(max(heads, 1) * width, width)
        if not heads:
            return
        if self.encoding in ("quadratic", "gaussian"):
            identity = jnp.eye(2, dtype=jnp.float32)
            identity = identity[0, 0] if self.encoding == "quadratic" else identity
            noise = normal(settings.spread_variance, heads, *identity.shape)
            self.centers = nnx.Param(normal(settings.center_variance, heads, 2))
            self.spreads = nnx.Param(identity + noise)
            return
        row = width // 2 if self.encoding == "content" else width
        self.tables = nnx.List([nnx.Param(normal(1.0, 2 * n - 1, row)) for n in tokens])
        if self.encoding == "learned":
            self.head_vectors = uniform(row, heads, 2 * row)
            return
        self.query, self.key = (uniform(width, heads, width, width) for _ in range(2))
        self.query_bias, self.key_bias = (uniform(width, heads, width) for _ in range(2))

    def layer(self, dense: nnx.Linear | None = None) -> AttentionLayer:
        """This attention for `apply_attention`, followed by a dense map if one is given.

        Nothing stands between the two, so that (Σ_h A_h X W_h + b) D + d = Σ_h A_h X (W_h D) +
        (b D + d).

        Args:
            dense: A map of width × width, with a bias.
        """
        none = jnp.zeros((0, self.width, self.width), self.dtype)
        value = none if self.value is None else read(self.value).astype(self.dtype)
        bias, wide = self.bias[...].astype(self.dtype), wide_dtype(self.dtype)
        if dense is not None:
            kernel, precision = dense.kernel[...].astype(self.dtype), product_precision(self.dtype)
            value = product("hde,eo->hdo", value, kernel, dtype=wide, precision=precision)
            bias = product("e,eo->o", bias, kernel, dtype=wide, precision=precision)
            value = value.astype(self.dtype)
            bias = (bias + read(dense.bias)).astype(self.dtype)
        encoding, content = self.scores()
        return AttentionLayer(encoding, value, None, bias, content)

    def scores(self) -> tuple[PositionalEncoding, ContentScores | None]:
        """The encoding and the content of the scores."""
        wide = self.wide
        if self.encoding == "quadratic":  # -α|δ - Δ|² with α = a²/2
            if not self.heads:
                return QuadraticEncoding(jnp.zeros(0), jnp.zeros((0, 2))), None
            return QuadraticEncoding(wide(self.spreads) ** 2 / 2, wide(self.centers)), None
        if self.encoding == "gaussian":  # -½|Σ^(-1/2)(δ - Δ)|²
            if not self.heads:
                return GaussianEncoding(jnp.zeros((0, 2)), jnp.zeros((0, 2, 2))), None
            return GaussianEncoding(wide(self.centers), wide(self.spreads)), None
        silent = BiasEncoding(jnp.zeros((self.heads, 1), jnp.float32), None, ((0, 0),))
        if not self.heads:
            return silent, None
        tables = tuple(map(wide, self.tables))
        if self.encoding == "learned":  # v·r_δ; unscaled, as in the authors' code
            return LearnedEncoding(wide(self.head_vectors), tables), None
        # (q·k + q·r_δ)/√width, without scores of the position alone
        maps = wide(self.query), wide(self.key)
        biases = wide(self.query_bias), wide(self.key_bias)
        return silent, ContentScores(*maps, *biases, tables=tables)

    def wide(self, parameter: Any) -> Array:
        """A parameter of the scores, which are computed in at least float32."""
        return read(parameter).astype(wide_dtype(self.dtype))
