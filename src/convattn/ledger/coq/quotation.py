"""A claim's quotation of a theorem, and what becomes of it where the claim is verified."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from convattn.ledger.coq.report import changed_since, read_report
from convattn.ledger.coq.source import Theorem, normalised, scan
from convattn.ledger.coq.toolchain import INSTALL
from convattn.ledger.locations import coq_directory, prove_report
from convattn.ledger.run import EvidenceFailed, NotRunHere, Run


@dataclass(frozen=True)
class Quotation:
    """The check of evidence of level PROVED: it holds the proof's file and the theorem's text.

    Attributes:
        file: The file, under ``proofs/coq/``.
        statement: The text of its theorem, from ``Theorem`` to the full stop; white space and
            comments do not count.
    """

    file: str
    statement: str

    def __call__(self, run: Run) -> str:
        """Ask the report of ``convattn prove`` about the theorem that is quoted.

        Raises:
            EvidenceFailed: If the source says something else, or was refused.
            NotRunHere: If the present sources have not been checked here.
        """
        directory, path = coq_directory(), prove_report()
        if path is None or not directory.is_dir():
            raise NotRunHere(
                f"not re-checked here: the source {self.file} does not come with the installed "
                "package; verify in a checkout"
            )
        theorem = self._source(directory)
        report = read_report(path)
        if report is None or self.file not in report["theorems"]:
            what = "has no report" if report is None else f"does not know {self.file}"
            raise NotRunHere(f"not re-checked here: {path} {what}; {_remedy()}")
        if changed := changed_since(report, self.file, directory):
            raise NotRunHere(
                f"not re-checked here: changed since it was checked: {', '.join(changed)}; "
                f"{_remedy()}"
            )
        entry = report["theorems"][self.file]
        if not entry["checked"] or entry["statement"] != theorem.statement:
            reasons = [item["found"] for item in report["failures"] if item["file"] == self.file]
            raise EvidenceFailed(
                f"Coq {report['versions']['coq']} has not checked {theorem.name}: "
                f"{'; '.join(reasons) or 'see the report'}; run `make prove`"
            )
        return (
            f"Coq {report['versions']['coq']}: Theorem {theorem.name} of proofs/coq/{self.file}, "
            f"{entry['stands_on']}"
        )

    def differs(self, theorem: Theorem) -> str:
        """How the quotation differs from the theorem; empty if it does not.

        Args:
            theorem: The theorem of the file.
        """
        quoted = normalised(self.statement)
        if quoted == theorem.statement:
            return ""
        pairs = zip(f"{quoted}\0", f"{theorem.statement}\0", strict=False)
        place = next(number for number, (ours, its) in enumerate(pairs) if ours != its)
        start = max(place - 30, 0)
        return (
            f"the quotation has ...{quoted[start : place + 30]!r}, where the source has "
            f"...{theorem.statement[start : place + 30]!r}"
        )

    def _source(self, directory: Path) -> Theorem:
        """The theorem as it stands, which must be the one that is quoted."""
        try:
            text = (directory / self.file).read_text("utf-8")
        except (OSError, ValueError) as error:
            raise EvidenceFailed(f"proofs/coq/{self.file} cannot be read: {error}") from error
        theorem, failures = scan(self.file, text)
        if theorem is None or failures:
            raise EvidenceFailed("; ".join(map(str, failures)) or f"{self.file} has no theorem")
        if difference := self.differs(theorem):
            raise EvidenceFailed(f"{self.file}: {difference}; quote the source")
        return theorem


def _remedy() -> str:
    if shutil.which("coqc") is None:
        return f"Coq is not installed: {INSTALL}; then run `make prove`"
    return "run `make prove`"
