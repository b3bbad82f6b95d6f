"""Certificates about one kernel, written without a line of the checker."""

from fractions import Fraction
from itertools import product
from math import ceil, prod

import certificate_builder as build
from certificate_builder import certificate, rational, sparse


def kernel_entry(kernel, size, patch, channels, row, column):
    """W_(Pδ+q-p)[i, j], by the sum of its definition."""
    axes, position = len(size), 0
    for axis in range(axes):
        tap = patch[axis] * column[axis] + row[axes + axis] - row[axis] + (size[axis] - 1) // 2
        if not 0 <= tap < size[axis]:
            return 0
        position = position * size[axis] + tap
    return kernel[(position * channels[0] + row[-2]) * channels[1] + row[-1]]


def convolution(size, patch, channels, kernel):
    """The fields that say which convolution a certificate is about."""
    return {
        "kernel_size": list(size),
        "patch_size": list(patch),
        "in_channels": channels[0],
        "out_channels": channels[1],
        "kernel": list(kernel),
    }


def minor(size, patch, channels, kernel, rows, columns):
    """Those fields, and a minor of the flattened kernel with its determinant."""
    entries = [[kernel_entry(kernel, size, patch, channels, r, c) for c in columns] for r in rows]
    return convolution(size, patch, channels, kernel) | {
        "rows": [list(row) for row in rows],
        "columns": [list(column) for column in columns],
        "determinant": build.determinant(entries),
    }


# Lower bounds.


def lower_bound(claim, size, patch, channels, kernel, rows, columns):
    """The bound that this minor of the flattened kernel gives."""
    body = minor(size, patch, channels, kernel, rows, columns) | {
        "heads": len(rows),
        "tokens_per_side": [max(map(abs, steps)) + 1 for steps in zip(*columns, strict=True)],
    }
    return certificate(claim, "lower_bound", body)


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


def three_offsets(patch):
    """Rows and columns for one channel: on an axis (p, q) = (0, P-1), (0, 0), (P-1, 0) tell the
    three offsets apart."""
    pairs = [[(0, p - 1), (0, 0), (p - 1, 0)] for p in patch]
    rows = [[*(p for p, _ in pixels), *(q for _, q in pixels), 0, 0] for pixels in product(*pairs)]
    return rows, list(product((-1, 0, 1), repeat=len(patch)))


