"""Certificates of lower bounds that are wrong."""

from mutants.mutant import wrong_certificate
from mutants.subjects import amended, edited

from convattn.ledger.certificates.lower_bound import box_bound_certificate, pixel_bound_certificate

STATEMENT = "So many heads are necessary."


def pixels():
    return pixel_bound_certificate("L21.theorem5", STATEMENT, 3, 9, 1)


def three_channels():
    return pixel_bound_certificate("L21.theorem5", STATEMENT, 3, 3, 1)


def box():
    return box_bound_certificate("L21.theorem6", STATEMENT, 3, 2)


def centre_alone(body):
    """Take the unit kernel, which one head computes; its minor is singular, and said to be."""
    body["kernel"] = [0, 0, 0, 0, 1, 0, 0, 0, 0]
    body["determinant"] = 0


def row_twice(body):
    """Repeat a row, and keep the determinant."""
    body["rows"][1] = body["rows"][0]


def rows_exchanged(body):
    """Exchange two rows without the sign."""
    body["rows"][:2] = reversed(body["rows"][:2])


def pixels_by_axis(body):
    """Order a row's pixels as (p, q) on the first axis, then on the second."""
    body["rows"] = [[p1, q1, p2, q2, i, j] for p1, p2, q1, q2, i, j in body["rows"]]


MUTANTS = (
    wrong_certificate(
        "bound-of-a-singular-minor",
        "The kernel does not need the heads: the minor is singular.",
        box,
        edited(box, centre_alone),
        r"determinant: determinant 0, expected that of the minor, 0, and not 0",
    ),
    wrong_certificate(
        "bound-with-a-row-twice",
        "A row of the minor is counted twice.",
        box,
        edited(box, row_twice),
        r"determinant: determinant 1, expected that of the minor, 0",
    ),
    wrong_certificate(
        "bound-with-a-wrong-sign",
        "Two rows are exchanged, and the sign of the determinant is not.",
        box,
        edited(box, rows_exchanged),
        r"determinant: determinant 1, expected that of the minor, -1",
    ),
    wrong_certificate(
        "bound-with-pixels-by-axis",
        "The rows' pixels are ordered axis by axis, as the tap index needs them.",
        box,
        edited(box, pixels_by_axis),
        r"determinant: determinant 1, expected that of the minor, 0",
    ),
    wrong_certificate(
        "bound-with-one-head-more",
        "K² + 1 heads are claimed to be necessary.",
        pixels,
        amended(pixels, heads=10),
        r"heads: L21\.theorem5 needs min\(prod K, D_in \* D_out\) heads",
    ),
    wrong_certificate(
        "bound-of-k-squared-heads-for-few-channels",
        "K² heads are claimed for 3 channels in and 1 out, where 3 heads do.",
        three_channels,
        amended(three_channels, heads=9),
        r"heads: L21\.theorem5 needs min\(prod K, D_in \* D_out\) heads",
    ),
    wrong_certificate(
        "bound-on-a-small-image",
        "One token a side, so that no query has a neighbour.",
        box,
        amended(box, tokens_per_side=[1, 1]),
        r"tokens: tokens_per_side is \[1, 1\], expected \[2, 2\]",
    ),
)
