"""The evidence that runs at L21's size give for its two phases: their figures beside the paper's.

A record holds five runs of one seed, as `experiments/two_phase.py compare` makes them: the first
phase, the second with and without warm-up, and either phase alone for the epochs of both. Of all
but the first the paper prints an accuracy. As for C20's rows two accuracies tested on n images
cannot be told apart within three standard deviations of their difference, 3√(2p(1 - p)/n), and half
the printed unit. The row is reproduced if that holds for all four, and if the two phases beat
either alone.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from convattn.lab.data.download import ARCHIVES
from convattn.lab.records.reasons import code_shortcomings
from convattn.lab.records.run_evidence import read_record
from convattn.lab.records.two_phase_experiments import (
    ATTENTION,
    CONVOLUTION,
    FIRST,
    PRINTED,
    RATES_ONE,
    RATES_TWO,
    RUNS,
    WITH,
    WITHOUT,
    differences,
    paper_runs,
)
from convattn.ledger.claim import EvidenceFailed, NotRunHere, Run, Verdict

CLAIM = "L21.twophase"
COMMAND = (
    "python experiments/two_phase.py compare --config cmhsa5 --starts limit-40 --seeds 0 "
    "--download cifar100-binary"
)
RECORD = "python experiments/two_phase.py record FOLDER/seed-0"
HALF_PRINTED = 0.00005
TEST_IMAGES, TRAINING_IMAGES = 10_000, 50_000
OFFICIAL = {ARCHIVES["cifar100-binary"].md5}


@dataclass(frozen=True)
class BackingPipeline:
    """A check that looks for the record of the runs and holds it against the row.

    Attributes:
        path: Of the record.
        verdict: Of the row.
    """

    path: Path
    verdict: Verdict

    def __call__(self, run: Run) -> str:
        """The figures beside the paper's.

        Raises:
            NotRunHere: Without a record; `EvidenceFailed` from `judge_pipeline`.
        """
        if not self.path.exists():
            raise NotRunHere(
                f"NOT RUN: no run backs this row. `{COMMAND}` makes them, and then `{RECORD}` puts "
                "them on record"
            )
        return judge_pipeline(read_record(self.path), self.verdict)


def judge_pipeline(record: dict[str, Any], verdict: Verdict) -> str:
    """Hold a record against the row.

    Raises:
        EvidenceFailed: For runs that cannot back the row, and for a verdict that the figures do not
            bear out.
    """
    reasons = pipeline_shortcomings(record)
    if reasons:
        raise EvidenceFailed(f"these runs do not back {CLAIM}: {'; '.join(reasons)}")
    right = pipeline_verdict(record)
    seen = ", ".join(
        f"{name} {100 * accuracy_of(record, name):.2f} % (printed {100 * printed:.2f} %)"
        for name, printed in PRINTED.items()
    )
    if verdict is not right:
        raise EvidenceFailed(f"{seen}: the verdict is '{right}', but the row says '{verdict}'")
    return seen


def accuracy_of(record: dict[str, Any], name: str) -> float:
    """The test accuracy of a run of the record."""
    return record["runs"][name]["result"]["test_accuracy"]


def pipeline_verdict(record: dict[str, Any]) -> Verdict:
    """The verdict that a record without shortcomings bears out."""
    found = {name: accuracy_of(record, name) for name in PRINTED}
    near = all(abs(found[name] - share) <= margin(share) for name, share in PRINTED.items())
    alone = max(found[CONVOLUTION], found[ATTENTION])
    better = min(found[WITH], found[WITHOUT]) > alone
    return Verdict.REPRODUCED if near and better else Verdict.NOT_REPRODUCED


def margin(printed: float) -> float:
    """How far apart two runs of the same accuracy may be tested: see above.

    >>> round(margin(0.7874), 4)
    0.0174
    """
    return 3 * math.sqrt(2 * printed * (1 - printed) / TEST_IMAGES) + HALF_PRINTED


def pipeline_shortcomings(record: Any) -> list[str]:
    """Why runs cannot back the row; nothing if they can.

    Args:
        record: Anything that was read as JSON.
    """
    try:
        found = [] if record["claim"] == CLAIM else [f"it was recorded for {record['claim']}"]
        for name, settings in paper_runs().items():
            run = record["runs"][name]
            problems = differences(settings, run["config"]) + run_problems(name, run)
            found += [f"{name}: {problem}" for problem in problems]
        extra = sorted(set(record["runs"]) - set(RUNS))
        found += [f"there is a run {name} that nothing is known of" for name in extra]
        first = record["runs"][FIRST]
        for name in (WITH, WITHOUT):
            found += [f"{name}: {why}" for why in conversion_problems(record["runs"][name], first)]
        return found
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as problem:
        return [f"the record is damaged ({problem!r})"]


def run_problems(name: str, run: dict[str, Any]) -> list[str]:
    """What speaks against a run: its rate, its end, its images, its beginning, its code."""
    training, result, images = run["config"]["training"], run["result"], run["run"]["images"]
    found = []
    rates = RATES_TWO if name in (WITH, WITHOUT) else RATES_ONE
    if training["learning_rate"] not in rates:
        found.append(f"its learning rate {training['learning_rate']} is none of {rates}")
    steps = training["epochs"] * (TRAINING_IMAGES // training["batch_size"])
    if (result["status"], result["step"], result["steps"]) != ("finished", steps, steps):
        found.append(f"it is {result['status']} at step {result['step']}, but should reach {steps}")
    accuracy = result["test_accuracy"]
    if not (
        type(accuracy) in (float, int)
        and 0 <= accuracy <= 1
        and round(accuracy * TEST_IMAGES) / TEST_IMAGES == accuracy
        and result["test_images"] == TEST_IMAGES
    ):
        found.append(f"its accuracy {accuracy} is no share of {TEST_IMAGES:,} test images")
    given = (images["name"], images["note"], images["classes"], images["archive_md5"] in OFFICIAL)
    if given != ("CIFAR-100", "", 100, True):
        found.append("its images were not read from an official archive of CIFAR-100")
    if (images["train"], images["validation"]) != (TRAINING_IMAGES, 0):
        found.append(f"it was trained on {images['train']} images")
    if name not in (WITH, WITHOUT) and (run["initial"], run["conversion"]) != (None, None):
        found.append("it began with the parameters of another run")
    return found + code_shortcomings(run["run"])


def conversion_problems(run: dict[str, Any], first: dict[str, Any]) -> list[str]:
    """What speaks against how a second phase began."""
    conversion = run["conversion"]
    if conversion is None or not isinstance(run["initial"], str):
        return ["it was not converted from another run"]
    found = []
    how = conversion["conversion"]
    if (how["kind"], how["logit"]) != ("limit", 40.0):
        found.append(f"its conversion is {how['kind']}, M = {how['logit']}, not L21's")
    source = conversion["source"]
    if (source["config"], source["result"]) != (first["config"], first["result"]):
        found.append("it was converted from another first phase")
    if conversion["check"]["passed"] is not True:
        found.append("its check did not pass")
    return found
