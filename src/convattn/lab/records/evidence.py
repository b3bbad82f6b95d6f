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
    Pipeline,
    Row,
)
from convattn.lab.records.reasons import TEST_IMAGES, reasons_against
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


@dataclass(frozen=True)
class BackingRun:
    """A check that looks for the record of what a row stands for, and compares it with the paper.

    Attributes:
        row: Of the ledger.
        path: Of the record.
        verdict: Of the row.
    """

    row: Row | Pipeline
    path: Path
    verdict: Verdict

    def __call__(self, run: Run) -> str:
        """The figures beside the paper's.

        Raises:
            NotRunHere: Without a record, with the commands that make one.
            EvidenceFailed: For what is no record, and from `judge`.
        """
        if not self.path.exists():
            raise NotRunHere(
                f"NOT RUN: no run was submitted for this row. `{self.row.command}` makes one, and "
                f"then `{self.row.recorded_by}` puts it on record"
            )
        try:
            record = parse_json(read_file(self.path))
        except ValueError as problem:
            raise EvidenceFailed(
                f"{self.path.name} is no record of a run ({shown(str(problem))}); write it again "
                f"with `{self.row.recorded_by}`"
            ) from problem
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


def judge(row: Row | Pipeline, record: Any, verdict: Verdict) -> str:
    """Compare a record with its row.

    Args:
        row: Of the ledger.
        record: Anything that was read as JSON.
        verdict: Of the row.

    Returns:
        The figures beside the paper's.

    Raises:
        EvidenceFailed: For a record that does not count, and for a verdict that the figures do not
            support.
    """
    reasons = reasons_against(row, record)
    if reasons:
        raise EvidenceFailed(refusal("this record", row, reasons))
    seen, right = figures(row, record), verdict_of(row, record)
    if verdict is not right:
        raise EvidenceFailed(f"{seen}: the verdict is '{right}', but the row says '{verdict}'")
    return seen


def refusal(what: str, row: Row | Pipeline, reasons: list[str]) -> str:
    """Why something does not count for a row, and what to do."""
    return (
        f"{what} does not count for {row.claim}: {'; '.join(reasons)}; run `{row.command}`, and "
        f"then `{row.recorded_by}`"
    )


def accuracies_of(record: dict[str, Any]) -> dict[str, float]:
    """That of each run of a pipeline."""
    return {name: accuracy_of(record["runs"][name]) for name in PRINTED}


def figures(row: Row | Pipeline, record: dict[str, Any]) -> str:
    """The figures of a record that counts beside the paper's."""
    if isinstance(row, Pipeline):
        accuracies = accuracies_of(record)
        return ", ".join(
            f"{name} {100 * accuracies[name]:.2f} % (printed {100 * printed:.2f} %)"
            for name, printed in PRINTED.items()
        )
    accuracy = accuracy_of(record)
    seen = (
        f"{100 * accuracy:.2f} % of {TEST_IMAGES:,} test images (seed {record['run']['seed']}, "
        f"{record['config']['training']['compute_dtype']}, {record['result']['device']})"
    )
    if row.printed is None:
        return f"{seen}; no accuracy is printed that it could reproduce"
    return (
        f"{seen}, printed {100 * row.printed:.1f} %, {100 * abs(accuracy - row.printed):.2f} "
        f"points apart (at most {100 * margin(row.printed):.2f} counts as reproduced)"
    )


def verdict_of(row: Row | Pipeline, record: dict[str, Any]) -> Verdict:
    """The verdict that a record supports which counts."""
    if isinstance(row, Pipeline):
        accuracies = accuracies_of(record)
        near = all(
            abs(accuracies[name] - printed) <= margin(printed, HALF_HUNDREDTH)
            for name, printed in PRINTED.items()
        )
        alone = max(accuracies[CONVOLUTION], accuracies[ATTENTION])
        near = near and min(accuracies[WITH], accuracies[WITHOUT]) > alone
    elif row.printed is None:
        return Verdict.NOT_RUN
    else:
        near = abs(accuracy_of(record) - row.printed) <= margin(row.printed)
    return Verdict.REPRODUCED if near else Verdict.NOT_REPRODUCED


def accuracy_of(run: dict[str, Any]) -> float:
    """The test accuracy of a run on record."""
    return run["result"]["test_accuracy"]


def margin(printed: float, half_unit: float = HALF_TENTH) -> float:
    """How far apart two runs of the same accuracy may be tested: see above.

    >>> round(margin(0.938), 4)
    0.0107
    """
    return 3 * math.sqrt(2 * printed * (1 - printed) / TEST_IMAGES) + half_unit
