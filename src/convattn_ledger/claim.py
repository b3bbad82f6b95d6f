"""A claim of the ledger and the evidence for it, with the rules that every claim must meet.

A claim states what became of a printed statement (its verdict), what sort of statement it is (its
kinds), and carries evidence of graded strength (levels). The kinds decide which levels of evidence
a claim must have; a claim that lacks one of them cannot be constructed.
"""

import enum
import re
from collections.abc import Callable
from dataclasses import dataclass

from convattn_ledger.run import EvidenceFailed as EvidenceFailed
from convattn_ledger.run import NotRunHere as NotRunHere
from convattn_ledger.run import Run as Run
from convattn_ledger.run import require as require


class Verdict(enum.StrEnum):
    """What became of the printed statement."""

    HOLDS = "holds"
    AMENDED = "amended"
    REFUTED = "refuted"
    SHARPENED = "sharpened"
    REPRODUCED = "reproduced"
    NOT_REPRODUCED = "not reproduced"
    NOT_RUN = "not run"
    NOT_JUDGED = "not judged"

    @property
    def heading(self) -> str:
        """What the section Verified of such a claim is shown under."""
        if self is Verdict.NOT_RUN:
            return "What is known"
        if self is Verdict.NOT_JUDGED:
            return "What is shown here"
        return "What is true" if self is Verdict.REFUTED else "As verified"


class Level(enum.IntEnum):
    """How strong a piece of evidence is; a greater level is stronger.

    Example:
        >>> Level.PROVED > Level.CERTIFIED > Level.MEASURED
        True
    """

    MEASURED = 1  # a number of one training run, for experiments only
    TESTED = 2  # property-tested over generated cases
    BOUNDED = 3  # a floating-point run within a bound derived beforehand
    ENCLOSED = 4  # a rigorous enclosure by ball arithmetic
    CERTIFIED = 5  # an exact certificate for one size, accepted by the independent checker
    PROVED = 6  # machine-checked for all sizes


class Kind(enum.StrEnum):
    """What sort of statement a claim is."""

    LAYER_EQUALITY = "layer equality"
    LOWER_BOUND = "lower bound"
    LIMIT = "limit"
    REFUTATION = "refutation"
    IDENTITY = "identity"
    EXPERIMENT = "experiment"


REQUIRED_LEVELS: dict[Kind, frozenset[Level]] = {
    Kind.LAYER_EQUALITY: frozenset({Level.CERTIFIED, Level.BOUNDED}),
    Kind.LOWER_BOUND: frozenset({Level.CERTIFIED, Level.BOUNDED}),
    Kind.LIMIT: frozenset({Level.ENCLOSED, Level.BOUNDED}),
    Kind.REFUTATION: frozenset({Level.CERTIFIED}),
    Kind.IDENTITY: frozenset({Level.TESTED}),
    Kind.EXPERIMENT: frozenset({Level.MEASURED}),
}
EXPERIMENT_VERDICTS = (Verdict.REPRODUCED, Verdict.NOT_REPRODUCED, Verdict.NOT_RUN)
ID_PATTERN = re.compile(r"[A-Z][0-9]{0,2}\.[a-z][a-z0-9_]*")


@dataclass(frozen=True)
class Evidence:
    """One piece of evidence.

    Attributes:
        name: Short and unique within the claim.
        level: How strong the evidence is if it passes.
        check: Looks for the evidence. Returns the numbers it computed in one line (or, for a
            counterexample, in several), raises `EvidenceFailed` if they contradict the claim and
            `NotRunHere` if this machine cannot tell. Any other exception is a failure too.
        assumes: What is taken on trust, such as the accuracy of a device's exponential.
        quick: Whether the check belongs to a quick verification (a second or two).
        covers: For the level PROVED, which clauses of the claim the theorem proves; for CERTIFIED,
            the values at which the certificates have what the claim leaves open.
        theorem: Reads the machine-checked theorem, if the evidence is one.
        files: Where in the repository the theorem or the certificates stand.

    Raises:
        ValueError: If the name is empty or the check cannot be called.
        TypeError: If the level is not a `Level`.
    """

    name: str
    level: Level
    check: Callable[[Run], str]
    assumes: str = ""
    quick: bool = True
    covers: str = ""
    theorem: Callable[[], str] | None = None
    files: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.name or self.name != self.name.strip() or "\n" in self.name:
            raise ValueError(f"evidence name={self.name!r}, but expected one trimmed line")
        if not isinstance(self.level, Level):
            raise TypeError(
                f"evidence {self.name!r}: level={self.level!r}, but expected a Level such as "
                "Level.CERTIFIED"
            )
        if not callable(self.check):
            raise ValueError(
                f"evidence {self.name!r}: check={self.check!r}, but expected a function that takes "
                "a Run and returns a line of text"
            )


