"""What counting alone predicts: bits per byte of unigrams and bigrams, one added to each count.

    p(b) = (n_b + 1)/(n + 256),      p(b | a) = (n_ab + 1)/(n_a + 256),

n_a the number of bytes a that another one follows.
"""

import numpy as np
from jaxtyping import Float, UInt8

SYMBOLS = 256


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
    places = SYMBOLS * symbols[:-1] + symbols[1:]
    counts = np.bincount(places, minlength=SYMBOLS**2).reshape(SYMBOLS, SYMBOLS)
    followed = counts.sum(axis=1)
    return -np.log2((counts[contexts, targets] + 1) / (followed[contexts] + SYMBOLS))
