"""Bits per byte of a language model on windows, and how sure of them one can be."""

import math
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import Array
from jaxtyping import Float, UInt8

from convattn.lab.training.step import cross_entropy


class BitsPerByte(NamedTuple):
    """The mean over all bytes, and the standard error of that mean over the windows.

    The windows of one text are not independent, so that the error is a lower estimate.
    """

    mean: float
    error: float


def summarize(bits: Float[np.ndarray, "windows length"]) -> BitsPerByte:
    """Of the bits of every byte.

    >>> summarize(np.array([[1.0, 3.0], [4.0, 4.0]]))
    BitsPerByte(mean=3.0, error=1.0)
    """
    means = np.asarray(bits, np.float64).mean(axis=1)
    error = math.nan if len(means) < 2 else float(means.std(ddof=1)) / math.sqrt(len(means))
    return BitsPerByte(float(means.mean()), error)


def model_bits(
    model: Any, windows: UInt8[np.ndarray, "count length_and_one"], batch: int = 64
) -> Float[np.ndarray, "count length"]:
    """-log2 p of each byte after those before it in its window.

    Args:
        model: Called as `model(inputs)`, giving logits.
        batch: Windows at a time.
    """
    graph, state = nnx.split(model)

    @partial(jax.jit)
    def judge(state: Any, symbols: Array) -> Array:
        logits = nnx.merge(graph, state)(symbols[:, :-1])
        return cross_entropy(logits, symbols[:, 1:], 0.0) / math.log(2)

    found = []
    for first in range(0, len(windows), batch):
        part = windows[first : first + batch].astype(np.int32)
        filled = np.concatenate([part, np.repeat(part[-1:], batch - len(part), axis=0)])
        found.append(np.asarray(judge(state, jnp.asarray(filled)))[: len(part)])
    return np.concatenate(found)
