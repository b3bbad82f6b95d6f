"""Bits per byte of a language model on windows of a text, and what they are compared with.

*Counting alone* predicts by unigrams and bigrams, one added to each count:

    p(b) = (n_b + 1)/(n + 256),      p(b | a) = (n_ab + 1)/(n_a + 256),

n_a the number of bytes a that another one follows.

*A manual repeats itself.* A byte is repeated if it lies in a run of `run` bytes of the text that
stands, word for word, in the training part, too; a window is new if none of its bytes is. On new
windows a model cannot have learned a passage by heart.
"""

import math
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import Array
from jaxtyping import Bool, Float, UInt8

from convattn.operators.integers import as_integer
from convattn_lab.training.step import cross_entropy
from language_model.text import windows_of

SYMBOLS, RUN = 256, 64


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

    bits = []
    for first in range(0, len(windows), batch):
        symbols = windows[first : first + batch].astype(np.int32)
        filled = np.concatenate([symbols, np.repeat(symbols[-1:], batch - len(symbols), axis=0)])
        bits.append(np.asarray(judge(state, jnp.asarray(filled)))[: len(symbols)])
    return np.concatenate(bits)


def unigram_bits(train: bytes, targets: UInt8[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
    """-log2 p(b) of each target.

    >>> unigram_bits(b"a" * 256, np.frombuffer(b"ab", np.uint8)).round(3).tolist()
    [0.994, 9.0]
    """
    counts = np.bincount(np.frombuffer(train, np.uint8), minlength=SYMBOLS)
    return -np.log2((counts[targets] + 1) / (len(train) + SYMBOLS))


def bigram_bits(
    train: bytes, contexts: UInt8[np.ndarray, "*shape"], targets: UInt8[np.ndarray, "*shape"]
) -> Float[np.ndarray, "*shape"]:
    """-log2 p(b | a) of each target b after its context a.

    >>> context, target = np.frombuffer(b"aa", np.uint8), np.frombuffer(b"bc", np.uint8)
    >>> bigram_bits(b"ab" * 256 + b"a", context, target).round(3).tolist()
    [0.994, 9.0]
    """
    symbols = np.frombuffer(train, np.uint8).astype(np.int64)
    pairs = SYMBOLS * symbols[:-1] + symbols[1:]
    counts = np.bincount(pairs, minlength=SYMBOLS**2).reshape(SYMBOLS, SYMBOLS)
    followed = counts.sum(axis=1)
    return -np.log2((counts[contexts, targets] + 1) / (followed[contexts] + SYMBOLS))


def repeated_bytes(train: bytes, text: bytes, run: int = RUN) -> Bool[np.ndarray, "bytes"]:
    """Whether each byte of `text` lies in a run of `run` bytes that `train` holds, too.

    Raises:
        ValueError: For a run that is no positive integer.

    >>> repeated_bytes(b"abcd", b"xbcdy", run=3).tolist()
    [False, True, True, True, False]
    """
    run = as_integer(run, "run", 1)
    known = {train[start : start + run] for start in range(len(train) - run + 1)}
    repeated = np.zeros(len(text), bool)
    for start in range(len(text) - run + 1):
        if text[start : start + run] in known:
            repeated[start : start + run] = True
    return repeated


def new_windows(
    train: bytes, text: bytes, length: int, run: int = RUN
) -> Bool[np.ndarray, " windows"]:
    """For each window of `language_model.text.windows_of`: whether none of it is repeated.

    >>> new_windows(b"abcd", b"xxxxbcdyyyy", 2, run=3).tolist()
    [True, False, False, False, True]
    """
    marks = repeated_bytes(train, text, run).astype(np.uint8).tobytes()
    return np.asarray(windows_of(marks, length).max(axis=1) == 0)
