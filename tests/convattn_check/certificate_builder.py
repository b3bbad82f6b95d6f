"""Certificates for the tests, written without a line of the checker.

Offsets and patterns are found by walking over the pixels of a wide image, value maps by solving the
linear system; the checker computes both from closed formulas.
"""

import copy
import hashlib
import json
from fractions import Fraction
from itertools import product
from math import factorial, prod

CONVENTIONS = {
    "kernel": "HWIO",
    "patch": "row-major, channels last",
    "shift": "key - query",
    "tokens": "row-major",
}


def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def sealed(certificate):
    """The same certificate with the digests of what it says now."""
    result = copy.deepcopy(certificate)
    names = ("schema", "claim", "kind", "statement", "conventions")
    parts = {
        "specification": {name: result[name] for name in names if name in result},
        "body": result.get("body"),
    }
    result["digests"] = {
        name: hashlib.sha256(canonical(part).encode()).hexdigest() for name, part in parts.items()
    }
    return result


def written(certificate):
    return canonical(certificate) + "\n"


def certificate(claim, kind, body):
    return sealed(
        {
            "schema": "convattn-certificate/1",
            "claim": claim,
            "kind": kind,
            "statement": f"The {kind} of {claim}, in small.",
            "conventions": dict(CONVENTIONS),
            "body": body,
        }
    )


def rational(value):
    return str(Fraction(value))


# Geometry, by walking.


