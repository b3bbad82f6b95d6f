"""What a verification found, and when that counts as success."""

from collections.abc import Sequence
from dataclasses import dataclass

from convattn.ledger.claim import Level
from convattn.ledger.selection import Selected


@dataclass(frozen=True)
class EvidenceOutcome:
    """What became of one piece of evidence.

    Attributes:
        name: The evidence's name.
        level: Its level.
        passed: ``None`` if it was not run here, which satisfies nothing.
        detail: The figures seen, the reason for the failure, or why it was not run.
        seconds: Wall time of the check.
        assumes: What the evidence takes on trust.
    """

    name: str
    level: Level
    passed: bool | None
    detail: str
    seconds: float
    assumes: str = ""


@dataclass(frozen=True)
class ClaimOutcome:
    """What became of one claim."""

    selected: Selected
    evidence: tuple[EvidenceOutcome, ...]

    @property
    def id(self) -> str:
        """The claim's id, or the label of a file that could not be loaded."""
        return self.selected.proof.name

    @property
    def seconds(self) -> float:
        """The summed wall time of its checks."""
        return sum(item.seconds for item in self.evidence)

    def reached(self, level: Level) -> bool:
        """Whether some evidence of exactly this level passed and none failed."""
        verdicts = [item.passed for item in self.evidence if item.level is level]
        return True in verdicts and False not in verdicts

    @property
    def problems(self) -> tuple[str, ...]:
        """Why the claim is not verified; empty if it is.

        A claim is verified if its file loaded, no evidence failed, some evidence ran, and, where
        all of its evidence was selected, each level that its kinds require was reached.
        """
        if self.selected.problem:
            return (self.selected.problem,)
        problems = [
            f"{item.name} ({item.level.name}): {item.detail}"
            for item in self.evidence
            if item.passed is False
        ]
        if all(item.passed is None for item in self.evidence):
            problems.append("none of its evidence was run")
        missing = sorted(self.selected.required - {i.level for i in self.evidence if i.passed})
        if missing and not problems:
            names = ", ".join(level.name for level in reversed(missing))
            problems.append(f"not reached, though its kind requires it: {names}")
        return tuple(problems)

    @property
    def passed(self) -> bool:
        """Whether the claim is verified."""
        return not self.problems


def verified(claims: Sequence[ClaimOutcome]) -> bool:
    """Whether there are claims and all of them are verified.

    Example:
        >>> verified([])
        False
    """
    return bool(claims) and all(claim.passed for claim in claims)
