"""Rows of the ledger for experiments: C20's recipe, what a run must be to back a row, what is seen.

A run backs a row if its settings are those of the paper, it is finished, and it was made on all
60,000 images of CIFAR-10 as they were published. Its record, which `experiments/record.py` writes,
then lies beside the row's proof file, under the same name with the ending `.json`.

**When a figure is reproduced.** Two models of the same accuracy p, tested on n images each, agree
up to the chance of the draw: the difference of the two shares has the standard deviation
√(2p(1 - p)/n). Within three of them, and the half unit to which the paper rounds, one run of each
cannot be told from the other: `margin`.
"""

import dataclasses
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from convattn.ledger.claim import EvidenceFailed, NotRunHere, Run, Verdict
from convattn.models.settings import EncoderSettings, Encoding
from convattn.runs.settings import ImageSettings, RunSettings
from convattn.training.settings import TrainingSettings

FREE = {  # what does not change the experiment
    "images": ("source",),
    "training": (
        "seed",
        "devices",
        "steps_per_call",
        "evaluate_every",
        "snapshot_every",
        "checkpoint_minutes",
        "keep_checkpoints",
        "compute_dtype",
    ),
}
TEST_IMAGES = 10_000
# Of the training images as published, x/255, to the four decimals in which they are usually given.
MEAN, DEVIATION = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
HALF_UNIT, HALF_PRINTED = 0.00005, 0.0005


@dataclass(frozen=True)
class Row:
    """An experiment of C20.

    **Fields:**

    - `claim`: the row's id.
    - `printed`: the accuracy, or None if none is printed.
    - `settings`: the paper's.
    - `command`: what makes a run that backs the row.
    """

    claim: str
    printed: float | None
    settings: RunSettings
    command: str


def paper_settings(
    encoding: Encoding, heads: Sequence[int] = (9,) * 6, *, epochs: int = 300, rate: float = 0.1
) -> RunSettings:
    """C20, Table 2, number by number, with the initial variances of §4.2 and appendix E.

    >>> paper_settings("learned").model.depth
    6
    """
    return RunSettings(
        EncoderSettings(
            encoding,
            heads=tuple(heads),
            width=400,
            inner=512,
            downsampling=2,
            dropout=0.1,
            attention_dropout=0.0,
            norm_epsilon=1e-12,
            center_variance=2.0,
            spread_variance=0.01,
        ),
        ImageSettings(crop=4, flip=True, validation=0.0),
        TrainingSettings(
            epochs=epochs,
            batch_size=100,
            optimizer="sgd",
            learning_rate=rate,
            warmup=0.05,
            schedule="cosine",
            momentum=0.9,
            weight_decay=1e-4,
            label_smoothing=0.0,
            select="last",
        ),
    )


def backing_run(
    row: Row,
    path: Path,
    verdict: Verdict,
    further: Callable[[Row, dict[str, Any]], Row] = lambda row, record: row,
) -> Callable[[Run], str]:
    """A check that looks for the record of a run and holds it against the row.

    **Arguments:**

    - `path`: of the record.
    - `verdict`: of the row; a record and "not run" exclude each other.
    - `further`: the row as it is to be for this record.
    """

    def check(run: Run) -> str:
        if not path.exists():
            raise NotRunHere(
                f"NOT RUN: no run backs this row. `{row.command}` makes one, and then "
                f"`python experiments/record.py RUN {row.claim}` puts it on record"
            )
        record = read_record(path)
        return judge(further(row, record), record, verdict)

    return check


def read_record(path: Path) -> dict[str, Any]:
    """A record, with nothing checked but that it is one.

    **Raises:** `EvidenceFailed`.
    """
    try:
        record = json.loads(path.read_text())
        for part in ("claim", "config", "run", "result"):
            record[part]
    except (ValueError, KeyError, TypeError) as problem:
        raise EvidenceFailed(f"{path.name} is no record of a run ({problem!r})") from problem
    return record


def judge(row: Row, record: dict[str, Any], verdict: Verdict) -> str:
    """Hold a record against its row.

    **Returns:** the figure beside the paper's.

    **Raises:** `EvidenceFailed` for a run that cannot back the row, and for a verdict that the
    figure does not bear out.
    """
    reasons = shortcomings(row, record)
    if reasons:
        raise EvidenceFailed(f"this run does not back {row.claim}: {'; '.join(reasons)}")
    accuracy, facts = record["result"]["test_accuracy"], record["run"]
    seen = (
        f"{100 * accuracy:.2f} % of {TEST_IMAGES:,} test images (seed {facts['seed']}, "
        f"{record['config']['training']['compute_dtype']}, {record['result']['device']})"
    )
    if row.printed is None:
        if verdict is Verdict.NOT_RUN:
            raise EvidenceFailed(f"{seen}: a run backs the row, so its verdict is not 'not run'")
        return f"{seen}; no accuracy is printed"
    gap, allowed = abs(accuracy - row.printed), margin(row.printed)
    right = Verdict.REPRODUCED if gap <= allowed else Verdict.NOT_REPRODUCED
    seen += f", printed {100 * row.printed:.1f} %, {100 * gap:.2f} points apart"
    seen += f" (at most {100 * allowed:.2f} counts as reproduced)"
    if verdict is not right:
        raise EvidenceFailed(f"{seen}: the verdict is '{right}', but the row says '{verdict}'")
    return seen


def margin(printed: float, images: int = TEST_IMAGES) -> float:
    """How far apart two runs of the same accuracy may be tested: see above.

    >>> round(margin(0.938), 4)
    0.0107
    """
    return 3 * math.sqrt(2 * printed * (1 - printed) / images) + HALF_PRINTED


def shortcomings(row: Row, record: dict[str, Any]) -> list[str]:
    """Why a run cannot back a row; nothing if it can."""
    found = []
    if record["claim"] != row.claim:
        found.append(f"it was recorded for {record['claim']}")
    found += differences(row.settings, record["config"])
    result, images = record["result"], record["run"]["images"]
    if result["status"] != "finished" or result["step"] != result["steps"]:
        found.append(f"it is {result['status']} at step {result['step']} of {result['steps']}")
    if (images["name"], images["note"]) != ("CIFAR-10", ""):
        found.append(f"its images are {images['name']} {images['note']}".rstrip())
    counts = (images["train"], images["validation"], images["test"])
    if counts != (50_000, 0, TEST_IMAGES):
        found.append(f"it has {counts} images to train on, to choose by, and to test on")
    for name, printed in (("mean", MEAN), ("std", DEVIATION)):
        if any(abs(a - b) > HALF_UNIT for a, b in zip(images[name], printed, strict=True)):
            found.append(f"the {name} of its images is {images[name]}, that of CIFAR-10 {printed}")
    return found


def differences(settings: RunSettings, config: dict[str, Any]) -> list[str]:
    """Where a run's `config.json` differs from settings, but for what is free."""
    found = []
    for part in ("model", "images", "training"):
        wanted = dataclasses.asdict(getattr(settings, part))
        given = {k: tuple(v) if isinstance(v, list) else v for k, v in config[part].items()}
        for name in sorted((wanted.keys() | given.keys()) - {"kind", *FREE.get(part, ())}):
            if given.get(name) != wanted.get(name):
                found.append(f"{part}.{name} is {given.get(name)}, not {wanted.get(name)}")
    return found
