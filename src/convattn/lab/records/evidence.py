"""The evidence that recorded runs give for a row of the ledger: their figures beside the paper's.

The record, which `experiments/record.py` or `experiments/two_phase.py record` writes, lies beside
the row's proof file, under the same name with the ending `.json`.

**When a figure is reproduced.** Two models of the same accuracy p, tested on n images each, agree
up to the chance of the draw: the difference of the two fractions has the standard deviation
√(2p(1 - p)/n). Within three of them, and the half unit to which the paper rounds, one run of each
cannot be told from the other: `margin`. Where the paper prints no figure, there is none to
reproduce: the verdict stays "not run", and the record is shown as what was measured.

**L21's two phases.** A record holds five runs of one seed, as `experiments/two_phase.py compare`
makes them: the first phase, the second with and without warm-up, and either phase alone for the
epochs of both. Of all but the first the paper prints an accuracy. The row is reproduced if all four
are within their margins, and if the two phases beat either alone.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from convattn.files import parse_json, read_file, shown
from convattn.lab.models.settings import EncoderSettings
from convattn.lab.records.experiments import (
    ATTENTION,
    CONVOLUTION,
    PRINTED,
    WITH,
    WITHOUT,
    Row,
)
from convattn.lab.records.reasons import PIPELINE, TEST_IMAGES, pipeline_reasons, run_reasons
from convattn.ledger.claim import (
    Claim,
    Evidence,
    EvidenceFailed,
    Kind,
    Level,
    NotRunHere,
    Run,
    Verdict,
)

HALF_TENTH, HALF_HUNDREDTH = 0.0005, 0.00005  # of a per cent, to which C20 and L21 print
PIPELINE_COMMAND = (
    "python experiments/two_phase.py compare --config cmhsa5 --starts limit-40 --seeds 0 "
    "--download cifar100-binary"
)


@dataclass(frozen=True)
class BackingRun:
    """A check that looks for the record of a run and compares it with a row of C20.

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
        recorded_by = f"python experiments/record.py RUN {self.row.claim}"
        record = read_record(self.path, self.row.command, recorded_by)
        return judge(self.row, record, self.verdict)


def experiment_claim(
    row: Row,
    source: str,
    verdict: Verdict,
    file: str,
    *,
    parameters: str | int,
    first_heads: bool = False,
) -> Claim:
    """The claim of a row of C20: a run at the paper's size, and what is checked before training.

    Args:
        file: The claim's file, beside which the record lies.
        parameters: How many the paper prints, or exactly how many there are.
        first_heads: Whether the first heads are drawn as printed, too.
    """

    def printed_architecture(run: Run) -> str:
        from convattn.lab.models.first_parameters import require_first_heads, require_size

        encoder = cast(EncoderSettings, row.settings.model)
        seen = require_size(encoder, parameters)
        return f"{seen}; {require_first_heads(encoder, run)}" if first_heads else seen

    backing = BackingRun(row, Path(file).with_suffix(".json"), verdict)
    evidence = (
        Evidence("a run at the paper's size", Level.MEASURED, backing),
        Evidence("before training", Level.TESTED, printed_architecture),
    )
    return Claim(row.claim, source, verdict, (Kind.EXPERIMENT,), evidence)


@dataclass(frozen=True)
class BackingPipeline:
    """A check that looks for the record of both phases and compares it with L21.twophase.

    Attributes:
        path: Of the record.
        verdict: Of the row.
    """

    path: Path
    verdict: Verdict

    def __call__(self, run: Run) -> str:
        """The figures beside the paper's.

        Raises:
            NotRunHere: Without a record; `EvidenceFailed` from `read_record` and `judge_pipeline`.
        """
        recorded_by = "python experiments/two_phase.py record FOLDER/seed-0"
        record = read_record(self.path, PIPELINE_COMMAND, recorded_by)
        return judge_pipeline(record, self.verdict)


def read_record(path: Path, command: str, recorded_by: str) -> dict[str, Any]:
    """A record, with nothing checked but that it is a JSON object.

    Raises:
        NotRunHere: Without a record, with the commands that make one.
        EvidenceFailed: For what is no JSON object.
    """
    if not path.exists():
        raise NotRunHere(
            f"NOT RUN: no run was submitted for this row. `{command}` makes one, and then "
            f"`{recorded_by}` puts it on record"
        )
    try:
        record = parse_json(read_file(path))
    except ValueError as problem:
        raise EvidenceFailed(
            f"{path.name} is no record of a run ({str(problem)[:200]}); write it again with "
            f"`{recorded_by}`"
        ) from problem
    if not isinstance(record, dict):
        raise EvidenceFailed(
            f"{path.name} is no record of a run, but {shown(record)}; write it again with "
            f"`{recorded_by}`"
        )
    return record


def judge(row: Row, record: dict[str, Any], verdict: Verdict) -> str:
    """Compare a record with its row of C20.

    Returns:
        The figure beside the paper's.

    Raises:
        EvidenceFailed: For a run that does not count, and for a verdict that the figure does not
            support.
    """
    require_none(row.claim, run_reasons(row, record))
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
    return require_verdict(seen, right, verdict)


def judge_pipeline(record: dict[str, Any], verdict: Verdict) -> str:
    """Compare a record with L21.twophase; returns and raises as `judge`."""
    require_none(PIPELINE, pipeline_reasons(record))
    seen = ", ".join(
        f"{name} {100 * accuracy_of(record, name):.2f} % (printed {100 * printed:.2f} %)"
        for name, printed in PRINTED.items()
    )
    return require_verdict(seen, pipeline_verdict(record), verdict)


def require_none(claim: str, reasons: list[str]) -> None:
    """Refuse a record against which something speaks.

    Raises:
        EvidenceFailed: With the reasons.
    """
    if reasons:
        raise EvidenceFailed(f"this record does not count for {claim}: {'; '.join(reasons)}")


def require_verdict(seen: str, right: Verdict, verdict: Verdict) -> str:
    """What was seen, if it supports the verdict of the row.

    Raises:
        EvidenceFailed: If it does not.
    """
    if verdict is not right:
        raise EvidenceFailed(f"{seen}: the verdict is '{right}', but the row says '{verdict}'")
    return seen


def verdict_of(row: Row, record: dict[str, Any]) -> Verdict:
    """The verdict that a record supports against which nothing speaks."""
    if row.printed is None:
        return Verdict.NOT_RUN
    gap = abs(record["result"]["test_accuracy"] - row.printed)
    return Verdict.REPRODUCED if gap <= margin(row.printed) else Verdict.NOT_REPRODUCED


def pipeline_verdict(record: dict[str, Any]) -> Verdict:
    """The verdict that a record of both phases supports against which nothing speaks."""
    found = {name: accuracy_of(record, name) for name in PRINTED}
    near = all(
        abs(found[name] - printed) <= margin(printed, HALF_HUNDREDTH)
        for name, printed in PRINTED.items()
    )
    alone = max(found[CONVOLUTION], found[ATTENTION])
    better = min(found[WITH], found[WITHOUT]) > alone
    return Verdict.REPRODUCED if near and better else Verdict.NOT_REPRODUCED


def accuracy_of(record: dict[str, Any], name: str) -> float:
    """The test accuracy of a run of the record."""
    return record["runs"][name]["result"]["test_accuracy"]


def margin(printed: float, half_unit: float = HALF_TENTH) -> float:
    """How far apart two runs of the same accuracy may be tested: see above.

    >>> round(margin(0.938), 4)
    0.0107
    """
    return 3 * math.sqrt(2 * printed * (1 - printed) / TEST_IMAGES) + half_unit
