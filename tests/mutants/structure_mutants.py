"""Certificates on grids that are wrong: what commutes with their shifts."""

from mutants.mutant import wrong_certificate
from mutants.subjects import amended, edited

from convattn.ledger.certificates.commutant import commutant_certificate

STATEMENT = "Commuting with the shifts is more than depending on n - m alone."


def on(boundary, *grid):
    return lambda: commutant_certificate("A19.equivariance", STATEMENT, grid, boundary)


BARE, TORUS, IMAGE = on("bare", 5), on("torus", 5), on("bare", 2, 3)

MUTANTS = (
    wrong_certificate(
        "commutant-of-the-bare-grid-is-that-of-the-torus",
        "Equivariance on the bare grid is read off the torus.",
        BARE,
        amended(BARE, dimension=5),
        r"commutant: dimension 5, computed 1",
    ),
    wrong_certificate(
        "commutant-of-the-bare-grid-is-all-shifts",
        "Whatever depends on n - m alone, 2·5 - 1 numbers, is thought to commute.",
        BARE,
        amended(BARE, dimension=9),
        r"commutant: dimension 9, computed 1",
    ),
    wrong_certificate(
        "commutant-of-the-torus-is-the-identity",
        "The border is thought to matter on the torus, too.",
        TORUS,
        amended(TORUS, dimension=1),
        r"commutant: dimension 1, computed 5",
    ),
    wrong_certificate(
        "commutant-of-a-torus-called-bare",
        "The shifts go round at the border of a bare grid.",
        TORUS,
        amended(TORUS, boundary="bare"),
        r"commutant: dimension 5, computed 1",
    ),
    wrong_certificate(
        "commutant-of-one-axis",
        "The rows of the image are shifted and the columns are not.",
        IMAGE,
        edited(IMAGE, lambda body: body.update(shifts=body["shifts"][:2])),
        r"commutant: dimension 1, computed 9",
    ),
    wrong_certificate(
        "commutant-of-one-direction",
        "Only the shift by +1 is asked, which every causal convolution passes.",
        BARE,
        amended(BARE, shifts=[[1]], dimension=5),
        r"claim: A19\.equivariance needs dimension 1 on the bare grid",
    ),
    wrong_certificate(
        "commutant-of-a-single-node",
        "One node is no evidence: everything commutes there.",
        BARE,
        amended(BARE, grid=[1]),
        r"claim: A19\.equivariance needs at least two nodes",
    ),
)