def one_channel(claim, weights, patch, chosen=None, size=None):
    """The kernel Π_a w[t_a], with three offsets on each axis: all their products, or the `kept`.

    `size` embeds the kernel into a larger one that is zero elsewhere.
    """
    narrow = len(weights)
    size = size or (narrow,) * len(patch)
    low = [(k - 1) // 2 - (narrow - 1) // 2 for k in size]
    padded = [
        [0] * at + [*weights] + [0] * (k - narrow - at) for k, at in zip(size, low, strict=True)
    ]
    kernel = [prod(entries) for entries in product(*padded)]
    rows, columns = three_offsets(patch)
    chosen = range(len(rows)) if chosen is None else chosen
    minor_of = [rows[at] for at in chosen], [columns[at] for at in chosen]
    return lower_bound(claim, size, patch, (1, 1), kernel, *minor_of)


def pixel_bound(claim="L21.theorem5"):
    """L21.theorem5 in small: K = 3×3, 9 channels in, the kernel the identity from taps to channels.

    The channel order is reversed, so that the determinant is not simply 1.
    """
    kernel = [2 if tap + channel == 8 else 0 for tap in range(9) for channel in range(9)]
    rows, columns = [[0, 0, 0, 0, at, 0] for at in range(9)], list(product((-1, 0, 1), repeat=2))
    return lower_bound(claim, (3, 3), (1, 1), (9, 1), kernel, rows, columns)


def patch_bound(patch=(3, 3), kernel=(1, 2, -3, 4, 5, 6, 7, 8, 9)):
    return lower_bound("L21.theorem6", (3, 3), patch, (1, 1), kernel, *three_offsets(patch))


def line_bound(claim="S.heads"):
    """One axis, K = 9, P = 2, one channel: three rows for five offsets, so three heads."""
    kernel = [1, 2, 3, 5, 7, 12, 13, 17, 19]
    rows = [[1, 0, 0, 0], [0, 0, 0, 0], [0, 1, 0, 0]]
    return lower_bound(claim, (9,), (2,), (1, 1), kernel, rows, [[-1], [0], [1]])


def tile_bound():
    """S.tiles in small: K = 9, P = 2, two channels in; F's rows are unit vectors on 18 cells.

    Channel 0 has its square, its dominoes and its cell on the left of the 5 × 5 offsets, channel 1
    on the right. Pixel residue ρ is read by the rows s = ρ, and s = ρ - 2 if ρ = 1.
    """
    first = {(1, 1): (-2, -2), (0, 1): (0, -2), (1, 0): (1, -2), (0, 0): (1, -1)}
    second = {(1, 1): (-2, 0), (0, 1): (0, 0), (1, 0): (-2, 2), (0, 0): (2, 2)}
    kernel = [0] * (9 * 9 * 2)
    rows, columns = [], []
    for channel, cells in enumerate((first, second)):
        for residue, cell in cells.items():
            tap = [2 * c + r + 4 for c, r in zip(cell, residue, strict=True)]
            kernel[(tap[0] * 9 + tap[1]) * 2 + channel] = 1
            for steps in product(*((0, 1) if r else (0,) for r in residue)):
                s = [r - 2 * step for r, step in zip(residue, steps, strict=True)]
                rows.append([*(max(0, -x) for x in s), *(max(0, x) for x in s), channel, 0])
                columns.append([c + step for c, step in zip(cell, steps, strict=True)])
    return lower_bound("S.tiles", (9, 9), (2, 2), (2, 1), kernel, rows, columns)


# Borders.


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
    return certificate(claim, "border", body)


def border_of_ones(claim="C20.padding", patch=(1, 1)):
    """A 4×5 image (in patches), the kernel of ones: two tokens whose outputs differ."""
    image = [4 * patch[0], 5 * patch[1]]
    other = (1, 1) if patch == (1, 1) else (2, 4)
    return border(claim, (3, 3), image, [(0, 2), other], patch=patch)


# Heads narrower than what a token holds.


def widths(size, patch, channels, axes):
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
        min(prod(used[o][side] for o in joined) * channels[side] for side in (0, 1))
        for joined in product(offsets, repeat=axes)
    ]


def dimensioned(fields, dimension, regime, tokens, necessary, sufficient):
    """S.headdim from the fields of a minor."""
    body = fields | {
        "head_dimension": dimension,
        "regime": regime,
        "tokens_per_side": tokens,
        "necessary": necessary,
        "sufficient": sufficient,
    }
    return certificate("S.headdim", "head_dimension", body)


def triangular(regime="limit", dimension=3, patch=2, size=3):
    """One axis, two channels: W_0 = (1 4; 0 2), beside it multiples of (0 1; 0 0)."""
    kernel = []
    for tap in range(size):
        kernel += [1, 4, 0, 2] if tap == (size - 1) // 2 else [0, tap + 3, 0, 0]
    rows, columns = [[0, patch - 1, 0, 1], [patch - 1, 0, 0, 1]], [[-1], [1]]
    full, finite = patch * 2, regime == "finite"

    def heads(width):
        return ceil(width / dimension)

    necessary, sufficient = 2 + heads(full), sum(map(heads, widths(size, patch, (2, 2), 1)))
    if finite:
        necessary, sufficient = max(necessary + 1, heads(2 * full)), sufficient + heads(full)
    fields, tokens = minor((size,), (patch,), (2, 2), kernel, rows, columns), [3 if finite else 2]
    return dimensioned(fields, dimension, regime, tokens, necessary, sufficient)


