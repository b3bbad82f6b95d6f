"""The record of a comparison at L21's size, for the ledger's row L21.twophase."""

import json
from pathlib import Path
from typing import Any

from convattn.files import write_file
from convattn.lab.records.pipeline_evidence import CLAIM, pipeline_shortcomings
from convattn.lab.records.run_record import record_of
from convattn.lab.records.two_phase_experiments import RUNS
from convattn.ledger.locations import proofs_directory

PLACE = Path("li2021") / "twophase.json"


def pipeline_record(folder: Path) -> dict[str, Any]:
    """The record of the runs of one seed.

    Raises:
        ValueError: If one is missing or not finished.
    """
    runs = {name: record_of(folder / name, CLAIM) for name in RUNS}
    kept = ("config", "run", "result", "conversion", "initial")
    return {
        "claim": CLAIM,
        "runs": {name: {part: run[part] for part in kept} for name, run in runs.items()},
    }


def write_pipeline_record(
    folder: Path, proofs: Path | None = None, *, replace: bool = False
) -> tuple[Path, dict[str, Any]]:
    """Write the record beside the proof file of the row.

    Args:
        folder: Of one seed of a comparison.
        replace: Whether the record of other runs may be replaced.

    Returns:
        The file and the record.

    Raises:
        ValueError: For runs that cannot back the row, or if it has another record.
    """
    path, record = (proofs or proofs_directory()) / PLACE, pipeline_record(folder)
    reasons = pipeline_shortcomings(json.loads(json.dumps(record)))
    if reasons:
        raise ValueError(f"{folder} cannot back {CLAIM}:" + "".join(f"\n- {r}" for r in reasons))
    content = (json.dumps(record, indent=2) + "\n").encode()
    if path.exists() and path.read_bytes() != content and not replace:
        raise ValueError(
            f"{path} is there already, of other runs; look at it, and give --replace if these are "
            "to stand in its place"
        )
    write_file(path, content)
    return path, record
