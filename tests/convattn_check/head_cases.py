"""Certificates about numbers of heads, written without a line of the checker."""

from itertools import product
from math import ceil, prod

import certificate_builder as build


def entry(kernel, sizes, row, column):
    """W_(Pδ+q-p)[i, j], by the sum of its definition; sizes are K, P, channels in, out, axes."""
    size, patch, inputs, outputs, axes = sizes
    position = 0
    for axis in range(axes):
        tap = patch * column[axis] + row[axes + axis] - row[axis] + (size - 1) // 2
        if not 0 <= tap < size:
            return 0
        position = position * size + tap
    return kernel[(position * inputs + row[-2]) * outputs + row[-1]]


def minor_of(kernel, sizes, rows, columns):
    return build.determinant(
        [[entry(kernel, sizes, row, column) for column in columns] for row in rows]
    )


def line_bound(claim="S.heads"):
    """One axis, K = 9, P = 2, one channel: three rows for five offsets, so three heads."""
    kernel, sizes = [1, 2, 3, 5, 7, 12, 13, 17, 19], (9, 2, 1, 1, 1)
    rows, columns = [[1, 0, 0, 0], [0, 0, 0, 0], [0, 1, 0, 0]], [[-1], [0], [1]]
    body = {
        "kernel_size": [9],
        "patch_size": [2],
        "in_channels": 1,
        "out_channels": 1,
        "kernel": kernel,
        "rows": rows,
        "columns": columns,
        "determinant": minor_of(kernel, sizes, rows, columns),
        "heads": 3,
        "tokens_per_side": [2],
    }
    return build.certificate(claim, "lower_bound", body)


def widths(size, patch, inputs, outputs, axes):
    """Rows and columns that a walk over the pixels finds, the fewer of the two."""
    axis = build.walk_axis(size, patch, 1, 1)
    offsets = sorted({offset for offset, _, _ in axis})
    used = {
        offset: (
            len({q for other, _, q in axis if other == offset}),
            len({p for other, p, _ in axis if other == offset}),
        )
        for offset in offsets
    }
    return [
        min(prod(used[o][0] for o in joined) * inputs, prod(used[o][1] for o in joined) * outputs)
        for joined in product(offsets, repeat=axes)
    ]


def triangular(regime="limit", dimension=3, patch=2, size=3, claim="S.headdim"):
    """One axis, two channels: W_0 = (1 4; 0 2), beside it multiples of (0 1; 0 0)."""
    sizes = (size, patch, 2, 2, 1)
    centre = (size - 1) // 2
    kernel = []
    for tap in range(size):
        kernel += [1, 4, 0, 2] if tap == centre else [0, tap + 3, 0, 0]
    rows = [[0, patch - 1, 0, 1], [patch - 1, 0, 0, 1]]
    columns = [[-1], [1]]
    full = patch * 2

    def heads(width):
        return ceil(width / dimension)

    necessary = 2 + heads(full)
    sufficient = sum(map(heads, widths(*sizes)))
    if regime == "finite":
        necessary = max(necessary + 1, heads(2 * full))
        sufficient += heads(full)
    body = {
        "kernel_size": [size],
        "patch_size": [patch],
        "in_channels": 2,
        "out_channels": 2,
        "kernel": kernel,
        "head_dimension": dimension,
        "regime": regime,
        "rows": rows,
        "columns": columns,
        "determinant": minor_of(kernel, sizes, rows, columns),
        "tokens_per_side": [3 if regime == "finite" else 2],
        "necessary": necessary,
        "sufficient": sufficient,
    }
    return build.certificate(claim, "head_dimension", body)


def unlike_channels():
    """Two axes, one channel in and two out: beyond the square, entries are free."""
    kernel, sizes = [], (3, 2, 1, 2, 2)
    for tap in range(9):
        kernel += [int(tap == 4), tap + 1]
    places = [(0, 1), (0, 0), (1, 0)]
    rows, columns = [], []
    for (p1, q1), (p2, q2), offset in zip(
        [a for a in places for _ in places],
        places * 3,
        product((-1, 0, 1), repeat=2),
        strict=True,
    ):
        if offset[0] and offset[1]:  # the corners alone
            rows.append([p1, p2, q1, q2, 0, 1])
            columns.append(list(offset))
    body = {
        "kernel_size": [3, 3],
        "patch_size": [2, 2],
        "in_channels": 1,
        "out_channels": 2,
        "kernel": kernel,
        "head_dimension": 2,
        "regime": "limit",
        "rows": rows,
        "columns": columns,
        "determinant": minor_of(kernel, sizes, rows, columns),
        "tokens_per_side": [2, 2],
        "necessary": 4 + 2,
        "sufficient": sum(ceil(width / 2) for width in widths(*sizes)),
    }
    return build.certificate("S.headdim", "head_dimension", body)


def shared_places(regime="finite", channels=(1, 2), claim="S.width"):
    """One axis, K = 3, P = 3, d_H = 2: pixel 0 is read from -1, pixel 2 from 1, pixel 1 by itself.

    As (inputs, outputs) = (2, 1) output pixel 0 hears from -1, and 2 from 1: the other way round.
    """
    first, last = (2, 0) if channels[0] <= channels[1] else (0, 2)  # joined to -1, and to 1
    if regime == "limit":
        heads = [(["1", "0", "0"], [first, 1]), (["0", "0", "1"], [last]), (["0"] * 3, [0, 2])]
    else:
        heads = [
            (["1", "0", "0"], [first, 1]),
            (["1", "1", "0"], [1]),
            (["0", "0", "1/2"], [last]),
            (["0", "0", "0"], [0, 2]),
            (["0", "1", "0"], [0, 2]),
        ]
    body = {
        "kernel_size": [3],
        "patch_size": [3],
        "in_channels": channels[0],
        "out_channels": channels[1],
        "head_dimension": 2,
        "regime": regime,
        "count": len(heads),
        "heads": [{"weights": weights, "coordinates": held} for weights, held in heads],
    }
    return build.certificate(claim, "narrow_heads", body)


HEADS = {
    "places": shared_places(),
    "places_limit": shared_places("limit"),
    "places_by_output": shared_places(channels=(2, 1)),
    "line_bound": line_bound(),
    "narrow_heads": triangular(),
    "narrow_heads_finite": triangular("finite"),
    "narrow_heads_many": triangular("finite", dimension=1, patch=3),
    "narrow_heads_unlike": unlike_channels(),
}