def unlike_channels():
    """Two axes, one channel in and two out: beyond the square, entries are free."""
    kernel = [entry for tap in range(9) for entry in (int(tap == 4), tap + 1)]
    places = [(0, 1), (0, 0), (1, 0)]
    corners = [
        ([p1, p2, q1, q2, 0, 1], list(offset))
        for ((p1, q1), (p2, q2)), offset in zip(
            product(places, repeat=2), product((-1, 0, 1), repeat=2), strict=True
        )
        if offset[0] and offset[1]
    ]
    rows, columns = zip(*corners, strict=True)
    sufficient = sum(ceil(width / 2) for width in widths(3, 2, (1, 2), 2))
    fields = minor((3, 3), (2, 2), (1, 2), kernel, rows, columns)
    return dimensioned(fields, 2, "limit", [2, 2], 4 + 2, sufficient)


def narrow_heads(size, channels, dimension, regime, *heads, claim="S.width"):
    """Heads (weights, coordinates) of dimension d_H on one axis with P = 3."""
    body = {
        "kernel_size": [size],
        "patch_size": [3],
        "in_channels": channels[0],
        "out_channels": channels[1],
        "head_dimension": dimension,
        "regime": regime,
        "count": len(heads),
        "heads": [{"weights": weights, "coordinates": places} for weights, places in heads],
    }
    return certificate(claim, "narrow_heads", body)


def shared_places(regime="finite", channels=(1, 2)):
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
    return narrow_heads(3, channels, 2, regime, *heads)


# Heads for one kernel.


def kernel_heads(claim, fields, attention, values, unread, tokens, **limit):
    """Rows of attention (weights at the offsets, then elsewhere) and values (head, column, value).

    `fields` are those of a minor.
    """
    body = fields | {
        "heads": len(attention),
        "attention": [[str(weight) for weight in row] for row in attention],
        "values": sparse(values),
        "unread": unread,
        "tokens_per_side": tokens,
        "limit": {name: [str(x) for x in vector] for name, vector in limit.items()},
    }
    return certificate(claim, "kernel_heads", body)


def unit_heads(count):
    """A head for each offset and the uniform one, with their values."""
    attention = [[*(int(h == d) for d in range(count)), 1] for h in range(count + 1)]
    return attention, [(h, h, 1) for h in range(count)] + [(count, h, -1) for h in range(count)]


def two_masks():
    """S.kernel: taps -1, 0, 1 in one dimension, two channels out: (1, 2, 1) and (1, 0, -1).

    Heads (1, 2, 1) + d, (1, 0, -1) + d and d = (0, 0, 1), u = 1 each: V = the channels' maps, which
    in F's columns (1, 1), (2, 0), (1, -1) are e_0 = column 0 / 2 + column 2 / 2 = column 1 / 2, and
    e_1 = column 0 - column 1 / 2.
    """
    rows, columns = [[0, 0, 0, 0], [0, 0, 0, 1]], [[-1], [0]]
    fields = minor((3,), (1,), (1, 2), [1, 1, 2, 0, 1, -1], rows, columns)
    attention = [(1, 2, 2, 1), (1, 0, 0, 1), (0, 0, 1, 1)]
    values = [(0, 1, "1/2"), (1, 0, 1), (1, 1, "-1/2"), (2, 0, -1)]
    return kernel_heads("S.kernel", fields, attention, values, [2], [3], combination=(1, 0))


def mixed_sign():
    """S.kernel: one channel, (1, 0, -1): two heads even in the limit, as F (1, 1, 1)ᵀ = 0."""
    fields = minor((3,), (1,), (1, 1), [1, 0, -1], [[0, 0, 0, 0]], [[-1]])
    attention, values = [(1, 0, 0, 1), (0, 0, 1, 1)], [(0, 0, 1), (1, 0, -1)]
    return kernel_heads("S.kernel", fields, attention, values, [0], [2], positive=(1, 1, 1))


def box_of_patches():
    """S.kernel: the box (1, 1, 1) on patches of two.

    F has the rows (0, 1, 1), (0, 1, 0), (1, 1, 0) for q - p = -1, 0, 1. All three offsets
    are needed: unit heads and a uniform one.
    """
    rows = [[0, 1, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0]]
    fields = minor((3,), (2,), (1, 1), [1, 1, 1], rows, [[-1], [0], [1]])
    return kernel_heads("S.kernel", fields, *unit_heads(3), [2], [3], combination=(0, 1, 0))


