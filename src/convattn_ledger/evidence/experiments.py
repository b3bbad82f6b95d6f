"""Claims whose evidence is a run at a paper's size: its record lies beside the claim's proof file.

What an experiment is stands in the laboratory, `convattn_lab`, which a proof file imports inside
its evidence: where there is none, the evidence says that it needs the repository.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from convattn.files import brief, parse_json, read_file
from convattn_ledger.claim import (
    Claim,
    Evidence,
    EvidenceFailed,
    Kind,
    Level,
    NotRunHere,
    Run,
    Verdict,
)


class Experiment(Protocol):
    """What a row of the ledger stands for; `Row` and `Pipeline` of the laboratory.

    Attributes:
        command: What makes a run that can be submitted for the row.
        recorded_by: What puts it on record.
    """

    command: str

    @property
    def recorded_by(self) -> str:
        """What puts it on record."""

    def judge(self, record: Any, verdict: Verdict) -> str:
        """The figures of a record beside the paper's, or `EvidenceFailed`."""

    def verdict_of(self, record: Any) -> Verdict:
        """The verdict that a record supports which counts."""

    def before_training(self, run: Run) -> str:
        """What can be seen of its models before they are trained, or `EvidenceFailed`."""


@dataclass(frozen=True)
class BackingRun:
    """A check that looks for the record of an experiment, and compares it with the paper.

    Attributes:
        experiment: Gives the experiment.
        path: Of the record.
        verdict: Of the row.
    """

    experiment: Callable[[], Experiment]
    path: Path
    verdict: Verdict

    def __call__(self, run: Run) -> str:
        """The figures beside the paper's.

        Raises:
            NotRunHere: Without a record, with the commands that make one.
            EvidenceFailed: For what is no record, and for one that does not support the verdict.
        """
        row = self.experiment()
        if not self.path.exists():
            raise NotRunHere(
                f"NOT RUN: no run was submitted for this row. `{row.command}` makes one, and "
                f"then `{row.recorded_by}` puts it on record"
            )
        try:
            record = parse_json(read_file(self.path))
        except ValueError as problem:
            raise EvidenceFailed(
                f"{self.path.name} is no record of a run ({brief(str(problem))}); write it again "
                f"with `{row.recorded_by}`"
            ) from problem
        return row.judge(record, self.verdict)


def experiment_claim(
    identifier: str, source: str, verdict: Verdict, experiment: Callable[[], Experiment], file: str
) -> Claim:
    """The claim of an experiment: a run at the paper's size, and what is checked before training.

    Args:
        identifier: Of the claim.
        source: Where the paper prints it.
        verdict: Of the row.
        experiment: Gives the experiment.
        file: The claim's file, beside which the record lies.
    """
    backing = BackingRun(experiment, Path(file).with_suffix(".json"), verdict)
    evidence = (
        Evidence("a run at the paper's size", Level.MEASURED, backing),
        Evidence("before training", Level.TESTED, lambda run: experiment().before_training(run)),
    )
    return Claim(identifier, source, verdict, (Kind.EXPERIMENT,), evidence)
