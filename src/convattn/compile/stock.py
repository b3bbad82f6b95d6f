"""A stock vision transformer as a function: pre-norm blocks, exact GELU, a class token."""

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

PRECISION = jax.lax.Precision.HIGHEST


class Streams(NamedTuple):
    """What a run shows.

    Attributes:
        logits: `[batch, classes]`.
        before: `[blocks, batch, tokens, width]`, the stream before each block.
        between: The same after its attention.
        last: `[batch, tokens, width]`, after the last block.
    """

    logits: Array
    before: Array
    between: Array
    last: Array


def run(
    arrays: Mapping[str, np.ndarray | Array], images: Array, num_heads: int, epsilon: float
) -> Streams:
    """timm's `VisionTransformer` on images `[batch, rows, columns, channels]`.

    Args:
        arrays: Its state dict.
        num_heads, epsilon: What its arrays do not say.
    """
    blocks = 1 + max(int(name.split(".")[1]) for name in arrays if name.startswith("blocks."))
    names = [name.removeprefix("blocks.0.") for name in arrays if name.startswith("blocks.0.")]
    stacked = {
        name: jnp.stack([jnp.asarray(arrays[f"blocks.{n}.{name}"]) for n in range(blocks)])
        for name in names
    }
    rest = {
        name: jnp.asarray(held) for name, held in arrays.items() if not name.startswith("blocks.")
    }
    return _run(rest, stacked, images, num_heads, epsilon)


@partial(jax.jit, static_argnames=("num_heads", "epsilon"))
def _run(
    rest: dict[str, Array], stacked: dict[str, Array], images: Array, num_heads: int, epsilon: float
) -> Streams:
    patch = rest["patch_embed.proj.weight"]
    tokens = jax.lax.conv_general_dilated(
        images,
        patch,
        patch.shape[2:],
        "VALID",
        dimension_numbers=("NHWC", "OIHW", "NHWC"),
        precision=PRECISION,
    )
    tokens = tokens.reshape(len(images), -1, len(patch)) + rest["patch_embed.proj.bias"]
    own = jnp.broadcast_to(rest["cls_token"], (len(images), 1, len(patch)))
    tokens = jnp.concatenate([own, tokens], axis=1) + rest["pos_embed"]

    def block(stream: Array, held: dict[str, Array]) -> tuple[Array, tuple[Array, Array]]:
        between = stream + _attention(held, _norm(held, "norm1", stream, epsilon), num_heads)
        inner = _linear(held, "mlp.fc1", _norm(held, "norm2", between, epsilon))
        after = between + _linear(held, "mlp.fc2", jax.nn.gelu(inner, approximate=False))
        return after, (stream, between)

    last, (before, between) = jax.lax.scan(block, tokens, stacked)
    logits = _linear(rest, "head", _norm(rest, "norm", last, epsilon)[:, 0])
    return Streams(logits, before, between, last)


def _norm(held: dict[str, Array], name: str, tokens: Array, epsilon: float) -> Array:
    centred = tokens - tokens.mean(-1, keepdims=True)
    variance = (centred**2).mean(-1, keepdims=True)
    return centred / jnp.sqrt(variance + epsilon) * held[f"{name}.weight"] + held[f"{name}.bias"]


def _linear(held: dict[str, Array], name: str, tokens: Array) -> Array:
    weight = held[f"{name}.weight"]
    return jnp.matmul(tokens, weight.T, precision=PRECISION) + held[f"{name}.bias"]


def _attention(held: dict[str, Array], tokens: Array, num_heads: int) -> Array:
    batch, count, width = tokens.shape
    parts = _linear(held, "attn.qkv", tokens).reshape(batch, count, 3, num_heads, -1)
    queries, keys, values = jnp.moveaxis(parts, 2, 0)
    scale = (width // num_heads) ** -0.5
    scores = jnp.einsum("bqhd,bkhd->bhqk", queries * scale, keys, precision=PRECISION)
    weights = jax.nn.softmax(scores)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", weights, values, precision=PRECISION)
    return _linear(held, "attn.proj", mixed.reshape(batch, count, width))
