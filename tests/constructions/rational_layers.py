"""Attention layers in rational numbers: rows and maps of fractions, applied to integer images."""

from fractions import Fraction
from itertools import product

import numpy as np
from constructions.slow_definitions import slow_image, slow_tokens
from strategies import Bucket

from convattn.operators.shifts import Shift

# Small, because every weight is a fraction: pixels, patches on two axes, patches with a dilation.
RATIONAL = (
    Bucket(1, (3, 4), (3, 3), 2, 1, (1, 1), (1, 1), patch_size=(1, 1)),
    Bucket(1, (4, 3), (3, 2), 1, 2, (1, 1), (1, 1), patch_size=(2, 3)),
    Bucket(2, (6,), (4,), 1, 2, (1,), (2,), patch_size=(3,)),
    Bucket(1, (2,), (5,), 2, 1, (1,), (1,), patch_size=(1,)),
)


def as_fractions(array) -> np.ndarray:
    return np.vectorize(Fraction, otypes=[object])(np.asarray(array, object))


def ringed(tokens: np.ndarray, offsets) -> tuple[np.ndarray, list[Shift], list[Shift]]:
    """Tokens with zero tokens wherever an offset may point, queries and keys as positions."""
    axes = tokens.ndim - 2
    ring = [
        (max(0, -min(o[a] for o in offsets)), max(0, max(o[a] for o in offsets)))
        for a in range(axes)
    ]
    padded = np.pad(tokens, [(0, 0), *ring, (0, 0)])
    queries = product(
        *(
            range(before, before + n)
            for (before, _), n in zip(ring, tokens.shape[1:-1], strict=True)
        )
    )
    return padded, list(queries), list(product(*map(range, padded.shape[1:-1])))


def rational_layer(images, patch_size, output_patch_size, offsets, heads, *, bare=False):
    """Σ_h rows_h X maps_h as an image.

    Args:
        heads: A function of the number of keys that gives, for each head, a pair (weights, map):
            `weights(hit)` is the list of the weights of all keys, `hit[δ]` being the index of the
            key at the offset δ, or None if there is no such key.
        bare: Lay no ring.
    """
    tokens = as_fractions(slow_tokens(images, patch_size))
    reach = [(0,) * (tokens.ndim - 2)] if bare else offsets
    padded, queries, keys = ringed(tokens, reach)
    index = {key: number for number, key in enumerate(keys)}
    flat = padded.reshape(len(padded), len(keys), -1)
    parts = heads(len(keys))
    outputs = []
    for query in queries:
        hit = {
            offset: index.get(tuple(q + d for q, d in zip(query, offset, strict=True)))
            for offset in offsets
        }
        total = 0
        for weights, block in parts:
            row = weights(hit)
            assert sum(row) == 1
            assert min(row) >= 0
            total = total + (np.array(row, object) @ flat) @ block
        outputs.append(total)
    result = np.stack(outputs, axis=1).reshape(*tokens.shape[:-1], -1)
    return slow_image(result, output_patch_size)
