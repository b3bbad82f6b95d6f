"""The record of a run: what the ledger needs of its folder, small enough for a repository.

One JSON object: `claim`, and the contents of `config.json`, `run.json`, `result.json`, and
`pruning.json` where the run was made by pruning another one.
"""

import json
from pathlib import Path
from typing import Any

from convattn.atomic_file import write_file
from convattn.ledger.discovery import PAPERS, load_claim
from convattn.ledger.locations import proofs_directory
from convattn.runs.codec import settings_to_json
from convattn.runs.directory import RunDirectory

PRUNING = "pruning.json"


def record_of(folder: Path, claim: str) -> dict[str, Any]:
    """The record of a run for a row of the ledger.

    **Raises:** `ValueError` if this is not the folder of a run, or it is not finished.
    """
    directory = RunDirectory(folder)
    config = settings_to_json(directory.read_settings())
    result = directory.read_result()
    if result is None or result["status"] != "finished":
        raise ValueError(
            f"{folder} is a run that is not finished, so it has no figure; go on with it: "
            f"python experiments/cifar.py --resume {folder}"
        )
    record = {"claim": claim, "config": config, "run": directory.read_facts(), "result": result}
    if (folder / PRUNING).exists():
        record["pruning"] = json.loads((folder / PRUNING).read_text())
    return record


def record_path(claim: str, proofs: Path | None = None) -> Path:
    """Where the record of a row lies: beside its proof file.

    **Raises:** `ValueError` if no proof file has that claim.
    """
    folder = proofs or proofs_directory()
    paper, _, name = claim.partition(".")
    found = [path for path in folder.glob(f"*/{name}.py") if load_claim(path)[0].id == claim]
    if paper not in PAPERS or not found:
        raise ValueError(f"claim is {claim!r}, but expected one of the ledger, like C20.quadratic")
    return found[0].with_suffix(".json")


def write_record(folder: Path, claim: str, proofs: Path | None = None) -> Path:
    """Write the record of a run beside the proof file of its row.

    **Returns:** the file.

    **Raises:** `ValueError` from `record_of` and `record_path`.
    """
    record, path = record_of(folder, claim), record_path(claim, proofs)
    write_file(path, (json.dumps(record, indent=2) + "\n").encode())
    return path