def walk_axis(kernel, patch, dilation, skip):
    """{(offset, output pixel, input pixel): tap index} of a token far from any border."""
    start = 10_000 * patch
    found = {}
    for output in range(0, patch, skip):
        for index in range(kernel):
            read = start + output + (index - (kernel - 1) // 2) * dilation
            found[read // patch - 10_000, output, read % patch] = index
    return found


def axis_offsets(kernel, patch, dilation=1, skip=1):
    """Those that some pixel of the token reads, also where the stride skips this pixel."""
    return sorted({offset for offset, _, _ in walk_axis(kernel, patch, dilation, 1)})


def axis_pattern(kernel, patch, dilation=1, skip=1):
    found = walk_axis(kernel, patch, dilation, skip)
    return [
        [[found.get((offset, p, q), -1) for q in range(patch)] for p in range(0, patch, skip)]
        for offset in axis_offsets(kernel, patch, dilation, skip)
    ]


# Equalities.


def geometry(kernel, patch=None, dilation=None, stride=None, route="subsample", extra_ring=0):
    axes = len(kernel)
    patch, dilation, stride = (list(x or [1] * axes) for x in (patch, dilation, stride))
    skips = stride if route == "tokens" else [1] * axes
    sizes = list(zip(kernel, patch, dilation, skips, strict=True))
    offsets = [axis_offsets(*size) for size in sizes]
    return {
        "kernel_size": list(kernel),
        "patch_size": patch,
        "dilation": dilation,
        "stride": stride,
        "stride_route": route,
        "kernel": "every",
        "ring": [[extra_ring - o[0], o[-1]] for o in offsets],
        "offsets": [list(offset) for offset in product(*offsets)],
        "pattern": [axis_pattern(*size) for size in sizes],
    }


def sparse(entries):
    ordered = sorted((head, offset, Fraction(value)) for head, offset, value in entries)
    return {"family": "sparse", "entries": [[h, o, rational(v)] for h, o, v in ordered if v]}


def absolute_form(target):
    """-(|k - q - t|²) + |q + t|² = 2 k·q + 2 k·t - |k|², as f(q) B f(k)ᵀ, and then some g(q)."""
    axes = len(target)
    form = [[0] * (axes + 2) for _ in range(axes + 2)]
    for axis, step in enumerate(target):
        form[axis][axis] = 2
        form[axes + 1][axis] = 2 * step
        form[axis][axes + 1] = 7  # 7 q_a: a part of g(q)
    form[axes + 1][axes] = -1
    return form


def limit_equality(claim, score, **sizes):
    body = geometry(**sizes)
    targets = body["offsets"][::-1]  # heads need not be in the order of the offsets
    count = len(targets)
    attention = {"family": "one_hot_limit", "score": score, "targets": targets}
    if score == "enumerated":
        attention |= {"codes": [3 * i - 4 for i in range(count)], "spare": 3 * count}
    if score == "polygon":
        attention |= {"corners": 2 * count, "codes": [3 - i for i in range(count)]}
    if score == "absolute":
        attention["forms"] = [absolute_form(target) for target in targets]
    body |= {
        "regime": "limit",
        "heads": count,
        "attention": attention,
        "values": sparse((h, count - 1 - h, 1) for h in range(count)),
    }
    return certificate(claim, "equality", body)


def leaky_equality(claim="S.finite", leak="1/2", **sizes):
    body = geometry(**sizes)
    count, leak = len(body["offsets"]), Fraction(leak)
    values = [(h, h, 1 / (1 - leak)) for h in range(count)]
    values += [(count, h, -leak / (1 - leak)) for h in range(count)]
    body |= {
        "regime": "finite",
        "heads": count + 1,
        "attention": {
            "family": "leaky_one_hot",
            "leak": rational(leak),
            "targets": [*body["offsets"], None],
        },
        "values": sparse(values),
    }
    return certificate(claim, "equality", body)


def solve(matrix, right):
    """X with matrix X = right, by Gauss-Jordan over the rationals."""
    n = len(matrix)
    rows = [list(map(Fraction, [*a, *b])) for a, b in zip(matrix, right, strict=True)]
    for column in range(n):
        pivot = next(r for r in range(column, n) if rows[r][column])
        rows[column], rows[pivot] = rows[pivot], rows[column]
        rows[column] = [x / rows[column][column] for x in rows[column]]
        for r in range(n):
            if r != column and rows[r][column]:
                factor = rows[r][column]
                rows[r] = [x - factor * y for x, y in zip(rows[r], rows[column], strict=True)]
    return [row[n:] for row in rows]


def polynomial(roots):
    """Π (z - root), low degree first."""
    result = [1]
    for root in roots:
        shifted, scaled = [0, *result], [*(-root * c for c in result), 0]
        result = [a + b for a, b in zip(shifted, scaled, strict=True)]
    return result


def power_equality(claim="S.dp1", bases=None, exponents=None, lagrange=False, **sizes):
    body = geometry(**sizes)
    count = len(body["offsets"])
    bases = [Fraction(base) for base in bases or range(2, count + 2)]
    exponents = list(exponents or range(count + 1))
    if lagrange:
        values = {
            "family": "lagrange",
            "master": polynomial([1, *map(int, bases)]),
            "denominators": [
                prod(int(base - other) for other in [1, *bases] if other != base) for base in bases
            ],
        }
    else:
        system = [[base**e for e in exponents] for base in [*bases, Fraction(1)]]
        unit = [[int(row == column) for column in range(count)] for row in range(count + 1)]
        solution = solve(system, unit)
        values = sparse((h, d, solution[h][d]) for h in range(count + 1) for d in range(count))
    body |= {
        "regime": "finite",
        "heads": count + 1,
        "attention": {
            "family": "scalar_power",
            "bases": [rational(base) for base in bases],
            "exponents": exponents,
        },
        "values": values,
    }
    return certificate(claim, "equality", body)


# The other kinds.


def determinant(matrix):
    """By Laplace along the first row, skipping zeros; for the tests' small minors."""
    if not matrix:
        return 1
    return sum(
        (-1) ** column
        * entry
        * determinant([row[:column] + row[column + 1 :] for row in matrix[1:]])
        for column, entry in enumerate(matrix[0])
        if entry
    )


def pixel_bound(claim="L21.theorem5"):
    """L21.theorem5 in small: K = 3×3, 9 channels in, the kernel the identity from taps to channels.

    The channel order is reversed, so that the determinant is not simply 1.
    """
    size = 9
    kernel = [2 if tap + channel == size - 1 else 0 for tap in range(9) for channel in range(9)]
    body = {
        "kernel_size": [3, 3],
        "patch_size": [1, 1],
        "in_channels": size,
        "out_channels": 1,
        "kernel": kernel,
        "rows": [[0, 0, 0, 0, channel, 0] for channel in range(size)],
        "columns": [list(offset) for offset in product((-1, 0, 1), repeat=2)],
        "determinant": determinant([kernel[tap * 9 : tap * 9 + 9] for tap in range(9)]),
        "heads": size,
        "tokens_per_side": [2, 2],
    }
    return certificate(claim, "lower_bound", body)


def patch_bound(patch=3, kernel=(1, 2, -3, 4, 5, 6, 7, 8, 9)):
    """L21.theorem6: on an axis (p, q) = (0, P-1), (0, 0), (P-1, 0) tell the 3 offsets apart."""
    pairs = [(0, patch - 1), (0, 0), (patch - 1, 0)]
    rows = [[p1, p2, q1, q2, 0, 0] for (p1, q1), (p2, q2) in product(pairs, repeat=2)]
    columns = [list(offset) for offset in product((-1, 0, 1), repeat=2)]

    def entry(row, column):
        taps = [patch * column[a] + row[2 + a] - row[a] for a in (0, 1)]
        return kernel[3 * taps[0] + taps[1] + 4] if max(map(abs, taps)) <= 1 else 0

    body = {
        "kernel_size": [3, 3],
        "patch_size": [patch, patch],
        "in_channels": 1,
        "out_channels": 1,
        "kernel": list(kernel),
        "rows": rows,
        "columns": columns,
        "determinant": determinant([[entry(row, column) for column in columns] for row in rows]),
        "heads": 9,
        "tokens_per_side": [2, 2],
    }
    return certificate("L21.theorem6", "lower_bound", body)


def pixel_heads():
    """C20.lemma3: two pixels, K = 1, head i attends to pixel i from every query."""
    body = {
        "kernel_size": [1],
        "pixels": [2],
        "heads": [{"rows": [["1", "0"], ["1", "0"]]}, {"rows": [["0", "1"], ["0", "1"]]}],
        "inclusion": [[["1", "0"]], [["0", "1"]]],
        "separator": ["1", "0", "-1", "0"],
        "tap": 0,
    }
    return certificate("C20.lemma3", "no_shared_map", body)


def relative_heads(claim="C20.lemma3"):
    """C20.lemma3 with finite relative scores: rows (.5 .5), (.9 .1) and (.1 .9), (.5 .5).

    Head 0: a = (1/2, 1/2; 1/10, 9/10), head 1: b = (9/10, 1/10; 1/2, 1/2). Σ y a = Σ y b = 0 for
    y = (1, -1; s, t) with s/10 + 9t/10 = 0 and 8/10 + s/2 + t/2 = 0: t = 1/5, s = -9/5.
    """
    body = {
        "kernel_size": [1],
        "pixels": [2],
        "heads": [
            {"relative": [[-1, "1/9"], [0, "1"], [1, "1"]]},
            {"relative": [[-1, "1"], [0, "1"], [1, "1/9"]]},
        ],
        "inclusion": [[["-1/4", "5/4"]], [["5/4", "-1/4"]]],
        "separator": ["1", "-1", "-9/5", "1/5"],
        "tap": 0,
    }
    return certificate(claim, "no_shared_map", body)


def hard_heads():
    """C20.lemma3: the limit of the quadratic heads, K = 3 on three pixels.

    Head δ attends to the pixel nearest to q + δ: head -1 to 0, 0, 1, head 0 to 0, 1, 2, head 1 to
    1, 2, 2. With weights w the layer puts w(-1) + w(0) on (0, 0), w(-1) on (1, 0), w(0) on (1, 1).
    The tap -1 wants 0, 1, 0 there, but the first is the sum of the others.
    """
    rows = [
        [[1, 0, 0], [1, 0, 0], [0, 1, 0]],
        [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
        [[0, 1, 0], [0, 0, 1], [0, 0, 1]],
    ]
    unit = [["1", "0", "0"], ["0", "1", "0"], ["0", "0", "1"]]
    body = {
        "kernel_size": [3],
        "pixels": [3],
        "heads": [{"rows": [[str(x) for x in row] for row in head]} for head in rows],
        "inclusion": [[unit[1], unit[2]], unit, [unit[0], unit[1]]],
        "separator": ["1", "0", "0", "-1", "-1", "0", "0", "0", "0"],
        "tap": -1,
    }
    return certificate("C20.lemma3", "no_shared_map", body)


def rank():
    body = {
        "head_dimension": 2,
        "out_channels": 5,
        "in_channels": 3,
        "value": [[1, 2], [3, 4], [5, 6]],
        "output": [[1, 0, 2, 0, 3], [0, 1, 0, -1, 4]],
        "rank": 2,
    }
    return certificate("C20.rank", "rank", body)


E_SUM = sum(Fraction(1, factorial(n)) for n in range(41))  # less than e by under 1/(40! 40)


def saturation(alpha=46, exponent=-126, conclusion="survives"):
    body = {
        "alpha": alpha,
        "exponent": exponent,
        "e_lower": "2718281828459045235/1000000000000000000",
        "e_upper": "2718281828459045236/1000000000000000000",
        "conclusion": conclusion,
    }
    for name in ("e_lower", "e_upper"):
        body[name] = rational(body[name])
    return certificate("C20.alpha46", "saturation", body)


def border(claim="C20.padding", patch=(1, 1)):
    """A 4×5 image (in patches), the kernel of ones: how many pixels does each output read?"""
    image = [4 * patch[0], 5 * patch[1]]
    queries = [[0, 2], [2, 4]]

    def reads(x, side):
        return sum(0 <= x + tap < side for tap in (-1, 0, 1))

    sums = [
        [
            reads(patch[0] * token[0] + a, image[0]) * reads(patch[1] * token[1] + b, image[1])
            for a, b in product(range(patch[0]), range(patch[1]))
        ]
        for token in queries
    ]
    if sums[0] == sums[1]:
        queries[1], sums[1] = [1, 1], [9] * prod(patch)
    body = {
        "kernel_size": [3, 3],
        "image_size": image,
        "patch_size": list(patch),
        "kernel": [1] * 9,
        "queries": queries,
        "sums": sums,
    }
    return certificate(claim, "border", body)


def commuting_dimension(grid, boundary, shifts):
    """Entry by entry Phi A_d = A_d Phi says that two entries are equal, or one of them zero: so the
    dimension is the number of classes of equal entries, less the class of zero."""
    places = list(product(*map(range, grid)))
    classes = {"zero": {"zero"}} | {pair: {pair} for pair in product(places, places)}

    def entry(m, n):
        if boundary == "torus":
            m, n = (tuple(c % side for c, side in zip(p, grid, strict=True)) for p in (m, n))
        return (m, n) if (m, n) in classes else "zero"

    for shift in shifts:
        for m, n in product(places, places):
            left = entry(m, tuple(c - d for c, d in zip(n, shift, strict=True)))
            right = entry(tuple(c + d for c, d in zip(m, shift, strict=True)), n)
            if classes[left] is not classes[right]:
                joined = classes[left] | classes[right]
                classes |= dict.fromkeys(joined, joined)
    return len({id(found) for found in classes.values()}) - 1


def commutant(grid=(2, 3), boundary="bare", shifts=None):
    if shifts is None:
        shifts = [
            [sign * (axis == other) for other in range(len(grid))]
            for axis in range(len(grid))
            for sign in (1, -1)
        ]
    body = {
        "grid": list(grid),
        "boundary": boundary,
        "shifts": [list(shift) for shift in shifts],
        "dimension": commuting_dimension(grid, boundary, shifts),
    }
    return certificate("A19.equivariance", "commutant", body)


def series_of_exponential(exponent, terms):
    """Σ_(n ≤ terms) x^n/n!, term by term."""
    return sum(Fraction(exponent) ** n / factorial(n) for n in range(terms + 1))


def quadratic_variation(alpha="3", axes=2, terms=40, squares=3, bound=None):
    """S.saturation: r = e^-α rounded up at 12 places, and the least bound that follows from it."""
    power = Fraction(int(10**12 / series_of_exponential(alpha, terms)) + 1, 10**12)
    theta = 1 + 2 * sum(power ** (n * n) for n in range(1, squares + 1))
    theta += 2 * power ** ((squares + 1) ** 2) / (1 - power)
    body = {
        "score": "quadratic",
        "sharpness": rational(alpha),
        "terms": terms,
        "power": rational(power),
        "bound": rational(bound or Fraction(int((1 - theta**-axes) * 10**9) + 1, 10**9)),
        "axes": axes,
        "squares": squares,
    }
    return certificate("S.saturation", "total_variation", body)


def bias_variation(logit="3", keys=9, power="20", bound="2/7"):
    """S.saturation: e^3 > 20, so eight other keys have at most 8/28."""
    body = {
        "score": "bias",
        "sharpness": logit,
        "terms": 40,
        "power": power,
        "bound": bound,
        "keys": keys,
    }
    return certificate("S.saturation", "total_variation", body)


def two_masks():
    """S.kernel: taps -1, 0, 1 in one dimension, two channels out: (1, 2, 1) and (1, 0, -1).

    Heads (1, 2, 1) + d, (1, 0, -1) + d and d = (0, 0, 1), u = 1 each: V = the channels' maps, which
    in F's columns (1, 1), (2, 0), (1, -1) are e_0 = column 0 / 2 + column 2 / 2 = column 1 / 2, and
    e_1 = column 0 - column 1 / 2.
    """
    body = {
        "kernel_size": [3],
        "patch_size": [1],
        "in_channels": 1,
        "out_channels": 2,
        "kernel": [1, 1, 2, 0, 1, -1],
        "heads": 3,
        "attention": [["1", "2", "2", "1"], ["1", "0", "0", "1"], ["0", "0", "1", "1"]],
        "values": sparse([(0, 1, "1/2"), (1, 0, 1), (1, 1, "-1/2"), (2, 0, -1)]),
        "rows": [[0, 0, 0, 0], [0, 0, 0, 1]],
        "columns": [[-1], [0]],
        "determinant": -2,
        "unread": [2],
        "tokens_per_side": [3],
        "limit": {"combination": ["1", "0"]},
    }
    return certificate("S.kernel", "kernel_heads", body)


def mixed_sign():
    """S.kernel: one channel, (1, 0, -1): two heads even in the limit, as F (1, 1, 1)ᵀ = 0."""
    body = {
        "kernel_size": [3],
        "patch_size": [1],
        "in_channels": 1,
        "out_channels": 1,
        "kernel": [1, 0, -1],
        "heads": 2,
        "attention": [["1", "0", "0", "1"], ["0", "0", "1", "1"]],
        "values": sparse([(0, 0, 1), (1, 0, -1)]),
        "rows": [[0, 0, 0, 0]],
        "columns": [[-1]],
        "determinant": 1,
        "unread": [0],
        "tokens_per_side": [2],
        "limit": {"positive": ["1", "1", "1"]},
    }
    return certificate("S.kernel", "kernel_heads", body)


def box_of_patches():
    """S.kernel: the box (1, 1, 1) on patches of two.

    F has the rows (0, 1, 1), (0, 1, 0), (1, 1, 0) for q - p = -1, 0, 1. All three offsets
    are needed: unit heads and a uniform one.
    """
    body = {
        "kernel_size": [3],
        "patch_size": [2],
        "in_channels": 1,
        "out_channels": 1,
        "kernel": [1, 1, 1],
        "heads": 4,
        "attention": [[str(int(h == d)) for d in range(3)] + ["1"] for h in range(4)],
        "values": sparse([(h, h, 1) for h in range(3)] + [(3, h, -1) for h in range(3)]),
        "rows": [[0, 1, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0]],
        "columns": [[-1], [0], [1]],
        "determinant": 1,
        "unread": [2],
        "tokens_per_side": [3],
        "limit": {"combination": ["0", "1", "0"]},
    }
    return certificate("S.kernel", "kernel_heads", body)


def two_of_three():
    """S.approx: taps 3, 2, 1, each into its own channel, two heads: G = diag(9, 4, 1).

    One direction, the first tap, and the uniform head: the distance is 4 + 1, that of any two heads
    at least 1.
    """
    body = {
        "kernel_size": [3],
        "patch_size": [1],
        "in_channels": 1,
        "out_channels": 3,
        "kernel": [3, 0, 0, 0, 2, 0, 0, 0, 1],
        "heads": 2,
        "attention": [["1", "0", "0", "1"], ["0", "0", "0", "1"]],
        "values": sparse([(0, 0, 1), (1, 0, -1)]),
        "thresholds": ["3999999/1000000", "999999/1000000"],
        "error": "5",
    }
    return certificate("S.approx", "approximation", body)


def box_in_part():
    """S.approx: the box on patches of two, three heads.

    The rows are those of `box_of_patches`, the middle one twice, so G = [[1, 1, 0], [1, 4, 1],
    [0, 1, 1]] with the eigenvalues (5 ± √17)/2 = 4.56155…, 0.43844… and 1. The heads have the first
    two directions: (2, 3 + √17, 2), rounded, and (1, 0, -1).
    """
    gram = [[1, 1, 0], [1, 4, 1], [0, 1, 1]]
    directions = [[Fraction(2), Fraction(3) + Fraction(4123106, 10**6), Fraction(2)]]
    directions.append([Fraction(1), Fraction(0), Fraction(-1)])
    norms = [sum(x * x for x in row) for row in directions]
    shift = [Fraction(0), Fraction(0), Fraction(1)]
    rows = [[x + s for x, s in zip(row, shift, strict=True)] for row in directions] + [shift]
    maps = [[x / norm for x in row] for row, norm in zip(directions, norms, strict=True)]
    maps.append([-sum(column) for column in zip(*maps, strict=True)])
    off = [
        [
            sum(m[a] * d[b] for m, d in zip(maps, directions, strict=False)) - (a == b)
            for b in range(3)
        ]
        for a in range(3)
    ]
    error = sum(
        off[a][c] * gram[a][b] * off[b][c] for a in range(3) for b in range(3) for c in range(3)
    )
    body = {
        "kernel_size": [3],
        "patch_size": [2],
        "in_channels": 1,
        "out_channels": 1,
        "kernel": [1, 1, 1],
        "heads": 3,
        "attention": [[rational(x) for x in (*row, Fraction(1))] for row in rows],
        "values": sparse((h, a, row[a]) for h, row in enumerate(maps) for a in range(3)),
        "thresholds": ["438447/1000000"],
        "error": rational(error),
    }
    return certificate("S.approx", "approximation", body)


# The second set.


def depth_bound():
    return pixel_bound("S.depth")


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
    body = {
        "kernel_size": [9, 9],
        "patch_size": [2, 2],
        "in_channels": 2,
        "out_channels": 1,
        "kernel": kernel,
        "rows": rows,
        "columns": columns,
        "determinant": 1,
        "heads": 18,
        "tokens_per_side": [3, 3],
    }
    return certificate("S.tiles", "lower_bound", body)


def two_layers(kernel=(3, 3), patch=(1, 1), image=(2, 2), leak="1/3", narrow=False):
    """S.depth: the gain of the last head is what makes one token vanish that no offset joins."""
    leak = Fraction(leak)
    down, right = (axis_offsets(k, p) for k, p in zip(kernel, patch, strict=True))
    margin = [[max(map(abs, steps))] * 2 for steps in (down, right)]
    if narrow:
        margin = [[down[-1], -down[0]], [-right[0], right[-1]]]
    ring = [[-down[0], down[-1]], [0, 0]]
    between = prod(n + sum(pair) for n, pair in zip(image, margin, strict=True))
    columns = image[1] + sum(margin[1])
    keys = between + sum(ring[0]) * columns
    # Every head of layer 1 writes X/(1-leak): a far token's share in block a at any token.
    far = leak / (1 - leak) / keys
    seen = 1 / Fraction(between) + far  # what J makes of block a: the token once, and the leaks
    excess = (1 - leak) * far + leak * seen  # of head b, times 1/(1-leak)
    back = -excess / (1 - leak) / seen
    entries = [
        [b, a, a * len(right) + b, rational(1 / (1 - leak))]
        for b, a in product(range(len(right)), range(len(down)))
    ]
    if leak:
        entries += [
            [len(right), a, a * len(right) + b, rational(back)]
            for b, a in product(range(len(right)), range(len(down)))
        ]
    body = {
        "kernel_size": list(kernel),
        "patch_size": list(patch),
        "image": list(image),
        "margin": margin,
        "leak": rational(leak),
        "blocks": len(down),
        "first": {
            "ring": ring,
            "targets": [[a, 0] for a in down],
            "maps": [[rational(1 / (1 - leak) if a == b else 0) for b in down] for a in down],
        },
        "second": {
            "targets": [[0, b] for b in right] + ([None] if leak else []),
            "maps": entries,
        },
    }
    return certificate("S.depth", "two_layers", body)


def exponentials(kernel=3, patch=1, tokens=5):
    """S.barrier: an offset ahead is seen from the first token, one behind from the last."""
    offsets = axis_offsets(kernel, patch)
    heads = tokens - offsets[-1] - 1
    body = {
        "kernel_size": [kernel],
        "patch_size": [patch],
        "tokens": tokens,
        "heads": heads,
        "places": [[0, offsets[-1] + 1] if offset >= 0 else [tokens - 1, 0] for offset in offsets],
    }
    return certificate("S.barrier", "exponentials", body)
