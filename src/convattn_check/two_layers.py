"""Two layers: on one image size their composition is the zero-padded convolution, for every kernel.

Zero tokens are laid around the image, which gives N2 tokens, and layer 1 is applied at each of
them; it sees N1 keys, those tokens and a ring of zero tokens of its own. Layer 2 is applied at the
image's tokens and sees the N2 outputs of layer 1. Nothing stands between them.

A head with a target has at a query q the row (1 - leak) S_(q + target) + leak J over N keys, J the
uniform row; without one it has J. For 0 < leak < 1 this is a softmax of finite scores, of the bias
log(1 + N(1/leak - 1)) at the target and 0 elsewhere; leak 0 is the limit. The target must be a key
of every query.

Between the layers stand blocks of channels, each as wide as a token. Head h of layer 1 writes
u_hb X into block b; head g of layer 2 takes block b through Σ_δ v_gbδ M_δ, M_δ the convolution's
map at the token offset δ (convolution.py). So the composition is

    Σ_g Σ_h A2_g A1_h X Σ_δ (Σ_b u_hb v_gbδ) M_δ,

and the convolution is Σ_δ S_δ X M_δ. They agree for every kernel, every image of this size and any
number of channels, as X is zero outside the image, if for all tokens q, k of the image and all δ

    Σ_g Σ_h (Σ_b u_hb v_gbδ) (A2_g A1_h)(q, k) = [k - q = δ].

The products of the attention matrices are computed here, entry by entry.
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from math import lcm, prod

from convattn_check import reading as read
from convattn_check.attention import Offset
from convattn_check.claims import Facts, require_claim
from convattn_check.convolution import Axis
from convattn_check.cost import Work, longest, whole_numbers
from convattn_check.reject import Reject, require, show

FIELDS = ("kernel_size", "patch_size", "image", "margin", "leak", "blocks", "first", "second")
MOST_TOKENS, MOST_HEADS = 512, 64
Matrix = list[list[int]]  # numerators over a denominator that all rows of a layer share
Ring = list[list[int]]
Weights = tuple[list[list[dict[int, int]]], int]


def check_two_layers(claim: str, value: object) -> str:
    """Check the body; the sentence that follows from it."""
    body = read.fields(value, "body", FIELDS)
    kernel = read.sides(body["kernel_size"], "kernel_size", 2)
    patch = read.sides(body["patch_size"], "patch_size", 2)
    image = read.sides(body["image"], "image", 2)
    sides = [Axis(k, p).offsets() for k, p in zip(kernel, patch, strict=True)]
    offsets = list(product(*sides))
    leak = read.rational(body["leak"], "leak")
    require(0 <= leak < 1, "attention", f"leak is {show(leak)}, expected 0 <= leak < 1")
    blocks = read.integer(body["blocks"], "blocks", 1, MOST_HEADS)

    first = read.fields(body["first"], "first", ["ring", "targets", "maps"])
    second = read.fields(body["second"], "second", ["targets", "maps"])
    image_tokens = list(product(*map(range, image)))
    between = _surrounded(image_tokens, _ring(body["margin"], "margin"))
    keys = _surrounded(between, _ring(first["ring"], "first.ring"))
    rows_1 = _attention(first["targets"], "first", leak, between, keys)
    rows_2 = _attention(second["targets"], "second", leak, image_tokens, between)
    facts = Facts("two_layers", claim, kernel, patch, offsets=len(offsets))
    facts.layers, facts.sides = (len(rows_1), len(rows_2)), tuple(map(len, sides))
    facts.room = all(n > max(map(abs, steps)) for n, steps in zip(image, sides, strict=True))
    facts.regime = "finite" if leak else "limit"
    work = Work("the product of the attention matrices")
    weights = _weights(first["maps"], second["maps"], facts.layers, blocks, len(offsets), work)
    inside = [keys.index(token) for token in image_tokens]
    _require_identity(rows_1, rows_2, weights, image_tokens, inside, offsets, work)
    require_claim(facts)
    scores = "finite scores" if leak else "scores in the limit"
    return (
        f"for every {facts.size} kernel, D_in and D_out, on images of {image[0]} x {image[1]} "
        f"tokens: two layers of {len(rows_1)} and {len(rows_2)} heads ({scores}) compose to the "
        f"zero-padded convolution; patch {patch}"
    )


def _ring(value: object, where: str) -> Ring:
    return read.array(
        value, where, lambda pair, at: read.integers(pair, at, 2, 0, read.LARGEST_SIDE), 2
    )


def _surrounded(tokens: Sequence[Offset], ring: Ring) -> list[Offset]:
    """The rectangle of these tokens with a ring around it, row-major.

    >>> _surrounded([(0, 0), (0, 1)], [[0, 0], [1, 0]])
    [(0, -1), (0, 0), (0, 1)]
    """
    sides = [
        range(tokens[0][axis] - low, tokens[-1][axis] + high + 1)
        for axis, (low, high) in enumerate(ring)
    ]
    number = prod(map(len, sides))
    require(number <= MOST_TOKENS, "range", f"{number} tokens, expected up to {MOST_TOKENS}")
    return list(product(*sides))


def _attention(
    value: object, where: str, leak: Fraction, queries: Sequence[Offset], keys: Sequence[Offset]
) -> list[tuple[Matrix, int]]:
    """For each head the numerators of its matrix, and their denominator."""
    targets = read.items(value, f"{where}.targets")
    require(
        1 <= len(targets) <= MOST_HEADS,
        "range",
        f"{where} has {len(targets)} heads, expected 1 to {MOST_HEADS}",
    )
    positions = {key: number for number, key in enumerate(keys)}
    # leak/N and 1 - leak, over the denominator N times that of the leak
    everywhere = leak.numerator
    there = (leak.denominator - leak.numerator) * len(keys)
    heads = []
    for head, target in enumerate(targets):
        if target is None:
            heads.append(([[1] * len(keys) for _ in queries], len(keys)))
            continue
        shift = read.integers(target, f"{where}.targets[{head}]", 2)
        matrix = []
        for query in queries:
            key = (query[0] + shift[0], query[1] + shift[1])
            require(
                key in positions,
                "attention",
                f"head {head} of {where} looks at {show(key)} from {show(query)}, and there is no "
                "key",
            )
            row = [everywhere] * len(keys)
            row[positions[key]] += there
            matrix.append(row)
        heads.append((matrix, leak.denominator * len(keys)))
    return heads


def _weights(
    first: object,
    second: object,
    layers: Sequence[int],
    blocks: int,
    offsets: int,
    work: Work,
) -> Weights:
    """Σ_b u_hb v_gbδ, by [g][h][δ], what is not zero, and the denominator of all."""
    copies = read.array(
        first, "first.maps", lambda head, at: read.rationals(head, at, blocks), layers[0]
    )
    flat, unit = whole_numbers([entry for copy in copies for entry in copy], "first.maps")
    indices, coefficients = [], []
    for number, entry in enumerate(read.items(second, "second.maps")):
        where = f"second.maps[{number}]"
        *index, coefficient = read.items(entry, where, 4)
        indices.append(read.position(index, where, (layers[1] - 1, blocks - 1, offsets - 1)))
        coefficients.append(read.rational(coefficient, where))
    whole, divisor = whole_numbers(coefficients, "second.maps")
    weights: list[list[dict[int, int]]] = [[{} for _ in copies] for _ in range(layers[1])]
    long = longest(flat)
    for (head, block, offset), by in zip(indices, whole, strict=True):
        work.add(len(copies), long, by.bit_length())
        for row, copied in zip(weights[head], flat[block::blocks], strict=True):
            if copied * by:
                row[offset] = row.get(offset, 0) + copied * by
    return weights, unit * divisor


def _require_identity(
    first: list[tuple[Matrix, int]],
    second: list[tuple[Matrix, int]],
    weights: Weights,
    tokens: Sequence[Offset],
    inside: Sequence[int],
    offsets: Sequence[Offset],
    work: Work,
) -> None:
    """The sums of the docstring, in whole numbers over one denominator."""
    maps, unit = weights
    work.add(len(tokens) ** 2 * len(offsets))
    scale_1 = lcm(*(denominator for _, denominator in first))
    scale_2 = lcm(*(denominator for _, denominator in second))
    totals = [[[0] * len(offsets) for _ in tokens] for _ in tokens]
    columns = [
        ([[row[key] for row in matrix] for key in inside], scale_1 // denominator)
        for matrix, denominator in first
    ]
    long_1, long_2 = scale_1.bit_length(), scale_2.bit_length()
    for (matrix, denominator), by_head in zip(second, maps, strict=True):
        for (attended, times), row in zip(columns, by_head, strict=True):
            factor = times * (scale_2 // denominator)
            parts = [(at, weight * factor) for at, weight in row.items()]
            pairs = len(matrix) * len(attended)
            work.add(pairs * len(matrix[0]), long_1, long_2)
            work.add(pairs * len(parts), long_1 + long_2, longest(part for _, part in parts))
            for query, line in enumerate(matrix):
                for key, column in enumerate(attended):
                    composed = sum(a * b for a, b in zip(line, column, strict=True))
                    for at, part in parts:
                        totals[query][key][at] += composed * part
    one = unit * scale_1 * scale_2
    for (q, here), (k, there) in product(enumerate(tokens), repeat=2):
        for at, offset in enumerate(offsets):
            joined = (there[0] - here[0], there[1] - here[1]) == offset
            if totals[q][k][at] != (one if joined else 0):
                raise Reject(
                    "identity",
                    f"from {show(here)} the token {show(there)} gets the map of {show(offset)} "
                    f"{show(Fraction(totals[q][k][at], one))} times, expected {int(joined)}",
                )
