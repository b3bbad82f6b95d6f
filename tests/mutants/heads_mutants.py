"""Certificates of numbers of heads that are wrong: generic bounds, head dimensions."""

from mutants.mutant import wrong_certificate
from mutants.subjects import amended, edited

from convattn.ledger.certificates.head_dimension import head_dimension_certificate
from convattn.ledger.certificates.lower_bound import generic_bound_certificate

STATEMENT = "So many heads are necessary."


def generic():
    """K = 9, P = 2: 18 rows for two channel pairs, 25 offsets."""
    return generic_bound_certificate(STATEMENT, 9, 2, 2, 1)


def base_model():
    """K = 3, P = 16, three channels, d_H = 64: 20 heads, and 20 suffice."""
    return head_dimension_certificate(STATEMENT, 3, 16, 3, 3, 64, "limit")


def base_model_exact():
    return head_dimension_certificate(STATEMENT, 3, 16, 3, 3, 64, "finite")


def below_the_diagonal(body):
    """Let the tap before the centre read channel 1 into channel 0."""
    body["kernel"][3 * 9 + 3] = 1


def one_tap(body):
    body.update(kernel_size=[1, 1], patch_size=[1, 1], in_channels=1, kernel=[1], heads=1)
    body.update(rows=[[0] * 6], columns=[[0, 0]], determinant=1, tokens_per_side=[1, 1])


def centre_among_the_offsets(body):
    """Count the centre's column, whose heads are counted by their dimension already."""
    body["columns"][0] = [0, 0]


MUTANTS = (
    wrong_certificate(
        "heads-for-every-offset",
        "(2m+1)² heads are claimed where two channel pairs have (2P-1)²·2 rows only.",
        generic,
        amended(generic, heads=25),
        r"heads: S\.heads needs min\(\(2m\+1\)\^axes",
    ),
    wrong_certificate(
        "heads-of-the-printed-range",
        "Nine heads are claimed, as for 3 ≤ K ≤ 2P + 1, where K = 9 and P = 2.",
        generic,
        amended(generic, heads=9),
        r"heads: S\.heads needs min\(\(2m\+1\)\^axes",
    ),
    wrong_certificate(
        "head-dimension-of-one-hot-heads",
        "Twelve heads of 64 are claimed, enough for the centre's map alone.",
        base_model,
        amended(base_model, sufficient=12),
        r"heads: sufficient is 12, expected 20",
    ),
    wrong_certificate(
        "head-dimension-without-the-uniform-head",
        "At finite scores 20 heads are claimed, without the uniform head's twelve.",
        base_model_exact,
        amended(base_model_exact, sufficient=20),
        r"heads: sufficient is 20, expected 32",
    ),
    wrong_certificate(
        "heads-of-a-single-map",
        "A kernel of one tap takes no fewer than one head, like any other.",
        generic,
        edited(generic, one_tap),
        r"heads: S\.heads needs at least 2 heads",
    ),
    wrong_certificate(
        "head-dimension-of-one-pixel",
        "The bound is claimed for an image in which no other token is read.",
        base_model,
        amended(base_model, tokens_per_side=[1, 1]),
        r"tokens: tokens_per_side is \[1, 1\], expected \[2, 2\]",
    ),
    wrong_certificate(
        "head-dimension-without-an-outside",
        "At finite scores the bound is claimed where every token is in the receptive field.",
        base_model_exact,
        amended(base_model_exact, tokens_per_side=[2, 2]),
        r"tokens: tokens_per_side is \[2, 2\], expected \[3, 2\]",
    ),
    wrong_certificate(
        "head-dimension-bound-too-high",
        "32 heads are claimed to be necessary, where 24 are shown to be.",
        base_model_exact,
        amended(base_model_exact, necessary=32),
        r"heads: necessary is 32, expected 24",
    ),
    wrong_certificate(
        "head-dimension-of-a-kernel-that-is-not-triangular",
        "Other taps may cancel the centre's map, so that it needs no twelve heads of its own.",
        base_model,
        edited(base_model, below_the_diagonal),
        r"triangular: tap \(0, -1\) has 1 from channel 1 to 0",
    ),
    wrong_certificate(
        "head-dimension-counts-the-centre-twice",
        "The centre is among the offsets whose heads are removed.",
        base_model,
        edited(base_model, centre_among_the_offsets),
        r"offsets: the offset 0 is among the columns",
    ),
)
