"""A layer as the parameters of `torch.nn.MultiheadAttention`, for one image size.

The module's queries, keys, values and results all have E = `embed_dim` = heads·d features, and
head h reads and writes the slice of d features from h·d. So d is the least number for which

    d ≥ the head dimension,   heads·d ≥ the features of a token,   heads·d ≥ those of an output,

tokens are padded with zeros to E, and of the result the first features count. For a layer whose
heads carry whole tokens d is the token's dimension. With zero query and key maps the scores are
`attn_mask`, and with i running over the token's features

    Σ_h softmax(B[h, q]) (X V_h) O_h + b,

because the rows h·d + e of `in_proj_weight`'s third block are V_h[:, e] (zero beyond the token's
features, and for e beyond the head's), and the columns h·d + e of `out_proj.weight` are O_h[e].

| array             | shape                  |                                                   |
|-------------------|------------------------|---------------------------------------------------|
| `in_proj_weight`  | [3E, E]                | zero (queries), zero (keys), V                    |
| `in_proj_bias`    | [3E]                   | zero                                              |
| `out_proj.weight` | [E, E]                 | O, transposed                                     |
| `out_proj.bias`   | [E]                    | b, then zeros                                     |
| `attn_mask`       | [heads, queries, keys] | B; not a parameter, see docs/convert-kernel.md    |
"""

import importlib
import importlib.util
import math
from typing import Any

import numpy as np
from jax import Array
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

LAYOUT = "torch"
PARAMETERS = ("in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias")
LARGEST = 2**31


def _slice_width(heads: int, features: int, head_features: int, out_features: int) -> int:
    """d: how many features the slice of each head has.

    >>> _slice_width(10, 768, 768, 768), _slice_width(1, 3, 3, 64), _slice_width(9, 27, 1, 8)
    (768, 64, 3)
    """
    return max(head_features, -(-features // heads), -(-out_features // heads))


def pack_torch(fixed: FixedSizeAttention) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """The arrays and the text of a file in this layout."""
    value, output = as_numpy(fixed.value), as_numpy(fixed.output)
    heads, features, width = value.shape
    d = _slice_width(heads, features, width, output.shape[2])
    embed = heads * d
    size = 4 * embed**2 * value.dtype.itemsize
    if size > LARGEST:
        raise ValueError(
            f"{heads} heads of {d} features make embed_dim={embed}, and the weights "
            f"{size / 2**30:.1f} GiB, nearly all zeros; make the heads narrower with "
            "head_dim (--head-dim), or write the layout 'convattn' or 'flax'"
        )
    incoming = np.zeros((3, heads, d, embed), value.dtype)
    incoming[2, :, :width, :features] = value.transpose(0, 2, 1)
    outgoing = np.zeros((embed, heads, d), value.dtype)
    outgoing[: output.shape[2], :, :width] = output.transpose(2, 0, 1)
    bias = np.zeros(embed, value.dtype)
    bias[: output.shape[2]] = as_numpy(fixed.bias)
    arrays = {
        "in_proj_weight": incoming.reshape(3 * embed, embed),
        "in_proj_bias": np.zeros(3 * embed, value.dtype),
        "out_proj.weight": outgoing.reshape(embed, embed),
        "out_proj.bias": bias,
        "attn_mask": as_numpy(fixed.scores),
    }
    return arrays, fixed_metadata(LAYOUT, fixed, "pt")


def multihead_attention(
    query: Float[np.ndarray, "batch queries embed"],
    key: Float[np.ndarray, "batch keys embed"],
    value: Float[np.ndarray, "batch keys embed"],
    arrays: dict[str, np.ndarray],
    attn_mask: Float[np.ndarray, "heads queries keys"],
) -> Float[np.ndarray, "batch queries embed"]:
    """What PyTorch documents `torch.nn.MultiheadAttention` to compute, in NumPy.

    MultiHead(Q, K, V) = Concat(head_1, …) W^Oᵀ + b with
    head_h = softmax(Q W_hᵀ (K W'_hᵀ)ᵀ/√d + mask_h) V W''_hᵀ.
    """
    heads, embed = attn_mask.shape[0], query.shape[-1]
    weights = np.split(arrays["in_proj_weight"], 3)
    biases = np.split(arrays["in_proj_bias"], 3)

    def project(tokens: np.ndarray, index: int) -> np.ndarray:
        projected = tokens @ weights[index].T + biases[index]
        split = projected.reshape(*tokens.shape[:2], heads, embed // heads)
        return split.transpose(0, 2, 1, 3)

    scale = query.dtype.type(1 / math.sqrt(embed // heads))
    scores = (project(query, 0) * scale) @ project(key, 1).transpose(0, 1, 3, 2) + attn_mask
    raised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    attended = (raised / raised.sum(axis=-1, keepdims=True)) @ project(value, 2)
    joined = attended.transpose(0, 2, 1, 3).reshape(query.shape)
    return joined @ arrays["out_proj.weight"].T + arrays["out_proj.bias"]


def torch_inputs(file: WeightsFile, images: Any) -> tuple[np.ndarray, np.ndarray, int, ImageTokens]:
    """Queries and keys padded with zeros, the features of the result, and the way back."""
    sizes, tokens = read_fixed_metadata(file.metadata, LAYOUT, file.name)
    heads, grid = sizes["heads"], tokens.grid
    embed = heads * _slice_width(
        heads, sizes["features"], sizes["head_features"], sizes["out_features"]
    )
    expected = {
        "in_proj_weight": (3 * embed, embed),
        "in_proj_bias": (3 * embed,),
        "out_proj.weight": (embed, embed),
        "out_proj.bias": (embed,),
        "attn_mask": (heads, math.prod(grid.queries), grid.number_of_keys),
    }
    for name, shape in expected.items():
        if file[name].shape != shape:
            raise WeightsRefused(
                f"{file.name}: {name} has shape {file[name].shape}, expected {shape}"
            )
    pad_width = [(0, 0), (0, 0), (0, embed - sizes["features"])]
    queries = np.pad(np.asarray(tokens.queries(images)), pad_width)
    keys = np.pad(np.asarray(tokens.keys(images)), pad_width)
    return queries, keys, sizes["out_features"], tokens


def apply_formula(file: WeightsFile, images: Any) -> Array:
    """From images to images by the documented formula."""
    queries, keys, features, tokens = torch_inputs(file, images)
    arrays = {name: file[name] for name in PARAMETERS}
    result = multihead_attention(queries, keys, keys, arrays, file["attn_mask"])
    return tokens.images(result[..., :features])


def torch_is_installed() -> bool:
    """Whether PyTorch can be imported."""
    return importlib.util.find_spec("torch") is not None


def apply_torch(file: WeightsFile, images: Any) -> Array:
    """From images to images through `torch.nn.MultiheadAttention` itself."""
    torch = importlib.import_module("torch")
    queries, keys, features, tokens = torch_inputs(file, images)
    state = {name: torch.from_numpy(file[name].copy()) for name in PARAMETERS}
    mask = torch.from_numpy(file["attn_mask"].copy())
    module = torch.nn.MultiheadAttention(
        queries.shape[-1], mask.shape[0], batch_first=True, dtype=mask.dtype
    )
    module.load_state_dict(state)
    key = torch.from_numpy(keys)
    with torch.no_grad():
        result, _ = module(
            torch.from_numpy(queries),
            key,
            key,
            attn_mask=mask.repeat(len(queries), 1, 1),
            need_weights=True,
        )
    return tokens.images(result.numpy()[..., :features])