@dataclass(frozen=True)
class Claim:
    """One claim of the ledger.

    Attributes:
        id: The paper's short name, a dot and a name, such as ``C20.lemma1`` or ``S.finite``.
        source: Where the statement stands, such as ``"Cordonnier et al. 2020, Lemma 1"``.
        verdict: What became of it.
        kinds: What sorts of statement it is; they decide which levels are required.
        evidence: The evidence, with distinct names.

    Raises:
        ValueError: If the id is malformed, the source, the kinds or the evidence are empty, a name
            of evidence occurs twice, a level required by a kind is missing, measurements stand
            outside an experiment, or the verdict does not go with the kinds.

    Example:
        >>> tested = Evidence("random matrices", Level.TESTED, lambda run: "100 cases equal")
        >>> claim = Claim("C20.eq7", "Eq. 7", Verdict.HOLDS, (Kind.IDENTITY,), (tested,))
        >>> claim.paper
        'C20'
        >>> Claim("C20.eq7", "Eq. 7", Verdict.HOLDS, (Kind.LIMIT,), (tested,))
        Traceback (most recent call last):
            ...
        ValueError: claim C20.eq7: levels=TESTED, but expected ENCLOSED, BOUNDED for the kind \
limit; add that evidence, or state the kind that the claim really is
    """

    id: str
    source: str
    verdict: Verdict
    kinds: tuple[Kind, ...]
    evidence: tuple[Evidence, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.id, str) or not ID_PATTERN.fullmatch(self.id):
            raise ValueError(
                f"claim id={self.id!r}, but expected a paper's short name, a dot and a name in "
                "lower case, such as 'C20.lemma1'"
            )
        self._require(self.source.strip(), "source=''", "the paper and the place")
        self._require(isinstance(self.verdict, Verdict), f"verdict={self.verdict!r}", "a Verdict")
        for field, values, member in (
            ("kinds", self.kinds, Kind),
            ("evidence", self.evidence, Evidence),
        ):
            right = isinstance(values, tuple) and all(isinstance(v, member) for v in values)
            self._require(
                right and values, f"{field}={values!r}", f"a non-empty tuple of {member.__name__}"
            )
        names = [evidence.name for evidence in self.evidence]
        twice = sorted({name for name in names if names.count(name) > 1})
        self._require(not twice, f"several pieces of evidence are named {twice}", "distinct names")
        self._check_kinds()

    @property
    def paper(self) -> str:
        """The short name of the paper: the part of the id before the dot."""
        return self.id.partition(".")[0]

    @property
    def required_levels(self) -> frozenset[Level]:
        """The levels that the kinds require; none for an experiment that was not run."""
        if self.verdict is Verdict.NOT_RUN:
            return frozenset()
        return frozenset().union(*(REQUIRED_LEVELS[kind] for kind in self.kinds))

    def _require(self, condition: object, actual: str, expected: str) -> None:
        if not condition:
            raise ValueError(f"claim {self.id}: {actual}, but expected {expected}")

    def _check_kinds(self) -> None:
        """The verdict and the levels of the evidence must go with the kinds."""
        kinds = ", ".join(self.kinds)
        self._require(
            self.verdict is not Verdict.REFUTED or Kind.REFUTATION in self.kinds,
            f"kinds={kinds}",
            "Kind.REFUTATION among them, as it is refuted; add it, with a certified counterexample",
        )
        self._require(
            self.verdict not in EXPERIMENT_VERDICTS or self.kinds == (Kind.EXPERIMENT,),
            f"kinds={kinds}",
            f"Kind.EXPERIMENT alone, as the verdict '{self.verdict}' is for experiments",
        )
        present = {evidence.level for evidence in self.evidence}
        missing = self.required_levels - present
        self._require(
            not missing,
            f"levels={_names(present)}",
            f"{_names(missing)} for the kind {kinds}; add that evidence, or state the kind that "
            "the claim really is",
        )
        self._require(
            Level.MEASURED not in present or Kind.EXPERIMENT in self.kinds,
            f"levels={_names(present)}",
            f"none of level MEASURED, which is for experiments only, for the kind {kinds}; derive "
            "a bound (BOUNDED) or test it (TESTED)",
        )


def _names(levels: frozenset[Level] | set[Level]) -> str:
    return ", ".join(level.name for level in sorted(levels, reverse=True))
