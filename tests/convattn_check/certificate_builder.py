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
    taps = {}
    for output in range(0, patch, skip):
        for index in range(kernel):
            read = start + output + (index - (kernel - 1) // 2) * dilation
            taps[read // patch - 10_000, output, read % patch] = index
    return taps


def axis_offsets(kernel, patch, dilation=1, skip=1):
    """Those that some pixel of the token reads, also where the stride skips this pixel."""
    return sorted({offset for offset, _, _ in walk_axis(kernel, patch, dilation, 1)})


def axis_pattern(kernel, patch, dilation=1, skip=1):
    taps = walk_axis(kernel, patch, dilation, skip)
    return [
        [[taps.get((offset, p, q), -1) for q in range(patch)] for p in range(0, patch, skip)]
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


def equality(claim, regime, body, heads, attention, values):
    body = body | {"regime": regime, "heads": heads, "attention": attention, "values": values}
    return certificate(claim, "equality", body)


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
    values = sparse((h, count - 1 - h, 1) for h in range(count))
    return equality(claim, "limit", body, count, attention, values)


def leaky_equality(claim="S.finite", leak="1/2", **sizes):
    body = geometry(**sizes)
    count, leak = len(body["offsets"]), Fraction(leak)
    values = [(h, h, 1 / (1 - leak)) for h in range(count)]
    values += [(count, h, -leak / (1 - leak)) for h in range(count)]
    targets = [*body["offsets"], None]
    attention = {"family": "leaky_one_hot", "leak": rational(leak), "targets": targets}
    return equality(claim, "finite", body, count + 1, attention, sparse(values))


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
    attention = {"family": "scalar_power", "bases": [*map(rational, bases)], "exponents": exponents}
    return equality(claim, "finite", body, count + 1, attention, values)


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


def no_shared_map(pixels, heads, inclusion, separator, size=1, tap=0, claim="C20.lemma3"):
    """Heads on a line of pixels: each is {"rows": ...} or {"relative": ...}."""
    body = {
        "kernel_size": [size],
        "pixels": [pixels],
        "heads": heads,
        "inclusion": inclusion,
        "separator": separator,
        "tap": tap,
    }
    return certificate(claim, "no_shared_map", body)


def units(count):
    return [[str(int(at == unit)) for at in range(count)] for unit in range(count)]


def pixel_heads():
    """C20.lemma3: two pixels, K = 1, head i attends to pixel i from every query."""
    heads = [{"rows": [row] * 2} for row in units(2)]
    return no_shared_map(2, heads, [[row] for row in units(2)], ["1", "0", "-1", "0"])


def relative_heads(claim="C20.lemma3"):
    """C20.lemma3 with finite relative scores: rows (.5 .5), (.9 .1) and (.1 .9), (.5 .5).

    Head 0: a = (1/2, 1/2; 1/10, 9/10), head 1: b = (9/10, 1/10; 1/2, 1/2). Σ y a = Σ y b = 0 for
    y = (1, -1; s, t) with s/10 + 9t/10 = 0 and 8/10 + s/2 + t/2 = 0: t = 1/5, s = -9/5.
    """
    heads = [
        {"relative": [[-1, "1/9"], [0, "1"], [1, "1"]]},
        {"relative": [[-1, "1"], [0, "1"], [1, "1/9"]]},
    ]
    inclusion = [[["-1/4", "5/4"]], [["5/4", "-1/4"]]]
    return no_shared_map(2, heads, inclusion, ["1", "-1", "-9/5", "1/5"], claim=claim)


def hard_heads():
    """C20.lemma3: the limit of the quadratic heads, K = 3 on three pixels.

    Head δ attends to the pixel nearest to q + δ: head -1 to 0, 0, 1, head 0 to 0, 1, 2, head 1 to
    1, 2, 2. With weights w the layer puts w(-1) + w(0) on (0, 0), w(-1) on (1, 0), w(0) on (1, 1).
    The tap -1 wants 0, 1, 0 there, but the first is the sum of the others.
    """
    unit = units(3)
    heads = [{"rows": [unit[at] for at in row]} for row in ((0, 0, 1), (0, 1, 2), (1, 2, 2))]
    separator = ["1", "0", "0", "-1", "-1", "0", "0", "0", "0"]
    return no_shared_map(3, heads, [unit[1:], unit, unit[:2]], separator, size=3, tap=-1)


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
        "e_lower": rational("2.718281828459045235"),
        "e_upper": rational("2.718281828459045236"),
        "conclusion": conclusion,
    }
    return certificate("C20.alpha46", "saturation", body)


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
    return len({id(members) for members in classes.values()}) - 1


def commutant(grid=(2, 3), boundary="bare", shifts=None):
    if shifts is None:
        axes = range(len(grid))
        shifts = [[sign * (a == b) for b in axes] for a in axes for sign in (1, -1)]
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
    average = 1 / Fraction(between) + far  # what J makes of block a: the token once, and the leaks
    excess = (1 - leak) * far + leak * average  # of head b, times 1/(1-leak)
    back = -excess / (1 - leak) / average
    offsets = [(b, a, a * len(right) + b) for b, a in product(range(len(right)), range(len(down)))]
    entries = [[b, a, offset, rational(1 / (1 - leak))] for b, a, offset in offsets]
    if leak:
        entries += [[len(right), a, offset, rational(back)] for _, a, offset in offsets]
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
