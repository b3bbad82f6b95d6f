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

import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import Array, lax

from convattn.networks.weights.files import WeightsFile
from convattn.networks.weights.flax_attention import BiasedAttention
from convattn.networks.weights.refusal import WeightsRefused
from convattn.networks.weights.stated_size import (
    ImageTokens,
    StatedAttention,
    as_numpy,
    read_stated_metadata,
    stated_metadata,
)
from convattn.operators.arrays import as_array

LAYOUT = "flax"


def pack_flax(stated: StatedAttention) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """The arrays and the text of a file in this layout."""
    heads, features, width = stated.value.shape
    none = np.zeros((features, heads, width), stated.value.dtype)
    kernels = {
        "query": none,
        "key": none,
        "value": as_numpy(jnp.moveaxis(stated.value, 0, 1)),
        "out": as_numpy(stated.output),
    }
    arrays = {f"{part}.kernel": kernel for part, kernel in kernels.items()}
    arrays |= {f"{part}.bias": np.zeros((heads, width), none.dtype) for part in ("query", "key")}
    arrays |= {"value.bias": np.zeros((heads, width), none.dtype)}
    arrays |= {"out.bias": as_numpy(stated.bias), "attention_fn.bias": as_numpy(stated.scores)}
    return arrays, stated_metadata(LAYOUT, stated, "flax")


def flax_module(file: WeightsFile) -> tuple[nnx.MultiHeadAttention, ImageTokens]:
    """The module with the file's parameters, and the way from images to its inputs.

    Raises:
        WeightsRefused: For a file of another layout, or one whose arrays do not fit.
    """
    sizes, tokens = read_stated_metadata(file.metadata, LAYOUT, file.name)
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
