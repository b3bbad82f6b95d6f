"""A vision transformer in NumPy and float64, one image at a time, written out with loops."""

import math
from itertools import product
from typing import Any

import numpy as np
from lab.models.oracle import gelu, linear, norm, numbers

from convattn.nnx.vision_transformer.rotary_mixing import RotaryMixing


def attended(mixing: Any, tokens: np.ndarray, ring: int) -> np.ndarray:
    """Σ_h softmax(QKᵀ/√d + B) V W^O + b; the value of a zero token is the bias of the values."""
    *grid, width = tokens.shape
    places = list(product(*(range(n) for n in grid)))
    keys = list(product(*(range(-ring, n + ring) for n in grid)))
    attended_tokens = np.array([tokens[key] if key in places else np.zeros(width) for key in keys])
    result = np.tile(numbers(mixing.bias), (*grid, 1))
    for h, query in product(range(mixing.query.shape[0]), places):
        q = tokens[query] @ numbers(mixing.query)[h] + numbers(mixing.query_bias)[h]
        k = attended_tokens @ numbers(mixing.key)[h] + numbers(mixing.key_bias)[h]
        v = attended_tokens @ numbers(mixing.value)[h] + numbers(mixing.value_bias)[h]
        if isinstance(mixing, RotaryMixing):
            q = turned(q, query, mixing.base)
            k = np.array(
                [turned(each, key, mixing.base) for each, key in zip(k, keys, strict=True)]
            )
        row = k @ q / math.sqrt(len(q))
        if mixing.position_bias is not None:
            spans = [2 * n - 1 + 2 * ring for n in grid]
            firsts = [n - 1 + ring for n in grid]
            for index, key in enumerate(keys):
                shift = [a - b + first for a, b, first in zip(key, query, firsts, strict=True)]
                row[index] += numbers(mixing.position_bias)[h][np.ravel_multi_index(shift, spans)]
        weights = np.exp(row - row.max())
        result[query] += weights / weights.sum() @ v @ numbers(mixing.output)[h]
    return result


def turned(features: np.ndarray, place: tuple[int, ...], base: float) -> np.ndarray:
    """RoPE of one token's query or key: pairs of the row, then pairs of the column."""
    rotated, quarter = features.copy(), len(features) // 4
    for axis, at in enumerate(place):
        for number in range(quarter):
            angle, first = at * base ** (-number / quarter), 2 * (axis * quarter + number)
            one, two = features[first : first + 2]
            rotated[first] = math.cos(angle) * one - math.sin(angle) * two
            rotated[first + 1] = math.sin(angle) * one + math.cos(angle) * two
    return rotated


def convolved(mixing: Any, tokens: np.ndarray, size: int, border: str) -> np.ndarray:
    """Each pixel of each patch reads the pixels around it, wherever they stand."""
    rows, columns, width = tokens.shape
    kernel, mean = numbers(mixing.kernel), tokens.mean(axis=(0, 1))
    reach, channels = len(kernel) // 2, width // size**2
    result = np.zeros_like(tokens)
    for i, j, y, x in product(range(rows), range(columns), range(size), range(size)):
        total = numbers(mixing.bias).copy()
        for dy, dx in product(range(-reach, reach + 1), repeat=2):
            (a, v), (b, u) = divmod(i * size + y + dy, size), divmod(j * size + x + dx, size)
            inside = 0 <= a < rows and 0 <= b < columns
            patch = tokens[a, b] if inside else mean if border == "mean" else np.zeros(width)
            pixel = patch[(v * size + u) * channels :][:channels]
            total += pixel @ kernel[dy + reach, dx + reach]
        result[i, j, (y * size + x) * channels :][:channels] = total
    return result


def logits_of(model: Any, image: np.ndarray) -> np.ndarray:
    settings, size = model.settings, model.settings.patch_size
    height, width, _ = image.shape
    tokens = np.array(
        [
            [image[i : i + size, j : j + size].reshape(-1) for j in range(0, width, size)]
            for i in range(0, height, size)
        ]
    )
    if settings.projection == "learned":
        tokens = linear(model.projection, tokens)
    if settings.pooling == "class":
        flat = tokens.reshape(-1, tokens.shape[-1])
        tokens = np.concatenate([numbers(model.class_token)[None], flat])
    if settings.position == "absolute":
        tokens = tokens + numbers(model.positions).reshape(tokens.shape)
    for layer in model.layers:
        inside = norm(layer.mixing_norm, tokens, settings.norm_epsilon)
        if settings.mixing == "convolution":
            tokens = tokens + convolved(layer.mixing, inside, size, settings.border)
        else:
            tokens = tokens + attended(layer.mixing, inside, settings.ring)
        inside = norm(layer.inner_norm, tokens, settings.norm_epsilon)
        tokens = tokens + linear(layer.outer, gelu(linear(layer.inner, inside)))
    tokens = norm(model.norm, tokens, settings.norm_epsilon)
    pooled = tokens[0] if settings.pooling == "class" else tokens.mean(axis=(0, 1))
    return linear(model.classifier, pooled)
