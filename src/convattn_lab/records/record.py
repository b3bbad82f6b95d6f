"""The record of a run or of a comparison: what the ledger needs of its folder, and no more.

One JSON object: `claim`; the contents of `config.json`, `run.json` and `result.json`; `pruning`
and `conversion`, those of `pruning.json` and `conversion.json`, and `initial`, the SHA-256 of
`initial.npz`: null for a run whose parameters were drawn.
"""

import json
from pathlib import Path
from typing import Any

from convattn.files import write_file
from convattn_lab.records.experiments import RUNS
from convattn_lab.records.rows import Pipeline
from convattn_lab.runs.directory import CONVERSION, INITIAL, PRUNING, RunDirectory
from convattn_lab.settings import to_json
from convattn_ledger.discovery import load_claim
from convattn_ledger.evidence.experiments import BackingRun
from convattn_ledger.locations import proofs_directory

RECORDED = ("config", "run", "result", "conversion", "initial")
PAPERS = {"C20": "cordonnier2020", "L21": "li2021"}
ROWS = (
    *("C20.quadratic", "C20.learned", "C20.content", "C20.gaussian", "C20.pruned", "C20.heads16"),
    "L21.twophase",
)


def record_of(folder: Path, claim: str) -> dict[str, Any]:
    """The record of a run for a row of the ledger.

    Raises:
        ValueError: If this is not the folder of a run, it is not finished, or it is not said where
            the parameters that it began with came from.
    """
    directory = RunDirectory(folder)
    config = to_json(directory.read_settings())
    result = directory.read_result()
    if result is None or result["status"] != "finished":
        raise ValueError(
            f"{folder} is a run that is not finished, so it has no figure; go on with it: "
            f"python experiments/cifar.py --resume {folder}"
        )
    metadata, initial = directory.read_metadata(), directory.initial_digest()
    pruning, conversion = directory.read_pruning(), directory.read_conversion()
    if initial != metadata.get("initial"):
        raise ValueError(
            f"{folder / INITIAL} is not the file with which the run began (SHA-256 {initial}, but "
            f"run.json has {metadata.get('initial')}); put that one back"
        )
    origins = [
        name for name, how in ((PRUNING, pruning), (CONVERSION, conversion)) if how is not None
    ]
    if bool(origins) != (initial is not None):
        present = " and ".join(origins) or INITIAL
        missing = INITIAL if initial is None else f"{PRUNING} or {CONVERSION}"
        raise ValueError(
            f"{folder} has {present} but no {missing}, so it is not known what it began with; put "
            "that file back"
        )
    return {
        "claim": claim,
        "config": config,
        "run": metadata,
        "result": result,
        "pruning": pruning,
        "conversion": conversion,
        "initial": initial,
    }


def experiment_row(claim: str, proofs: Path | None = None) -> BackingRun:
    """The check of a row that looks for its record, beside its proof file.

    Raises:
        ValueError: If it is none of the rows that stand for experiments.
    """
    if claim not in ROWS:
        raise ValueError(
            f"claim is {claim!r}, but expected a row that stands for an experiment: "
            + ", ".join(ROWS)
        )
    paper, name = claim.split(".")
    path = (proofs or proofs_directory()) / PAPERS[paper] / f"{name}.py"
    row, _ = load_claim(path)
    (check,) = (item.check for item in row.evidence if isinstance(item.check, BackingRun))
    return check


def write_record(
    folder: Path, claim: str, proofs: Path | None = None, *, replace: bool = False
) -> tuple[dict[str, Any], BackingRun]:
    """Write the record of a run, or of those of one seed of a comparison, for a row of the ledger.

    Args:
        folder: Of the run, or of the seed.
        claim: The row's id.
        proofs: The folder of the proof files; None for those of this checkout.
        replace: Whether the record of another run may be replaced.

    Returns:
        The record, and the check that looks for it.

    Raises:
        ValueError: For what does not count for the row, or if the row has another record; and from
            `record_of` and `experiment_row`. Then nothing is written.
    """
    check = experiment_row(claim, proofs)
    row: Any = check.experiment()
    if isinstance(row, Pipeline):
        runs = {name: record_of(folder / name, claim) for name in RUNS}
        recorded = {name: {field: run[field] for field in RECORDED} for name, run in runs.items()}
        record: dict[str, Any] = {"claim": claim, "runs": recorded}
    else:
        record = record_of(folder, claim)
    if reasons := row.reasons_against(record):
        raise ValueError(row.refusal(str(folder), reasons))
    content = (json.dumps(record, indent=2) + "\n").encode()
    if check.path.exists() and check.path.read_bytes() != content and not replace:
        raise ValueError(
            f"{check.path} is there already, of another run; look at it, and give --replace if "
            "this run is to take its place"
        )
    write_file(check.path, content)
    return record, check
