"""The evidence that a run gives for a row of the ledger: its figure beside the paper's.

The record of the run, which `experiments/record.py` writes, lies beside the row's proof file, under
the same name with the ending `.json`.

**When a figure is reproduced.** Two models of the same accuracy p, tested on n images each, agree
up to the chance of the draw: the difference of the two shares has the standard deviation
√(2p(1 - p)/n). Within three of them, and the half unit to which the paper rounds, one run of each
cannot be told from the other: `margin`. Where the paper prints no figure, there is none to
reproduce: the verdict stays "not run", and the record is shown as what was measured.
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from convattn.lab.records.experiments import Row
from convattn.lab.records.reasons import TEST_IMAGES, shortcomings
from convattn.ledger.claim import EvidenceFailed, NotRunHere, Run, Verdict

HALF_PRINTED = 0.0005


@dataclass(frozen=True)
class BackingRun:
    """A check that looks for the record of a run and holds it against the row.

    Attributes:
        row: Of the ledger.
        path: Of the record.
        verdict: Of the row.
    """

    row: Row
    path: Path
    verdict: Verdict

    def __call__(self, run: Run) -> str:
        """The figure beside the paper's.

        Raises:
            NotRunHere: Without a record; `EvidenceFailed` from `read_record` and `judge`.
        """
        if not self.path.exists():
            raise NotRunHere(
                f"NOT RUN: no run backs this row. `{self.row.command}` makes one, and then "
                f"`python experiments/record.py RUN {self.row.claim}` puts it on record"
            )
        return judge(self.row, read_record(self.path), self.verdict)


def read_record(path: Path) -> dict[str, Any]:
    """A record, with nothing checked but that it is a JSON object.

    Raises:
        EvidenceFailed: As described above.
    """
    try:
        record = json.loads(path.read_text())
    except (ValueError, RecursionError) as problem:
        raise EvidenceFailed(f"{path.name} is no record of a run ({problem!r})") from problem
    if not isinstance(record, dict):
        raise EvidenceFailed(f"{path.name} is no record of a run, but {record!r}")
    return record


def judge(row: Row, record: dict[str, Any], verdict: Verdict) -> str:
    """Hold a record against its row.

    Returns:
        The figure beside the paper's.

    Raises:
        EvidenceFailed: For a run that cannot back the row, and for a verdict that the figure does
            not bear out.
    """
    reasons = shortcomings(row, record)
    if reasons:
        raise EvidenceFailed(f"this run does not back {row.claim}: {'; '.join(reasons)}")
    accuracy, right = record["result"]["test_accuracy"], verdict_of(row, record)
    seen = (
        f"{100 * accuracy:.2f} % of {TEST_IMAGES:,} test images (seed {record['run']['seed']}, "
        f"{record['config']['training']['compute_dtype']}, {record['result']['device']})"
    )
    if row.printed is None:
        seen += "; no accuracy is printed that it could reproduce"
    else:
        gap, allowed = abs(accuracy - row.printed), margin(row.printed)
        seen += f", printed {100 * row.printed:.1f} %, {100 * gap:.2f} points apart"
        seen += f" (at most {100 * allowed:.2f} counts as reproduced)"
    if verdict is not right:
        raise EvidenceFailed(f"{seen}: the verdict is '{right}', but the row says '{verdict}'")
    return seen


def verdict_of(row: Row, record: dict[str, Any]) -> Verdict:
    """The verdict that a record without shortcomings bears out."""
    if row.printed is None:
        return Verdict.NOT_RUN
    gap = abs(record["result"]["test_accuracy"] - row.printed)
    return Verdict.REPRODUCED if gap <= margin(row.printed) else Verdict.NOT_REPRODUCED


def margin(printed: float, images: int = TEST_IMAGES) -> float:
    """How far apart two runs of the same accuracy may be tested: see above.

    >>> round(margin(0.938), 4)
    0.0107
    """
    return 3 * math.sqrt(2 * printed * (1 - printed) / images) + HALF_PRINTED
