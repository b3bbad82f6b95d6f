"""S.finite's layer with its uniform head tied to the others, held as the kernel itself."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Num

from convattn.encodings.base import score_dtype
from convattn.encodings.bias import BiasEncoding
from convattn.encodings.layer import AttentionLayer


@jax.tree_util.register_dataclass
@dataclass(frozen=True, repr=False)
class TiedLayer(AttentionLayer):
    """T leaky heads and the uniform head that takes their leak back, whatever the kernel is.

    `encoding` has T + 1 heads, head δ one-hot at its offset up to the leak. `output` holds the T
    maps M_δ of the kernel, from which those of the heads follow, M_δ/(1 - ε) and -ε/(1 - ε)·Σ M_δ.
    So at a query whose offsets are all keys the layer is Σ_δ S_δ X M_δ (S.finite): what the leak
    adds and what the uniform head takes back is the same, and need not be computed.

    >>> encoding = BiasEncoding(jnp.eye(2, 1), jnp.array(0.5), ((0,),))
    >>> layer = TiedLayer(encoding, None, jnp.array([[[3.0]]]), patch_size=(1,), stride=(1,))
    >>> layer.heads, layer.untied().output.ravel().tolist()
    (2, [6.0, -3.0])
    """

    def untied(self) -> AttentionLayer:
        """The layer with a map for each head."""
        encoding, maps = self.encoding, self.output
        assert isinstance(encoding, BiasEncoding)
        assert encoding.uniform_weight is not None
        assert maps is not None
        own = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return AttentionLayer(**{**own, "output": finite_maps(maps, encoding.uniform_weight)})


def untied(layer: AttentionLayer) -> AttentionLayer:
    """The layer with a map for each head."""
    return layer.untied() if isinstance(layer, TiedLayer) else layer


def finite_maps(
    maps: Num[Array, "offsets patch_in patch_out"], uniform_weight: Num[Array, ""]
) -> Num[Array, "heads patch_in patch_out"]:
    """The maps of T leaky heads and of the uniform head, in the dtype of those of the kernel.

    >>> finite_maps(jnp.array([[[1.0]], [[2.0]], [[3.0]]]), jnp.array(0.5)).ravel().tolist()
    [2.0, 4.0, 6.0, -6.0]
    """
    wide = maps.astype(score_dtype(maps))
    uniform = -(uniform_weight / (1 - uniform_weight)) * wide.sum(axis=0, keepdims=True)
    return jnp.concatenate([wide / (1 - uniform_weight), uniform]).astype(maps.dtype)
