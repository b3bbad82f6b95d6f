"""Rank: what a head's map can have."""

from convattn_check import reading as read
from convattn_check.claims import Facts, require_claim
from convattn_check.elimination import eliminate
from convattn_check.reject import require


def check_rank(claim: str, value: object) -> str:
    """A head's map value · output, of head dimension D_h, has rank D_h at most, not D_out - D_h.

    At most, since it factors through D_h numbers. To keep out matrices that are degenerate by
    choice, the rank must be the largest that a head can have, min(D_in, D_h). It is the rank over
    the rationals, and so over the reals and every field of characteristic 0.
    """
    names = ("head_dimension", "out_channels", "in_channels", "value", "output", "rank")
    body = read.fields(value, "body", names)
    dimension, outputs, inputs, stated = (
        read.integer(body[name], name, 1, read.LARGEST_SIDE)
        for name in ("head_dimension", "out_channels", "in_channels", "rank")
    )
    require_claim(Facts("rank", claim))
    left = read.matrix(body["value"], "value", inputs, dimension)
    right = read.matrix(body["output"], "output", dimension, outputs)
    columns = list(zip(*right, strict=True))
    rank, _ = eliminate(
        [
            [sum(a * b for a, b in zip(row, column, strict=True)) for column in columns]
            for row in left
        ]
    )
    require(
        stated == rank == min(inputs, dimension)
        and dimension < outputs
        and rank != outputs - dimension,
        "rank",
        f"rank {stated}, computed {rank}, D_in = {inputs}, D_h = {dimension}, D_out = {outputs}; "
        "expected the computed rank, min(D_in, D_h), not D_out - D_h, with D_h < D_out",
    )
    return (
        f"with D_h = {dimension} < D_out = {outputs} this head's map has the rank {rank} over "
        f"the reals, not D_out - D_h = {outputs - dimension}"
    )
