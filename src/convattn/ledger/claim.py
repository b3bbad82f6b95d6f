"""A claim of the ledger and the evidence for it, with the rules that every claim must meet.

A claim states what became of a printed statement (its verdict), what sort of statement it is (its
kinds), and carries evidence of graded strength (levels). The kinds decide which levels of evidence
a claim must have; a claim that lacks one of them cannot be constructed.
"""

import enum
import re
from collections.abc import Callable
from dataclasses import dataclass

from convattn.ledger.run import EvidenceFailed as EvidenceFailed
from convattn.ledger.run import NotRunHere as NotRunHere
from convattn.ledger.run import Run as Run


class Verdict(enum.StrEnum):
    """What became of the printed statement."""

    HOLDS = "holds"
    AMENDED = "amended"
    REFUTED = "refuted"
    SHARPENED = "sharpened"
    REPRODUCED = "reproduced"
    NOT_REPRODUCED = "not reproduced"
    NOT_RUN = "not run"


class Level(enum.IntEnum):
    """How strong a piece of evidence is; a greater level is stronger.

    Example:
        >>> Level.PROVED > Level.CERTIFIED > Level.MEASURED
        True
    """

    MEASURED = 1  # a run's figure, for experiments only
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
        check: Looks for the evidence. Returns the figures it saw in one line (or, for a
            counterexample, in several), raises `EvidenceFailed` if they speak against the claim
            and `NotRunHere` if this machine cannot tell. Any other exception is a failure too.
        assumes: What is taken on trust, such as the accuracy of a device's exponential.
        quick: Whether the check belongs to a quick verification (a second or two).

    Raises:
        ValueError: If the name is empty or the check cannot be called.
        TypeError: If the level is not a `Level`.
    """

    name: str
    level: Level
    check: Callable[[Run], str]
    assumes: str = ""
    quick: bool = True

    def __post_init__(self) -> None:
        if not self.name or self.name != self.name.strip() or "\n" in self.name:
            raise ValueError(f"evidence got the name {self.name!r}, but expected one trimmed line")
        if not isinstance(self.level, Level):
            raise TypeError(
                f"evidence {self.name!r} got the level {self.level!r}, but expected a Level "
                "such as Level.CERTIFIED"
            )
        if not callable(self.check):
            raise ValueError(
                f"evidence {self.name!r} got the check {self.check!r}, but expected a function "
                "that takes a Run and returns a line of text"
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
        ValueError: claim C20.eq7 of kind limit lacks evidence of level ENCLOSED, BOUNDED; it has \
TESTED: add that evidence, or state the kind that the claim really is
    """

    id: str
    source: str
    verdict: Verdict
    kinds: tuple[Kind, ...]
    evidence: tuple[Evidence, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.id, str) or not ID_PATTERN.fullmatch(self.id):
            raise ValueError(
                f"a claim got the id {self.id!r}, but expected a paper's short name, a dot and a "
                "name in lower case, such as 'C20.lemma1' or 'S.finite'"
            )
        if not self.source.strip():
            raise ValueError(f"claim {self.id} got an empty source: name the paper and the place")
        if not isinstance(self.verdict, Verdict):
            raise ValueError(f"claim {self.id} got the verdict {self.verdict!r}, not a Verdict")
        for field, values, member in (
            ("kinds", self.kinds, Kind),
            ("evidence", self.evidence, Evidence),
        ):
            if not isinstance(values, tuple) or not all(isinstance(v, member) for v in values):
                raise ValueError(
                    f"claim {self.id} got {field}={values!r}, but expected a tuple of "
                    f"{member.__name__} (one element needs a comma: (x,))"
                )
            if not values:
                raise ValueError(f"claim {self.id} got no {field}, but expected at least one")
        names = [evidence.name for evidence in self.evidence]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"claim {self.id} has several pieces of evidence named {twice}")
        self._check_verdict()
        self._check_levels()

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

    def _check_verdict(self) -> None:
        if self.verdict is Verdict.REFUTED and Kind.REFUTATION not in self.kinds:
            raise ValueError(
                f"claim {self.id} is refuted but its kinds are {', '.join(self.kinds)}: add "
                "Kind.REFUTATION, with a certified counterexample"
            )
        experiment = self.kinds == (Kind.EXPERIMENT,)
        if self.verdict in EXPERIMENT_VERDICTS and not experiment:
            raise ValueError(
                f"claim {self.id} has the verdict '{self.verdict}', which is for experiments, but "
                f"its kinds are {', '.join(self.kinds)}: expected (Kind.EXPERIMENT,) alone"
            )

    def _check_levels(self) -> None:
        present = {evidence.level for evidence in self.evidence}
        missing = self.required_levels - present
        if missing:
            raise ValueError(
                f"claim {self.id} of kind {', '.join(self.kinds)} lacks evidence of level "
                f"{_names(missing)}; it has {_names(present)}: add that evidence, or state the "
                "kind that the claim really is"
            )
        if Level.MEASURED in present and Kind.EXPERIMENT not in self.kinds:
            raise ValueError(
                f"claim {self.id} of kind {', '.join(self.kinds)} has evidence of level MEASURED, "
                "which is for experiments only: derive a bound (BOUNDED) or test it (TESTED)"
            )


def _names(levels: frozenset[Level] | set[Level]) -> str:
    return ", ".join(level.name for level in sorted(levels, reverse=True))
