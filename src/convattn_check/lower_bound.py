"""Lower bound: fewer heads than this cannot compute this convolution, whatever they attend to.

Write F_δ for the matrix that the convolution puts between the query's token and token q + δ: its
entry for (output pixel p, input pixel q, channel i in, channel j out) is W_(Pδ+q-p)[i, j]. If the
layer Σ_h A_h X W_h + b is the convolution, then for all queries n and all δ with n + δ in the image

    F_δ = Σ_h A_h(n, n + δ) W_h,

so F_δ lies in the span of W_1, …, W_(N_H), whatever the attention rows are. The values are shared
by all queries, so this holds for every δ that occurs at some query: in an image of max|δ| + 1
tokens a side all of them do, with a ring of zero tokens around it or without. Hence the matrix F
with the columns vec(F_δ) factors through N_H dimensions, and N_H ≥ rank F; in the limit too, since
the matrices of rank at most N_H are a closed set. And rank F ≥ n if an n × n minor is not 0: over
the rationals, and so over the reals and every field of characteristic 0.
"""

from math import prod

from convattn_check import reading as read
from convattn_check.claims import Facts, require_claim
from convattn_check.convolution import Axis, kernel_entry
from convattn_check.elimination import eliminate
from convattn_check.reject import require, show

MOST_HEADS = 128
FIELDS = (
    "kernel_size patch_size in_channels out_channels kernel rows columns determinant heads "
    "tokens_per_side"
)


def check_lower_bound(claim: str, value: object) -> str:
    """Check the body; the sentence that follows from it."""
    body = read.fields(value, "body", FIELDS.split())
    size = read.sides(body["kernel_size"], "kernel_size", None)
    number_of_axes, most = len(size), read.LARGEST_POSITION
    patch = read.sides(body["patch_size"], "patch_size", number_of_axes)
    inputs = read.integer(body["in_channels"], "in_channels", 1, most)
    outputs = read.integer(body["out_channels"], "out_channels", 1, most)
    kernel = read.entries(body["kernel"], "kernel", prod(size) * inputs * outputs)
    heads = read.integer(body["heads"], "heads", 1, MOST_HEADS)
    facts = Facts("lower_bound", claim, size, patch, channels=(inputs, outputs), heads=heads)
    require_claim(facts)

    last = [p - 1 for p in patch + patch] + [inputs - 1, outputs - 1]
    rows = [read.position(row, "a row", last) for row in read.items(body["rows"], "rows", heads)]
    columns = [
        read.integers(column, "a column", number_of_axes, -most, most)
        for column in read.items(body["columns"], "columns", heads)
    ]
    tokens = [max(map(abs, offsets)) + 1 for offsets in zip(*columns, strict=True)]
    require(
        read.same(body["tokens_per_side"], tokens),
        "tokens",
        f"tokens_per_side is {show(body['tokens_per_side'])}, expected {tokens}: on each axis one "
        "more than the furthest column, so that every column occurs at some query",
    )
    axes = [Axis(k, p) for k, p in zip(size, patch, strict=True)]
    minor = [
        [kernel_entry(axes, kernel, outputs, row, column) for column in columns] for row in rows
    ]
    _, determinant = eliminate(minor)
    given = read.integer(body["determinant"], "determinant")
    require(
        given == determinant and determinant != 0,
        "determinant",
        f"determinant {show(given)}, expected that of the minor, {show(determinant)}, and not 0",
    )
    return (
        f"for this {facts.size} kernel with {inputs} channels in and {outputs} out, patch {patch}: "
        f"no layer with fewer than {heads} heads, whatever they attend to by position, is the "
        f"zero-padded convolution on {tokens} tokens or more"
    )
