"""``convattn check``: give certificates to the independent checker."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import Positional

from convattn.cli.output import console, print_lines, require_outputs, write_json
from convattn.cli.running import FAILED, SUCCESS, Flag, Json, UsageError, option
from convattn.files import read_file
from convattn_check import check
from convattn_check.reading import LARGEST_FILE
from convattn_ledger.locations import certificates_directory


@dataclass(frozen=True)
class Check:
    """Give certificates to the independent checker.

    Exits 0 if all are accepted, 1 if one is rejected, 2 on wrong use.

    Attributes:
        files: Certificates; default: all the committed ones.
        ignore_digests: Skip the digests, so that the mathematics alone decides.
    """

    files: Annotated[Positional[tuple[Path, ...]], option("FILES")] = ()
    ignore_digests: Flag = False
    json: Json = None

    def __call__(self) -> int:
        """Check each certificate, print one line for each and write the verdicts as JSON.

        Returns:
            0 if every certificate is accepted, else 1.
        """
        paths = list(self.files) or _committed()
        require_outputs({"--json": self.json}, {"FILES": paths})
        texts = [(path, _read(path)) for path in paths]
        verdicts = []
        for path, text in texts:
            verdict = check(text, ignore_digests=self.ignore_digests)
            word = "ACCEPT" if verdict.accepted else "REJECT"
            reason = "" if verdict.accepted else f"  {verdict.code}: {verdict.reason}"
            claim = verdict.claim or ""
            print_lines([f"{word}  {path}  {claim}  {verdict.seconds:.2f} s{reason}"])
            verdicts.append(_as_dict(path, verdict))
        rejected = sum(not verdict["accepted"] for verdict in verdicts)
        console().print(f"{len(verdicts) - rejected} accepted, {rejected} rejected")
        write_json(self.json, {"schema": 1, "certificates": verdicts})
        return FAILED if rejected else SUCCESS


def _committed() -> list[Path]:
    directory = certificates_directory()
    paths = sorted(directory.glob("*.json"))
    if not paths:
        raise UsageError(f"no files given, and no certificates *.json in {directory}")
    return paths


def _read(path: Path) -> bytes:
    """The content, of a file too long for a certificate only the beginning."""
    try:
        return read_file(path, LARGEST_FILE + 1)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error


def _as_dict(path: Path, verdict: Any) -> dict[str, Any]:
    fields = ("accepted", "claim", "code", "reason", "seconds")
    return {"file": str(path), **{name: getattr(verdict, name) for name in fields}}