def turned_tap(channels=((0, 0), (1, 0), (1, 1), (0, 1)), mirrored=False):
    """S.group: K = 2, one tap turned four times, so that each output reads one tap: five heads.

    Mirrored too, each tap is read by two outputs.
    """
    taps, outputs = list(product((0, 1), repeat=2)), len(channels) * (1 + mirrored)
    turned = [*channels, *((y, 1 - x) for y, x in channels)][:outputs]
    if mirrored:  # the mirror image, turned again: the reading order of the turns
        turned[4:] = [(0, 1), (0, 0), (1, 0), (1, 1)]
    kernel = [int(tap == turned[o]) for tap in taps for o in range(outputs)]
    rows = [[0, 0, 0, 0, 0, o] for o in range(4)]
    fields = minor((2, 2), (1, 1), (1, outputs), kernel, rows, channels)
    return kernel_heads("S.group", fields, *unit_heads(4), [2, 0], [3, 2], combination=[1] * 4)


def turned_box():
    """The same for a filter of ones: all outputs read all taps, and two heads do."""
    fields = minor((2, 2), (1, 1), (1, 4), [1] * 16, [[0] * 6], [[0, 0]])
    attention, values = [[1] * 5, [0] * 4 + [1]], [(0, 0, 1), (1, 0, -1)]
    return kernel_heads("S.group", fields, attention, values, [2, 0], [3, 1], combination=[1])


# Fewer heads, and how far they are.


def approximation(fields, attention, values, thresholds, error):
    body = fields | {
        "heads": len(attention),
        "attention": [[rational(weight) for weight in row] for row in attention],
        "values": sparse(values),
        "thresholds": thresholds,
        "error": rational(error),
    }
    return certificate("S.approx", "approximation", body)


def two_of_three():
    """S.approx: taps 3, 2, 1, each into its own channel, two heads: G = diag(9, 4, 1).

    One direction, the first tap, and the uniform head: the distance is 4 + 1, that of any two heads
    at least 1.
    """
    fields = convolution((3,), (1,), (1, 3), [3, 0, 0, 0, 2, 0, 0, 0, 1])
    attention, values = [(1, 0, 0, 1), (0, 0, 0, 1)], [(0, 0, 1), (1, 0, -1)]
    return approximation(fields, attention, values, ["3999999/1000000", "999999/1000000"], 5)


def box_in_part():
    """S.approx: the box on patches of two, three heads.

    The rows are those of `box_of_patches`, the middle one twice, so G = [[1, 1, 0], [1, 4, 1],
    [0, 1, 1]] with the eigenvalues (5 ± √17)/2 = 4.56155…, 0.43844… and 1. The heads have the first
    two directions: (2, 3 + √17, 2), rounded, and (1, 0, -1).
    """
    gram, axes = [[1, 1, 0], [1, 4, 1], [0, 1, 1]], range(3)
    directions = [[Fraction(2), Fraction(7123106, 10**6), Fraction(2)], [Fraction(1), 0, -1]]
    rows = [[x + s for x, s in zip(row, (0, 0, 1), strict=True)] for row in directions]
    maps = [[x / sum(y * y for y in row) for x in row] for row in directions]
    off = [
        [sum(m[a] * d[b] for m, d in zip(maps, directions, strict=True)) - (a == b) for b in axes]
        for a in axes
    ]
    error = sum(off[a][c] * gram[a][b] * off[b][c] for a, b, c in product(axes, repeat=3))
    maps.append([-sum(column) for column in zip(*maps, strict=True)])
    return approximation(
        convolution((3,), (2,), (1, 1), [1, 1, 1]),
        [(*row, 1) for row in (*rows, (0, 0, 1))],
        [(h, a, row[a]) for h, row in enumerate(maps) for a in axes],
        ["438447/1000000"],
        error,
    )
