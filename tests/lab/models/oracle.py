"""A layer of C20's encoder in NumPy and float64, written out from the papers with loops."""

import math
from itertools import product
from typing import Any

import numpy as np


def numbers(parameter: Any) -> np.ndarray:
    return np.asarray(parameter[...], np.float64)


def scores(attention: Any, tokens: np.ndarray) -> np.ndarray:
    """`[heads, queries, keys]` of one image's tokens `[rows, columns, width]`."""
    rows, columns, width = tokens.shape
    positions = list(product(range(rows), range(columns)))
    actual = np.zeros((attention.heads, len(positions), len(positions)))
    for h, (i, query), (j, key) in product(
        range(attention.heads), enumerate(positions), enumerate(positions)
    ):
        delta = np.subtract(key, query)
        actual[h, i, j] = score(attention, h, delta, tokens[query], tokens[key]) / (
            math.sqrt(width) if attention.encoding == "content" else 1
        )
    return actual


def score(attention: Any, h: int, delta: np.ndarray, query: np.ndarray, key: np.ndarray) -> float:
    """C20 eqs. 9, 19, §4.3; content after Ramachandran et al. 2019, without its scale."""
    if attention.encoding == "quadratic":
        alpha = numbers(attention.spreads)[h] ** 2 / 2
        return -alpha * ((delta - numbers(attention.centers)[h]) ** 2).sum()
    if attention.encoding == "gaussian":
        far = delta - numbers(attention.centers)[h]
        root = numbers(attention.spreads)[h]
        return -far @ root.T @ root @ far / 2
    rows = [numbers(table) for table in attention.tables]
    vector = np.concatenate(
        [table[(len(table) - 1) // 2 + d] for table, d in zip(rows, delta, strict=True)]
    )
    if attention.encoding == "learned":
        return numbers(attention.head_vectors)[h] @ vector
    q = query @ numbers(attention.query)[h] + numbers(attention.query_bias)[h]
    return q @ (key @ numbers(attention.key)[h] + numbers(attention.key_bias)[h] + vector)


def attention_of(attention: Any, tokens: np.ndarray) -> np.ndarray:
    """Σ_h A_h X W_h + b."""
    flat = tokens.reshape(-1, tokens.shape[-1])
    result = np.zeros_like(flat) + numbers(attention.bias)
    if attention.heads:
        for h, row in enumerate(scores(attention, tokens)):
            weights = np.exp(row - row.max(axis=-1, keepdims=True))
            weights /= weights.sum(axis=-1, keepdims=True)
            result += weights @ flat @ numbers(attention.value)[h]
    return result.reshape(tokens.shape)


def linear(layer: Any, values: np.ndarray) -> np.ndarray:
    return values @ numbers(layer.kernel) + numbers(layer.bias)


def norm(layer: Any, values: np.ndarray, epsilon: float) -> np.ndarray:
    centred = values - values.mean(axis=-1, keepdims=True)
    spread = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + epsilon)
    return centred / spread * numbers(layer.scale) + numbers(layer.bias)


def gelu(values: np.ndarray) -> np.ndarray:
    return np.vectorize(lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2)(values)


def layer_of(layer: Any, tokens: np.ndarray, epsilon: float) -> np.ndarray:
    projected = linear(layer.dense, attention_of(layer.attention, tokens))
    tokens = norm(layer.attention_norm, tokens + projected, epsilon)
    actual = linear(layer.outer, gelu(linear(layer.inner, tokens)))
    return norm(layer.outer_norm, tokens + actual, epsilon)


def encoder_of(model: Any, image: np.ndarray) -> np.ndarray:
    """The logits of one image."""
    s, epsilon = model.settings.downsampling, model.settings.norm_epsilon
    height, width, _ = image.shape
    tokens = [
        [image[s * i : s * (i + 1), s * j : s * (j + 1)].reshape(-1) for j in range(width // s)]
        for i in range(height // s)
    ]
    values = linear(model.embedding, np.array(tokens))
    for layer in model.layers:
        values = layer_of(layer, values, epsilon)
    return linear(model.classifier, values.mean(axis=(0, 1)))
