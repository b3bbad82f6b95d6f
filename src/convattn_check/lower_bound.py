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

from convattn_check import reading as read
from convattn_check.claims import Facts, require_claim
from convattn_check.given_kernel import furthest, read_convolution, read_minor, require_tokens

MOST_HEADS = 128
FIELDS = (
    "kernel_size patch_size in_channels out_channels kernel rows columns determinant heads "
    "tokens_per_side"
)


def check_lower_bound(claim: str, value: object) -> str:
    """Check the body; the sentence that follows from it."""
    body = read.fields(value, "body", FIELDS.split())
    kernel = read_convolution(body)
    heads = read.integer(body["heads"], "heads", 1, MOST_HEADS)
    facts = Facts(
        "lower_bound", claim, kernel.size, kernel.patch, channels=kernel.channels, heads=heads
    )
    require_claim(facts)
    _, columns = read_minor(body, kernel, heads)
    tokens = furthest(columns)
    require_tokens(
        body, tokens, "one more than the furthest column, so that every column occurs at some query"
    )
    inputs, outputs = kernel.channels
    return (
        f"for this {facts.size} kernel with {inputs} channels in and {outputs} out, patch "
        f"{kernel.patch}: no layer with fewer than {heads} heads, whatever they attend to by "
        f"position, is the zero-padded convolution on {tokens} tokens or more"
    )
