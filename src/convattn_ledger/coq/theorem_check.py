"""The check of evidence of level PROVED: was this theorem checked, of the sources that are here?"""

import json
import shutil
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from convattn_ledger.coq.build import INSTALL
from convattn_ledger.coq.lock import read_lock
from convattn_ledger.coq.rules import Theorem, scan
from convattn_ledger.coq.sources import LOCK, PROJECT, Project, digest
from convattn_ledger.locations import coq_directory, prove_report
from convattn_ledger.run import EvidenceFailed, NotRunHere, Run

SCHEMA = 1


@dataclass(frozen=True)
class TheoremCheck:
    """The check of one theorem.

    Attributes:
        file: The file of the theorem, under ``proofs/coq/``.
        covers: What the claim says that it covers.
    """

    file: str
    covers: str = ""

    def __call__(self, run: Run) -> str:
        """Look the theorem up in the report of ``convattn prove``.

        Raises:
            EvidenceFailed: If the source has no theorem, its comment does not begin with the id of
                the claim, what it covers is not in the lock, or Coq has refused it.
            NotRunHere: If the present sources have not been checked here.
        """
        directory, path = coq_directory(), prove_report()
        if path is None or not directory.is_dir():
            raise NotRunHere(
                "not re-checked here: a report of convattn prove is read in a checkout alone; "
                "verify there"
            )
        theorem = self._source()
        if run.claim not in theorem.claims:
            raise EvidenceFailed(
                f"{run.claim} names proofs/coq/{self.file}, whose first comment begins with "
                f"{', '.join(theorem.claims) or 'no claim'}; name a theorem of this claim"
            )
        report = read_report(path)
        if report is None or self.file not in report["theorems"]:
            what = "has no report" if report is None else f"does not know {self.file}"
            raise NotRunHere(f"not re-checked here: {path} {what}; {_remedy()}")
        if changed := _changed_since(report, self.file, directory):
            raise NotRunHere(
                f"not re-checked here: changed since it was checked: {', '.join(changed)}; "
                f"{_remedy()}"
            )
        locked = _locked_covers(directory / LOCK).get(self.file, {}).get(run.claim)
        if locked != self.covers:
            raise EvidenceFailed(
                f"covers={self.covers!r}, but the lock has {locked!r}; read the theorem, then run "
                "convattn prove --lock"
            )
        entry = report["theorems"][self.file]
        if not entry["checked"]:
            reasons = [item["found"] for item in report["failures"] if item["file"] == self.file]
            raise EvidenceFailed(
                f"Coq {report['versions']['coq']} has not checked {theorem.name}: "
                f"{'; '.join(reasons) or 'see the report'}; run `make prove`"
            )
        return (
            f"Coq {report['versions']['coq']}: Theorem {theorem.name} of proofs/coq/{self.file}, "
            f"{entry['stands_on']}"
        )

    def _source(self) -> Theorem:
        """The theorem as it stands in the checkout."""
        try:
            text = (coq_directory() / self.file).read_text("utf-8")
        except (OSError, ValueError) as error:
            raise EvidenceFailed(f"proofs/coq/{self.file} cannot be read: {error}") from error
        theorem, failures = scan(self.file, text)
        if theorem is None or failures:
            raise EvidenceFailed("; ".join(map(str, failures)) or f"{self.file} has no theorem")
        return theorem


def _locked_covers(path: Path) -> dict[str, dict[str, str]]:
    """What claims say that they cover, by the file of the theorem, as the lock has it."""
    try:
        content = path.read_bytes()
    except OSError:
        content = b""
    return _parsed_covers(content)


@lru_cache(maxsize=4)
def _parsed_covers(content: bytes) -> dict[str, dict[str, str]]:
    lock = read_lock(Project({LOCK: content})) or {"theorems": {}}
    return {file: entry["covers"] for file, entry in lock["theorems"].items()}


def _remedy() -> str:
    if shutil.which("coqc") is None:
        return f"Coq is not installed: {INSTALL}; then run `make prove`"
    return "run `make prove`"


def read_report(path: Path) -> dict[str, Any] | None:
    """The report of ``convattn prove``; ``None`` if there is none, or it is none of ours."""
    try:
        report = json.loads(path.read_text("utf-8"))
        readable = report["schema"] == SCHEMA and isinstance(report["theorems"], dict)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return report if readable else None


def _changed_since(report: dict[str, Any], file: str, directory: Path) -> list[str]:
    """Which sources of a theorem are not, byte for byte, those that the report is about."""
    changed = []
    for name in {file, PROJECT, LOCK, *report["theorems"][file]["requires"]}:
        try:
            current = digest((directory / name).read_bytes())
        except OSError:
            current = "absent"
        if current != report["sources"].get(name, "absent"):
            changed.append(name)
    return sorted(changed)
