"""Lower bounds and borders of sizes of all kinds, for both corpora; the walks are head_cases'."""

from itertools import product
from math import prod

import certificate_builder as build


def kernel_entry(kernel, size, patch, channels, row, column):
    """W_(Pδ+q-p)[i, j], by the sum of its definition."""
    axes, position = len(size), 0
    for axis in range(axes):
        tap = patch[axis] * column[axis] + row[axes + axis] - row[axis] + (size[axis] - 1) // 2
        if not 0 <= tap < size[axis]:
            return 0
        position = position * size[axis] + tap
    return kernel[(position * channels[0] + row[-2]) * channels[1] + row[-1]]


def lower_bound(claim, size, patch, channels, kernel, rows, columns):
    """The bound that this minor of the flattened kernel gives."""
    minor = [[kernel_entry(kernel, size, patch, channels, r, c) for c in columns] for r in rows]
    body = {
        "kernel_size": list(size),
        "patch_size": list(patch),
        "in_channels": channels[0],
        "out_channels": channels[1],
        "kernel": list(kernel),
        "rows": [list(row) for row in rows],
        "columns": [list(column) for column in columns],
        "determinant": build.determinant(minor),
        "heads": len(rows),
        "tokens_per_side": [max(map(abs, steps)) + 1 for steps in zip(*columns, strict=True)],
    }
    return build.certificate(claim, "lower_bound", body)


def taps_to_channels(claim, size, patch=None, count=None, scale=1):
    """K up to 3 if P > 1: tap t goes into channel t alone, so that `count` taps take as many heads.

    With P > 1 the tap -1 is read at the pixels (0, P-1), the tap 1 at (P-1, 0).
    """
    patch = patch or (1,) * len(size)
    number = prod(size)
    kernel = [scale * int(tap == channel) for tap in range(number) for channel in range(number)]
    taps = product(*(range(-((k - 1) // 2), k // 2 + 1) for k in size))
    rows, columns = [], []
    for channel, tap in enumerate(taps):
        column = [-(-t // p) if t > 0 else t // p for t, p in zip(tap, patch, strict=True)]
        step = [t - p * c for t, p, c in zip(tap, patch, column, strict=True)]
        rows.append([*(max(0, -s) for s in step), *(max(0, s) for s in step), channel, 0])
        columns.append(column)
    return lower_bound(claim, size, patch, (number, 1), kernel, rows[:count], columns[:count])


def one_channel(claim, weights, patch, kept=None, size=None):
    """The kernel Π_a w[t_a], with three offsets on each axis: all their products, or the `kept`.

    `size` embeds the kernel into a larger one that is zero elsewhere.
    """
    axes, narrow = len(patch), len(weights)
    size = size or (narrow,) * axes
    low = [(k - 1) // 2 - (narrow - 1) // 2 for k in size]
    kernel = [
        prod(
            weights[at - first] if 0 <= at - first < narrow else 0
            for at, first in zip(place, low, strict=True)
        )
        for place in product(*map(range, size))
    ]
    pairs = [[(0, p - 1), (0, 0), (p - 1, 0)] for p in patch]
    rows = [[*(p for p, _ in pixels), *(q for _, q in pixels), 0, 0] for pixels in product(*pairs)]
    columns = list(product((-1, 0, 1), repeat=axes))
    kept = range(len(rows)) if kept is None else kept
    chosen = [rows[at] for at in kept], [columns[at] for at in kept]
    return lower_bound(claim, size, patch, (1, 1), kernel, *chosen)


def border(claim, size, image, queries, kernel=None, patch=None):
    """The outputs of two tokens for the image of ones."""
    patch = patch or (1,) * len(size)
    kernel = kernel or [1] * prod(size)
    taps = list(product(*(range(-((k - 1) // 2), k // 2 + 1) for k in size)))

    def output(token, pixel):
        place = [p * n + x for p, n, x in zip(patch, token, pixel, strict=True)]
        return sum(
            weight
            for weight, tap in zip(kernel, taps, strict=True)
            if all(0 <= x + t < side for x, t, side in zip(place, tap, image, strict=True))
        )

    body = {
        "kernel_size": list(size),
        "image_size": list(image),
        "patch_size": list(patch),
        "kernel": list(kernel),
        "queries": [list(query) for query in queries],
        "sums": [[output(query, x) for x in product(*map(range, patch))] for query in queries],
    }
    return build.certificate(claim, "border", body)
