"""A layer as the parameters of `flax.nnx.MultiHeadAttention`, for one image size.

With zero query and key maps the module's scores are 0·0/√d + B = B, exactly, so that

    module(queries, keys)_q = Σ_h softmax(B[h, q]) (X V_h) O_h + b,

which is the layer. Flax's own parameters hold V, O and b; B is the bias of `BiasedAttention`.

| array              | shape                     |                                     |
|--------------------|---------------------------|-------------------------------------|
| `query.kernel`     | [features, heads, head]   | zero                                |
| `query.bias`       | [heads, head]             | zero                                |
| `key.kernel`, `key.bias` | the same            | zero                                |
| `value.kernel`     | [features, heads, head]   | V                                   |
| `value.bias`       | [heads, head]             | zero                                |
| `out.kernel`       | [heads, head, out]        | O                                   |
| `out.bias`         | [out]                     | b                                   |
| `attention_fn.bias` | [heads, queries, keys]   | B                                   |
"""

from typing import Any

from convattn.extras import require

require("flax")

import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import Array, lax
from jaxtyping import Float

from convattn.networks.weights.files import WeightsFile
from convattn.networks.weights.fixed_size import (
    FixedSizeAttention,
    ImageTokens,
    as_numpy,
    fixed_metadata,
    read_fixed_metadata,
)
from convattn.networks.weights.formats import WeightsRefused
from convattn.operators.arrays import as_array


class BiasedAttention(nnx.Module):
    """Dot-product attention with a bias for every head, query and key.

        out = softmax(q kᵀ/√d + bias) v

    Give it to `flax.nnx.MultiHeadAttention` as `attention_fn`. The bias is a parameter of its own,
    so it is saved, restored and trained with the module. Products run at the highest precision
    unless the module says otherwise.

    Args:
        bias: `[heads, queries, keys]`.

    >>> attend = BiasedAttention(jnp.log(jnp.array([[[1.0, 3.0]]])))
    >>> zero, value = jnp.zeros((1, 1, 1, 1)), jnp.array([[[[0.0]], [[4.0]]]])
    >>> attend(zero, jnp.zeros((1, 2, 1, 1)), value).round(5).tolist()
    [[[[3.0]]]]
    """

    def __init__(self, bias: Float[Array, "heads queries keys"]):
        self.bias = nnx.Param(jnp.asarray(bias))

    def __call__(
        self,
        query: Float[Array, "*batch queries heads key_features"],
        key: Float[Array, "*batch keys heads key_features"],
        value: Float[Array, "*batch keys heads head_features"],
        mask: Array | None = None,
        precision: Any = None,
        **options: Any,
    ) -> Float[Array, "*batch queries heads head_features"]:
        """Attend; `options` are those that `nnx.dot_product_attention_weights` takes."""
        bias = self.bias[...]
        expected = (query.shape[-2], query.shape[-3], key.shape[-3])
        if bias.shape != expected:
            raise ValueError(
                f"the bias has the shape {bias.shape}, but {expected[0]} heads, {expected[1]} "
                f"queries and {expected[2]} keys came; are the queries the image's tokens, and the "
                "keys these and the ring of zero tokens?"
            )
        precision = lax.Precision.HIGHEST if precision is None else precision
        weights = nnx.nn.attention.dot_product_attention_weights(
            query, key, bias=bias, mask=mask, precision=precision, **options
        )
        return jnp.einsum("...hqk,...khd->...qhd", weights, value, precision=precision)


LAYOUT = "flax"


def pack_flax(fixed: FixedSizeAttention) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """The arrays and the text of a file in this layout."""
    heads, features, width = fixed.value.shape
    none = np.zeros((features, heads, width), fixed.value.dtype)
    kernels = {
        "query": none,
        "key": none,
        "value": as_numpy(jnp.moveaxis(fixed.value, 0, 1)),
        "out": as_numpy(fixed.output),
    }
    arrays = {f"{part}.kernel": kernel for part, kernel in kernels.items()}
    arrays |= {f"{part}.bias": np.zeros((heads, width), none.dtype) for part in ("query", "key")}
    arrays |= {"value.bias": np.zeros((heads, width), none.dtype)}
    arrays |= {"out.bias": as_numpy(fixed.bias), "attention_fn.bias": as_numpy(fixed.scores)}
    return arrays, fixed_metadata(LAYOUT, fixed, "flax")


def flax_module(file: WeightsFile) -> tuple[nnx.MultiHeadAttention, ImageTokens]:
    """The module with the file's parameters, and the way from images to its inputs."""
    sizes, tokens = read_fixed_metadata(file.metadata, LAYOUT, file.name)
    scores = as_array(file["attention_fn.bias"], f"{file.name}: attention_fn.bias")
    module = nnx.MultiHeadAttention(
        num_heads=sizes["heads"],
        in_features=sizes["features"],
        qkv_features=sizes["heads"] * sizes["head_features"],
        out_features=sizes["out_features"],
        param_dtype=scores.dtype,
        precision=lax.Precision.HIGHEST,
        attention_fn=BiasedAttention(scores),
        decode=False,
        rngs=nnx.Rngs(0),
    )
    for part in ("query", "key", "value", "out"):
        for kind in ("kernel", "bias"):
            name = f"{part}.{kind}"
            parameter: Any = getattr(getattr(module, part), kind)
            array = as_array(file[name], f"{file.name}: {name}")
            if array.shape != parameter.shape:
                raise WeightsRefused(
                    f"{file.name}: {name} has shape {array.shape}, expected {parameter.shape}"
                )
            parameter[...] = array
    return module, tokens


def apply_flax(file: WeightsFile, images: Any) -> Array:
    """From images to images through the module that the file describes."""
    module, tokens = flax_module(file)
    return tokens.images(module(tokens.queries(images), tokens.keys(images)))
