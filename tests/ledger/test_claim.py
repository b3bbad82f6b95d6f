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


@pytest.mark.parametrize("id", ["", "lemma1", "C20", "c20.lemma1", "C20.Lemma1", "C20.a b", "C20."])
def test_ids_that_are_refused(id):
    with pytest.raises(ValueError, match="id"):
        build(id=id)


@pytest.mark.parametrize("kind", Kind)
def test_every_kind_accepts_its_levels_and_names_each_one_that_is_missing(kind):
    required = REQUIRED_LEVELS[kind]
    assert build((kind,), required).required_levels == required
    for missing in required:
        others = [level for level in required if level is not missing] or [Level.PROVED]
        with pytest.raises(ValueError, match=rf"expected {missing.name} for the kind"):
            build((kind,), others)


def test_a_stronger_level_does_not_stand_in_for_a_required_one():
    with pytest.raises(ValueError, match="expected BOUNDED for the kind"):
        build((Kind.LAYER_EQUALITY,), (Level.PROVED, Level.CERTIFIED))


def test_the_levels_of_all_kinds_are_required():
    kinds = (Kind.LIMIT, Kind.REFUTATION)
    with pytest.raises(ValueError, match="expected CERTIFIED for the kind limit, refutation"):
        build(kinds, (Level.ENCLOSED, Level.BOUNDED))
    assert build(kinds, (Level.ENCLOSED, Level.BOUNDED, Level.CERTIFIED)).kinds == kinds


def test_a_refuted_claim_needs_a_certified_counterexample():
    with pytest.raises(ValueError, match=r"Kind\.REFUTATION among them"):
        build(verdict=Verdict.REFUTED)
    assert build((Kind.REFUTATION,), (Level.CERTIFIED,), verdict=Verdict.REFUTED)


@pytest.mark.parametrize("verdict", [Verdict.REPRODUCED, Verdict.NOT_REPRODUCED, Verdict.NOT_RUN])
def test_verdicts_for_experiments_are_for_experiments_alone(verdict):
    with pytest.raises(ValueError, match="for experiments"):
        build((Kind.EXPERIMENT, Kind.IDENTITY), (Level.MEASURED, Level.TESTED), verdict=verdict)
    assert build((Kind.EXPERIMENT,), (Level.MEASURED,), verdict=verdict)


def test_an_experiment_that_was_not_run_needs_no_measurement():
    not_run = build((Kind.EXPERIMENT,), (Level.TESTED,), verdict=Verdict.NOT_RUN)
    assert not_run.required_levels == frozenset()
    with pytest.raises(ValueError, match="expected MEASURED for the kind"):
        build((Kind.EXPERIMENT,), (Level.TESTED,), verdict=Verdict.REPRODUCED)


def test_measurements_are_for_experiments_only():
    with pytest.raises(ValueError, match="none of level MEASURED, which is for experiments only"):
        build(levels=(Level.TESTED, Level.MEASURED))


def test_evidence_must_be_there_and_have_distinct_names():
    with pytest.raises(ValueError, match=r"evidence=\(\), but expected a non-empty tuple"):
        Claim("C20.eq7", "Eq. 7", Verdict.HOLDS, (Kind.IDENTITY,), ())
    with pytest.raises(ValueError, match=r"named \['same'\], but expected distinct"):
        Claim(
            "C20.eq7",
            "Eq. 7",
            Verdict.HOLDS,
            (Kind.IDENTITY,),
            (piece(Level.TESTED, "same"), piece(Level.PROVED, "same")),
        )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"source": "  "}, "source='', but expected the paper"),
        ({"verdict": "holds"}, "expected a Verdict"),
        ({"kinds": Kind.IDENTITY}, "expected a non-empty tuple of Kind"),
        ({"kinds": ()}, r"kinds=\(\), but expected"),
        ({"evidence": (passing,)}, "expected a non-empty tuple of Evidence"),
    ],
)
def test_fields_of_the_wrong_sort_are_refused(changes, message):
    fields = {
        "id": "C20.eq7",
        "source": "Eq. 7",
        "verdict": Verdict.HOLDS,
        "kinds": (Kind.IDENTITY,),
        "evidence": (piece(Level.TESTED),),
    }
    with pytest.raises(ValueError, match=message):
        Claim(**{**fields, **changes})


def test_evidence_of_the_wrong_sort_is_refused():
    with pytest.raises(ValueError, match="trimmed line"):
        Evidence(" padded", Level.TESTED, passing)
    with pytest.raises(ValueError, match="takes a Run"):
        Evidence("name", Level.TESTED, "passing")
    with pytest.raises(TypeError, match=r"such as Level\.CERTIFIED"):
        Evidence("name", 4, passing)


def test_a_generator_depends_on_seed_claim_evidence_and_salt_and_on_nothing_else(tmp_path):
    def draw(seed=0, claim="S.dp1", evidence="exact", salt=("a", 1), quick=False):
        run = Run(seed, quick, tmp_path, claim, evidence)
        return int(run.rng(*salt).integers(2**63))

    draws = [
        draw(),
        draw(seed=1),
        draw(claim="S.dp2"),
        draw(evidence="other"),
        draw(salt=("a", "1")),
        draw(salt=("a1",)),
        draw(salt=()),
    ]
    assert len(set(draws)) == len(draws)
    assert draw(quick=True) == draw()


def test_salt_of_another_type_is_refused(tmp_path):
    with pytest.raises(TypeError, match="integers and strings"):
        Run(0, False, tmp_path).rng(0.5)
