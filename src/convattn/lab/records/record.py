"""The record of a run or of a comparison: what the ledger needs of its folder, and no more.

One JSON object: `claim`; the contents of `config.json`, `run.json` and `result.json`; `pruning`
and `conversion`, those of `pruning.json` and `conversion.json`, and `initial`, the SHA-256 of
`initial.npz`: null for a run whose parameters were drawn.
"""

import json
from pathlib import Path
from typing import Any

from convattn.files import write_file
from convattn.lab.records.evidence import BackingRun
from convattn.lab.records.experiments import RUNS
from convattn.lab.records.reasons import PIPELINE, pipeline_reasons, run_reasons
from convattn.lab.runs.directory import CONVERSION, INITIAL, PRUNING, RunDirectory
from convattn.lab.settings import to_json
from convattn.ledger.discovery import load_claim
from convattn.ledger.locations import proofs_directory

PIPELINE_PLACE = Path("li2021") / "twophase.json"
PARTS = ("config", "run", "result", "conversion", "initial")
PAPER = "cordonnier2020"
ROWS = ("quadratic", "learned", "content", "gaussian", "pruned", "heads16")


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
    facts, initial = directory.read_facts(), directory.initial_digest()
    pruning, conversion = directory.read_pruning(), directory.read_conversion()
    if initial != facts.get("initial"):
        raise ValueError(
            f"{folder / INITIAL} is not the file with which the run began (SHA-256 {initial}, but "
            f"run.json has {facts.get('initial')}); put that one back"
        )
    made = [name for name, how in ((PRUNING, pruning), (CONVERSION, conversion)) if how is not None]
    if bool(made) != (initial is not None):
        there = " and ".join(made) or INITIAL
        missing = INITIAL if initial is None else f"{PRUNING} or {CONVERSION}"
        raise ValueError(
            f"{folder} has {there} but no {missing}, so it is not known what it began with; put "
            "that file back"
        )
    return {
        "claim": claim,
        "config": config,
        "run": facts,
        "result": result,
        "pruning": pruning,
        "conversion": conversion,
        "initial": initial,
    }


def experiment_row(claim: str, proofs: Path | None = None) -> tuple[Path, BackingRun]:
    """Where the record of a row lies, beside its proof file, and the check that looks for it.

    Raises:
        ValueError: If it is none of the rows that stand for experiments.
    """
    name = claim.removeprefix("C20.")
    if claim != f"C20.{name}" or name not in ROWS:
        raise ValueError(
            f"claim is {claim!r}, but expected a row that stands for an experiment: "
            + ", ".join(f"C20.{row}" for row in ROWS)
        )
    path = (proofs or proofs_directory()) / PAPER / f"{name}.py"
    found, _ = load_claim(path)
    (check,) = (item.check for item in found.evidence if isinstance(item.check, BackingRun))
    return path.with_suffix(".json"), check


def write_record(
    folder: Path, claim: str, proofs: Path | None = None, *, replace: bool = False
) -> tuple[Path, dict[str, Any], BackingRun]:
    """Write the record of a run beside the proof file of its row.

    Args:
        replace: Whether the record of another run may be replaced.

    Returns:
        The file, the record, and the check that looks for it.

    Raises:
        ValueError: For a run that does not count for the row, or if the row has another record; and
            from `record_of` and `experiment_row`. Then nothing is written.
    """
    path, check = experiment_row(claim, proofs)
    record = record_of(folder, claim)
    _write(path, record, folder, claim, run_reasons(check.row, record), replace)
    return path, record, check


def write_pipeline_record(
    folder: Path, proofs: Path | None = None, *, replace: bool = False
) -> tuple[Path, dict[str, Any]]:
    """Write the record of the runs of one seed of a comparison for L21.twophase.

    Args:
        folder: Of the seed.
        replace: Whether the record of other runs may be replaced.

    Returns:
        The file and the record.

    Raises:
        ValueError: For runs that do not count for the row, or if it has another record.
    """
    runs = {name: record_of(folder / name, PIPELINE) for name in RUNS}
    kept = {name: {part: run[part] for part in PARTS} for name, run in runs.items()}
    path, record = (
        (proofs or proofs_directory()) / PIPELINE_PLACE,
        {"claim": PIPELINE, "runs": kept},
    )
    reasons = pipeline_reasons(json.loads(json.dumps(record)))
    _write(path, record, folder, PIPELINE, reasons, replace)
    return path, record


def _write(
    path: Path,
    record: dict[str, Any],
    folder: Path,
    claim: str,
    reasons: list[str],
    replace: bool,
) -> None:
    if reasons:
        raise ValueError(f"{folder} does not count for {claim}: {'; '.join(reasons)}")
    content = (json.dumps(record, indent=2) + "\n").encode()
    if path.exists() and path.read_bytes() != content and not replace:
        raise ValueError(
            f"{path} is there already, of another run; look at it, and give --replace if this run "
            "is to take its place"
        )
    write_file(path, content)
