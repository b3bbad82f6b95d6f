"""A stock vision transformer as a function: pre-norm blocks, exact GELU, a class token."""

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

_Arrays = Mapping[str, Any]
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
    blocks = range(_blocks(arrays))
    names = [name.removeprefix("blocks.0.") for name in arrays if name.startswith("blocks.0.")]
    stacked = {
        name: jnp.stack([jnp.asarray(arrays[f"blocks.{n}.{name}"]) for n in blocks])
        for name in names
    }
    rest = {
        name: jnp.asarray(held) for name, held in arrays.items() if not name.startswith("blocks.")
    }
    return _run(rest, stacked, images, num_heads, epsilon)


def unrolled(
    arrays: Mapping[str, np.ndarray | Array], images: Array, num_heads: int, epsilon: float
) -> Array:
    """The logits of `run`, its blocks one after the other instead of in a loop.

    For files of other programs, which need no loops then.
    """
    stream = _embedded(arrays, images)
    for number in range(_blocks(arrays)):
        prefix = f"blocks.{number}."
        own = {n.removeprefix(prefix): held for n, held in arrays.items() if n.startswith(prefix)}
        stream, _ = _block(stream, own, num_heads, epsilon)
    return _classified(arrays, stream, epsilon)


@partial(jax.jit, static_argnames=("num_heads", "epsilon"))
def _run(
    rest: dict[str, Array], stacked: dict[str, Array], images: Array, num_heads: int, epsilon: float
) -> Streams:
    def block(stream: Array, held: dict[str, Array]) -> tuple[Array, tuple[Array, Array]]:
        after, between = _block(stream, held, num_heads, epsilon)
        return after, (stream, between)

    last, (before, between) = jax.lax.scan(block, _embedded(rest, images), stacked)
    return Streams(_classified(rest, last, epsilon), before, between, last)


def _blocks(arrays: _Arrays) -> int:
    """How many there are."""
    return 1 + max(int(name.split(".")[1]) for name in arrays if name.startswith("blocks."))


def _embedded(rest: _Arrays, images: Array) -> Array:
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
    return jnp.concatenate([own, tokens], axis=1) + rest["pos_embed"]


def _block(stream: Array, held: _Arrays, num_heads: int, epsilon: float) -> tuple[Array, Array]:
    """The stream after a block, and within."""
    between = stream + _attention(held, _norm(held, "norm1", stream, epsilon), num_heads)
    inner = _linear(held, "mlp.fc1", _norm(held, "norm2", between, epsilon))
    return between + _linear(held, "mlp.fc2", jax.nn.gelu(inner, approximate=False)), between


def _classified(rest: _Arrays, last: Array, epsilon: float) -> Array:
    return _linear(rest, "head", _norm(rest, "norm", last, epsilon)[:, 0])


def _norm(held: _Arrays, name: str, tokens: Array, epsilon: float) -> Array:
    centred = tokens - tokens.mean(-1, keepdims=True)
    variance = (centred**2).mean(-1, keepdims=True)
    return centred / jnp.sqrt(variance + epsilon) * held[f"{name}.weight"] + held[f"{name}.bias"]


def _linear(held: _Arrays, name: str, tokens: Array) -> Array:
    weight = held[f"{name}.weight"]
    return jnp.matmul(tokens, weight.T, precision=PRECISION) + held[f"{name}.bias"]


def _attention(held: _Arrays, tokens: Array, num_heads: int) -> Array:
    batch, count, width = tokens.shape
    parts = _linear(held, "attn.qkv", tokens).reshape(batch, count, 3, num_heads, -1)
    queries, keys, values = jnp.moveaxis(parts, 2, 0)
    scale = (width // num_heads) ** -0.5
    scores = jnp.einsum("bqhd,bkhd->bhqk", queries * scale, keys, precision=PRECISION)
    weights = jax.nn.softmax(scores)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", weights, values, precision=PRECISION)
    return _linear(held, "attn.proj", mixed.reshape(batch, count, width))
