"""Every claim of the ledger: its verdict and kinds, and what holds of all of them alike."""

import pytest
from proofs.plants.planting import load

from convattn.ledger import Kind, Level, NotRunHere, Run, Verdict
from convattn.ledger.locations import certificates_directory, proofs_directory

# Folder: the paper's short name, how its sources begin, and for each claim verdict and kinds.
PAPERS = {
    "cordonnier2020": (
        "C20",
        "Cordonnier, Loukas, Jaggi 2020, ",
        {
            "eq3": ("holds", "identity"),
            "eq7": ("holds", "identity"),
            "eq8": ("amended", "identity"),
            "lemma1": ("amended", "layer equality"),
            "lemma2": ("amended", "limit"),
            "theorem1": ("amended", "layer equality", "limit"),
            "padding": ("amended", "layer equality", "limit"),
            "stride": ("holds", "layer equality", "limit"),
            "dilation": ("holds", "layer equality", "limit"),
            "sequence": ("holds", "layer equality", "limit"),
            "alpha46": ("refuted", "refutation"),
            "rank": ("refuted", "refutation"),
            "lemma3": ("refuted", "refutation"),
            "eq18": ("holds", "identity"),
            "eq19": ("holds", "identity"),
            "table1": ("amended", "identity"),
            "quadratic": ("not run", "experiment"),
            "learned": ("not run", "experiment"),
            "content": ("not run", "experiment"),
            "gaussian": ("not run", "experiment"),
            "pruned": ("not run", "experiment"),
            "heads16": ("not run", "experiment"),
        },
    ),
    "li2021": (
        "L21",
        "Li et al. 2021, ",
        {
            "lemma2": ("amended", "limit"),
            "theorem1": ("amended", "layer equality", "limit"),
            "wo": ("holds", "layer equality"),
            "cor3": ("amended", "layer equality", "limit"),
            "cor4": ("sharpened", "layer equality", "limit"),
            "variants": ("amended", "layer equality", "limit"),
            "absolute": ("amended", "layer equality", "limit"),
            "theorem5": ("sharpened", "lower bound"),
            "theorem6": ("amended", "lower bound", "layer equality"),
            "fewer": ("amended", "identity"),
            "table1": ("amended", "identity"),
            "twophase": ("not run", "experiment"),
        },
    ),
    "andreoli2019": (
        "A19",
        "Andreoli 2019, ",
        {
            "mixed": ("holds", "identity"),
            "prop1": ("holds", "identity"),
            "prop2": ("holds", "identity"),
            "prop3": ("holds", "identity"),
            "reductions": ("amended", "identity"),
            "orders": ("holds", "identity"),
            "grid": ("amended", "identity"),
            "equivariance": ("amended", "identity"),
            "graph": ("amended", "identity"),
            "attention": ("amended", "identity"),
            "biaffine": ("holds", "identity"),
            "gat": ("holds", "identity"),
            "transformer": ("holds", "identity"),
            "shiftheads": ("holds", "identity"),
        },
    ),
    "barkan2019": (
        "B19",
        "Barkan 2019, ",
        {
            "lemma1": ("amended", "identity"),
            "softmax": ("amended", "identity"),
            "sa2d": ("amended", "identity"),
            "sac": ("sharpened", "identity", "layer equality", "limit"),
            "msac": ("amended", "identity"),
            "language": ("amended", "identity"),
            "cross": ("amended", "identity"),
        },
    ),
    "sharpened": (
        "S",
        "this project",
        {
            "finite": ("holds", "layer equality"),
            "dp1": ("holds", "layer equality"),
            "dp2": ("holds", "layer equality", "limit"),
            "padding": ("holds", "layer equality", "limit"),
            "boundary": ("holds", "layer equality", "limit"),
            "heads": ("holds", "lower bound"),
            "content": ("holds", "lower bound"),
            "kernel": ("holds", "layer equality", "lower bound"),
            "approx": ("holds", "lower bound"),
            "headdim": ("amended", "lower bound", "layer equality"),
            "saturation": ("holds", "limit"),
            "lemma3": ("holds", "layer equality"),
            "separable": ("holds", "identity", "layer equality"),
            "network": ("holds", "layer equality"),
        },
    ),
}
CLAIMS = [(folder, name) for folder, (_, _, claims) in PAPERS.items() for name in claims]


@pytest.mark.parametrize(("folder", "name"), CLAIMS)
def test_claims_are_as_stated(folder, name) -> None:
    paper, source, claims = PAPERS[folder]
    claim, (verdict, *kinds) = load(folder, name), claims[name]
    assert claim.id == f"{paper}.{name}"
    assert claim.verdict is Verdict(verdict)
    assert claim.kinds == tuple(Kind(kind) for kind in kinds)
    assert claim.source.startswith(source)


def test_every_file_is_in_the_table() -> None:
    files = {(path.parent.name, path.stem) for path in proofs_directory().glob("*/*.py")}
    assert set(CLAIMS) == files


@pytest.mark.slow
@pytest.mark.parametrize(("folder", "name"), CLAIMS)
def test_something_is_quick_and_passes(folder, name) -> None:
    """What `verify` alone runs is left to it: certificates, theorems, whole images."""
    claim = load(folder, name)
    quick = [piece for piece in claim.evidence if piece.quick]
    assert quick
    for piece in quick:
        run = Run(1, True, certificates_directory(), claim.id, piece.name)
        if claim.verdict is Verdict.NOT_RUN and piece.level is Level.MEASURED:
            with pytest.raises(NotRunHere, match="NOT RUN: no run was submitted for this row"):
                piece.check(run)
        elif piece.level in (Level.TESTED, Level.ENCLOSED):
            assert piece.check(run)


def test_every_theorem_names_the_clauses_that_it_covers() -> None:
    pieces = [piece for folder, name in CLAIMS for piece in load(folder, name).evidence]
    proved = [piece for piece in pieces if piece.level is Level.PROVED]
    assert len(proved) > 80
    for piece in proved:
        assert piece.covers, piece.name
        assert piece.theorem().startswith("Theorem ")
