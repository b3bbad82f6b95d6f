"""2-D self-attention as a module (B19 §2)."""

from collections.abc import Sequence

from flax import nnx
from jax import Array
from jax.typing import DTypeLike

from convattn.sac.initialization import initial_self_attention_2d
from convattn.sac.modules.held import held, read
from convattn.sac.relative_bias import EvenBias
from convattn.sac.self_attention_2d import SelfAttention2DParameters, self_attention_2d


class SelfAttention2D(nnx.Module):
    """B19 §2: every pixel attends to every pixel; `[batch, height, width, in]` to `…, out]`.

    Args:
        image_size: N and M, the size of the bias table; beyond it the bias is 0.

    >>> import jax.numpy as jnp
    >>> layer = SelfAttention2D(3, 5, heads=2, key_features=4, image_size=(6, 7), rngs=nnx.Rngs(0))
    >>> layer(jnp.ones((1, 6, 7, 3))).shape
    (1, 6, 7, 5)
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        heads: int,
        key_features: int,
        image_size: Sequence[int],
        param_dtype: DTypeLike = "float32",
        rngs: nnx.Rngs,
    ) -> None:
        made = initial_self_attention_2d(
            rngs.params(),
            in_features,
            out_features,
            heads=heads,
            key_features=key_features,
            distances=image_size,
            dtype=param_dtype,
        )
        self.query, self.key, self.value = map(held, (made.query, made.key, made.value))
        self.position = held(None if made.position is None else made.position.values)
        self.output = held(made.output)

    @property
    def parameters(self) -> SelfAttention2DParameters:
        """What the pure function takes."""
        return SelfAttention2DParameters(
            read(self.query),
            read(self.key),
            read(self.value),
            EvenBias(read(self.position)),
            read(self.output),
        )

    def __call__(self, images: Array) -> Array:
        """`self_attention_2d` of the images."""
        return self_attention_2d(self.parameters, images)
