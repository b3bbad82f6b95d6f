import pytest

from convattn_ledger import Claim, Evidence, Kind, Level, Run, Verdict
from convattn_ledger.claim import REQUIRED_LEVELS


def passing(run):
    return "seen"


def piece(level, name=None):
    return Evidence(name or level.name.lower(), level, passing)


def build(kinds=(Kind.IDENTITY,), levels=(Level.TESTED,), id="C20.eq7", verdict=Verdict.HOLDS):
    return Claim(id, "Eq. 7", verdict, kinds, tuple(piece(level) for level in levels))


def test_levels_are_ordered_as_the_ledger_says():
    names = ["PROVED", "CERTIFIED", "ENCLOSED", "BOUNDED", "TESTED", "MEASURED"]
    assert [level.name for level in sorted(Level, reverse=True)] == names


@pytest.mark.parametrize("id", ["C20.lemma1", "S.finite", "L21.cor3", "B19.sa2d", "X1.own_claim"])
def test_ids_that_are_accepted(id):
    assert build(id=id).paper == id.split(".")[0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        *(({"id": id}, "claim id=") for id in ("", "lemma1", "C20", "c20.lemma1", "C20.Lemma1")),
        *(({"id": id}, "claim id=") for id in ("C20.a b", "C20.")),
        ({"source": "  "}, "source=''"),
        ({"verdict": "holds"}, "expected a Verdict"),
        ({"kinds": Kind.IDENTITY}, "expected a non-empty tuple of Kind"),
        ({"kinds": ()}, r"kinds=\(\), but expected"),
        ({"evidence": ()}, r"evidence=\(\), but expected a non-empty tuple"),
        ({"evidence": (passing,)}, "expected a non-empty tuple of Evidence"),
        (
            {"evidence": (piece(Level.TESTED, "same"), piece(Level.PROVED, "same"))},
            r"named \['same'\], but expected distinct",
        ),
    ],
)
def test_fields_that_are_refused(changes, message):
    fields = {
        "id": "C20.eq7",
        "source": "Eq. 7",
        "verdict": Verdict.HOLDS,
        "kinds": (Kind.IDENTITY,),
        "evidence": (piece(Level.TESTED),),
    }
    Claim(**fields)
    with pytest.raises(ValueError, match=message):
        Claim(**{**fields, **changes})


@pytest.mark.parametrize("kind", Kind)
def test_every_kind_accepts_its_levels_and_names_each_one_that_is_missing(kind):
    required = REQUIRED_LEVELS[kind]
    assert build((kind,), required).required_levels == required
    for missing in required:
        others = [level for level in required if level is not missing] or [Level.PROVED]
        with pytest.raises(ValueError, match=rf"expected {missing.name} for the kind"):
            build((kind,), others)


EXPERIMENT = (Kind.EXPERIMENT, Kind.IDENTITY)
BOTH = (Level.ENCLOSED, Level.BOUNDED, Level.CERTIFIED)


@pytest.mark.parametrize(
    ("kinds", "levels", "verdict", "message"),
    [
        # A stronger level does not stand in for a required one.
        (
            (Kind.LAYER_EQUALITY,),
            (Level.PROVED, Level.CERTIFIED),
            Verdict.HOLDS,
            "expected BOUNDED for the kind",
        ),
        (
            (Kind.LIMIT, Kind.REFUTATION),
            (Level.ENCLOSED, Level.BOUNDED),
            Verdict.HOLDS,
            "expected CERTIFIED for the kind limit, refutation",
        ),
        ((Kind.IDENTITY,), (Level.TESTED, Level.MEASURED), Verdict.HOLDS, "none of level MEASURED"),
        ((Kind.IDENTITY,), (Level.TESTED,), Verdict.REFUTED, r"Kind\.REFUTATION among them"),
        (EXPERIMENT[:1], (Level.TESTED,), Verdict.REPRODUCED, "expected MEASURED for the kind"),
        *(
            (EXPERIMENT, (Level.MEASURED, Level.TESTED), verdict, "for experiments")
            for verdict in (Verdict.REPRODUCED, Verdict.NOT_REPRODUCED, Verdict.NOT_RUN)
        ),
    ],
)
def test_levels_that_are_refused(kinds, levels, verdict, message):
    with pytest.raises(ValueError, match=message):
        build(kinds, levels, verdict=verdict)


@pytest.mark.parametrize(
    ("kinds", "levels", "verdict"),
    [
        ((Kind.LIMIT, Kind.REFUTATION), BOTH, Verdict.HOLDS),
        ((Kind.REFUTATION,), (Level.CERTIFIED,), Verdict.REFUTED),
        (EXPERIMENT[:1], (Level.MEASURED,), Verdict.REPRODUCED),
        (EXPERIMENT[:1], (Level.MEASURED,), Verdict.NOT_REPRODUCED),
        (EXPERIMENT[:1], (Level.TESTED,), Verdict.NOT_RUN),
    ],
)
def test_levels_that_are_enough(kinds, levels, verdict):
    claim = build(kinds, levels, verdict=verdict)
    assert claim.required_levels <= {*levels}
    assert bool(claim.required_levels) == (verdict is not Verdict.NOT_RUN)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((" padded", Level.TESTED, passing), ValueError, "name=' padded'"),
        (("name", Level.TESTED, "passing"), ValueError, "check='passing'"),
        (("name", 4, passing), TypeError, "level=4"),
    ],
)
def test_evidence_of_the_wrong_sort_is_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        Evidence(*arguments)


def test_a_generator_depends_on_seed_claim_evidence_and_salt_and_on_nothing_else(tmp_path):
    def draw(seed=0, claim="S.dp1", evidence="exact", salt=("a", 1), quick=False):
        run = Run(seed, quick, tmp_path, claim, evidence)
        return int(run.rng(*salt).integers(2**63))

    changes = [{}, {"seed": 1}, {"claim": "S.dp2"}, {"evidence": "other"}]
    changes += [{"salt": salt} for salt in (("a", "1"), ("a1",), ())]
    assert len({draw(**change) for change in changes}) == len(changes)
    assert draw(quick=True) == draw()


def test_salt_of_another_type_is_refused(tmp_path):
    with pytest.raises(TypeError, match="integers and strings"):
        Run(0, False, tmp_path).rng(0.5)
