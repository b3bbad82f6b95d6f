"""Exponentials: quadratic heads of one sharpness and any centres cannot be exact on a line of N.

A head with the scores -α(k - q - Δ)² on N keys 0, …, N - 1 (and zero tokens beyond them, or none)
gives key k at query q the weight

    c e^(-αk²) e^(2αk(q + Δ)) = v_k c' x^k,      v_k = e^(-α(k - q)²) > 0, x = e^(2αΔ) > 0,

with c' > 0 that depends on the head and the query, not on the key. If H heads of one α are the
convolution, then for every entry of its maps, W_δ the kernel's at the token offset δ, and every q

    v_k Σ_h c'_h w_h x_h^k = W_(k - q) for k - q an offset, and 0 for any other key k.

Let W_δ ≠ 0, let q and q + δ be tokens and s, …, s + H - 1 be keys out of reach of q. There the sum
vanishes. Heads of one x may be taken together, so let the x_h be distinct. The matrix of the
x_h^(s + i) has the determinant Π x_h^s Π_(g<h) (x_h - x_g), which is not zero; so all c'_h w_h are
zero, and W_δ with them. Hence no H heads will do, nor fewer, for no kernel but zero, if for each
offset δ there are such q and s. On an image the same holds for each row of keys.

The determinant is expanded here as a polynomial in the x_h.
"""

from fractions import Fraction
from itertools import permutations

from convattn_check import reading as read
from convattn_check.claims import Facts, require_claim
from convattn_check.convolution import Axis
from convattn_check.polynomial import Polynomial, add_monomial, constant, multiply
from convattn_check.reject import require, show

MOST_HEADS = 7  # the determinant has H! terms


def check_exponentials(claim: str, value: object) -> str:
    """Check the body; the sentence that follows from it."""
    body = read.fields(value, "body", ["kernel_size", "patch_size", "tokens", "heads", "places"])
    kernel = read.sides(body["kernel_size"], "kernel_size", 1)
    patch = read.sides(body["patch_size"], "patch_size", 1)
    tokens = read.integer(body["tokens"], "tokens", 1, read.LARGEST_POSITION)
    heads = read.integer(body["heads"], "heads", 1, MOST_HEADS)
    offsets = Axis(*kernel, *patch).offsets()
    require_claim(
        Facts("exponentials", claim, kernel, patch, heads=heads, offsets=len(offsets), nodes=tokens)
    )
    pairs = read.items(body["places"], "places", len(offsets))
    for offset, pair in zip(offsets, pairs, strict=True):
        query, start = read.position(pair, "a place", (tokens - 1, tokens - 1))
        outside = range(start, start + heads)
        require(
            0 <= query + offset < tokens
            and outside.stop <= tokens
            and not {query + other for other in offsets} & {*outside},
            "places",
            f"from the token {query} of {tokens} the offset {offset} is seen, and the {heads} keys "
            f"from {start} are out of reach: this is wrong; the offsets are {show(offsets)}",
        )
    require(
        determinant(heads) == differences(heads),
        "determinant",
        f"the determinant of the powers of {heads} unknowns is not the product of their "
        "differences",
    )
    return (
        f"no {heads} quadratic heads of one finite sharpness, whatever their centres and values, "
        f"are the zero-padded convolution with a kernel of size {kernel[0]} that is not zero, "
        f"patch {patch[0]}, on {tokens} tokens"
    )


def determinant(size: int) -> Polynomial:
    """Of the matrix of x_h^i, i from 0, by its definition.

    >>> determinant(2)
    {(1,): Fraction(1, 1), (0,): Fraction(-1, 1)}
    """
    total: Polynomial = {}
    for order in permutations(range(size)):
        swaps = sum(a > b for at, b in enumerate(order) for a in order[:at])
        monomial = tuple(x for x, power in enumerate(order) for _ in range(power))
        add_monomial(total, monomial, Fraction((-1) ** swaps))
    return total


def differences(size: int) -> Polynomial:
    """The product of x_h - x_g over g < h, which is not zero for distinct numbers.

    >>> differences(2)
    {(1,): Fraction(1, 1), (0,): Fraction(-1, 1)}
    """
    total = constant(1)
    for larger in range(size):
        for smaller in range(larger):
            factor: Polynomial = {(larger,): Fraction(1), (smaller,): Fraction(-1)}
            total = multiply(total, factor)
    return total
