"""Head dimension: so many heads of dimension d_H are needed for this kernel, so many suffice.

M_δ is the matrix of the convolution between token q + δ and token q, of d_in = prod(P)·D_in rows
(pixel and channel in) and as many columns times D_out/D_in. A head of dimension d_H adds a
rank-d_H matrix V_h U_h, weighted by its attention.

*Enough, for every kernel.* M_δ has entries only in the rows of the input pixels, and in the columns
of the output pixels, that some tap joins. Its width is the smaller number of such rows or columns.
One head that looks at δ takes d_H of these rows (or columns), so Σ_δ ceil(width_δ / d_H) one-hot
heads are the convolution, in the limit. With finite scores every such head leaks the same share to
all keys, and a uniform head takes all leaks back (S.finite): its matrix has a width of
prod(P)·min(D_in, D_out) at most, and it is split likewise.

*Needed, for this kernel.* Let n = min(D_in, D_out). On the first n channels in and out, let W_0 be
upper triangular without a zero on its diagonal, and all other taps strictly upper triangular. Order
by channel first: then M_0 + Σ_(δ≠0) c_δ M_δ is triangular there, with the diagonal of W_0, so that
its rank is R = prod(P)·n at least, whatever the numbers c are. Let r offsets δ ≠ 0 be given whose
vec(M_δ) are independent: a minor of them is not 0. The matrix with these columns factors through
the heads' weights a_h(δ) at these δ, so r heads have independent weights there, and there are c
with a_h(0) + Σ c_δ a_h(δ) = 0 for those heads. The other N - r heads alone make up a matrix of
rank R:

    N ≥ r + ceil(R / d_H).

This is so of every layer, and of limits whose value maps stay bounded: there a layer remains. The
offsets δ must occur at some query each, so there are max|δ| + 1 tokens a side at least. With finite
scores, let a token of the image outside the receptive field have the weights c_h > 0: it is there
if the image has, on its first axis, one token more than the offsets reach forward. They are no
combination of the a_h(δ) at these δ: the M_δ would combine alike to 0, the matrix of that token. So
r + 1 heads can be removed as the r were. Also Σ c_h V_h U_h = 0, while all V_h, and all U_h,
together have the rank R (M_0 alone needs that), so that 2R ≤ N·d_H (Sylvester):

    N ≥ max(r + 1 + ceil(R / d_H), ceil(2R / d_H)).

Ranks are over the rationals, and so over the reals and every field of characteristic 0.
"""

from itertools import product
from math import prod

from convattn_check import reading as read
from convattn_check.claims import Facts, require_claim
from convattn_check.convolution import ABSENT
from convattn_check.given_kernel import (
    GivenKernel,
    furthest,
    read_convolution,
    read_minor,
    require_tokens,
)
from convattn_check.reject import require, show

FIELDS = (
    "kernel_size patch_size in_channels out_channels kernel head_dimension regime rows columns "
    "determinant tokens_per_side necessary sufficient"
)
MOST_ROWS = 128


def check_head_dimension(claim: str, value: object) -> str:
    """Check the body; the sentence that follows from it."""
    body = read.fields(value, "body", FIELDS.split())
    kernel = read_convolution(body)
    size, patch, (inputs, outputs) = kernel.size, kernel.patch, kernel.channels
    dimension = read.integer(body["head_dimension"], "head_dimension", 1)
    regime = read.string(body["regime"], "regime", ("limit", "finite"))
    full = prod(patch) * min(inputs, outputs)
    facts = Facts(
        "head_dimension", claim, size, patch, head_dimension=dimension, width=full, regime=regime
    )
    require_claim(facts)

    _require_triangular(kernel)
    order = len(read.array(body["rows"], "rows", lambda row, at: row))
    require(1 <= order <= MOST_ROWS, "range", f"{order} rows, expected 1 to {MOST_ROWS}")
    centre = [0] * len(size)
    places = read.items(body["columns"], "columns", order)
    require(centre not in places, "offsets", "the offset 0 is among the columns of the minor")
    _, columns = read_minor(body, kernel, order)
    tokens = furthest(columns)
    if regime == "finite":
        tokens[0] = max(tokens[0], kernel.axes[0].offsets()[-1] + 2)
    require_tokens(
        body,
        tokens,
        "one more than the furthest column; at finite scores, on the first axis, two more than the "
        "last offset",
    )
    heads_of = [-(-width // dimension) for width in _widths(kernel)]
    at_centre = -(-full // dimension)
    necessary, sufficient = len(columns) + at_centre, sum(heads_of)
    if regime == "finite":
        necessary = max(necessary + 1, -(-2 * full // dimension))
        sufficient += at_centre
    for name, expected in (("necessary", necessary), ("sufficient", sufficient)):
        stated = read.integer(body[name], name)
        require(stated == expected, "heads", f"{name} is {show(stated)}, expected {expected}")
    layers = (
        "layers with finite scores"
        if regime == "finite"
        else "layers, and limits of layers with bounded value maps,"
    )
    return (
        f"for this {facts.size} kernel with {inputs} channels in and {outputs} out, patch {patch}: "
        f"{layers} of heads of dimension {dimension} take at least {necessary} on {tokens} tokens "
        f"or more; {sufficient} suffice for every such kernel"
    )


def _require_triangular(kernel: GivenKernel) -> None:
    """On the first n channels, W_0 triangular and regular, the other taps strictly triangular."""
    inputs, outputs = kernel.channels
    taps = list(product(*(axis.taps() for axis in kernel.axes)))
    square = range(min(inputs, outputs))
    for number, tap in enumerate(taps):
        for i, j in product(square, square):
            entry = kernel.entries[(number * inputs + i) * outputs + j]
            on_diagonal = i == j and not any(tap)
            require(
                entry != 0 if on_diagonal else entry == 0 or i < j,
                "triangular",
                f"tap {tap} has {show(entry)} from channel {i} to {j}, expected an upper "
                "triangular matrix at the tap 0, without a zero on the diagonal, and strictly "
                "upper triangular ones elsewhere",
            )


def _widths(kernel: GivenKernel) -> list[int]:
    """For each offset, how many rows or columns of M_δ a tap can reach, the fewer of the two."""
    inputs, outputs = kernel.channels
    supports = []
    for axis in kernel.axes:
        supports.append(
            [
                (
                    sum(any(tap != ABSENT for tap in line) for line in zip(*table, strict=True)),
                    sum(any(tap != ABSENT for tap in line) for line in table),
                )
                for table in axis.pattern()
            ]
        )
    return [
        min(prod(a for a, _ in joined) * inputs, prod(b for _, b in joined) * outputs)
        for joined in product(*supports)
    ]
