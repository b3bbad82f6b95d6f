"""``convattn check``: give certificates to the independent checker."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from convattn.cli.consoles import console
from convattn.cli.output_file import require_writable, write_json
from convattn.cli.usage import UsageError
from convattn.ledger.locations import certificates_directory


def check(
    files: Sequence[Path] = (), ignore_digests: bool = False, json: Path | None = None
) -> int:
    """Check each certificate, print one line for each and write the verdicts as JSON.

    Args:
        files: Certificates; all the committed ones if empty.
        ignore_digests: Whether to leave the digests alone and judge the mathematics only.
        json: Where to write the verdicts.

    Returns:
        0 if every certificate is accepted, else 1.

    Raises:
        UsageError: If there is no certificate, or a file cannot be read.
    """
    if json is not None:
        require_writable(json, "--json")
    paths = list(files) or _committed()
    texts = [(path, _read(path)) for path in paths]
    import convattn_check

    plain, verdicts = console(), []
    for path, text in texts:
        verdict = convattn_check.check(text, ignore_digests=ignore_digests)
        word = "ACCEPT" if verdict.accepted else "REJECT"
        reason = "" if verdict.accepted else f"  {verdict.code}: {verdict.reason}"
        line = f"{word}  {path}  {verdict.claim or ''}  {verdict.seconds:.2f} s{reason}"
        plain.print(line, markup=False, soft_wrap=True)
        verdicts.append(_as_dict(path, verdict))
    rejected = sum(not verdict["accepted"] for verdict in verdicts)
    plain.print(f"{len(verdicts) - rejected} accepted, {rejected} rejected")
    if json is not None:
        write_json(json, {"schema": 1, "certificates": verdicts})
    return 1 if rejected else 0


def _committed() -> list[Path]:
    directory = certificates_directory()
    paths = sorted(directory.glob("*.json"))
    if not paths:
        raise UsageError(f"no files given, and no certificates *.json in {directory}")
    return paths


def _read(path: Path) -> str:
    """The text; bytes that are not UTF-8 become characters that no certificate may hold."""
    try:
        return path.read_bytes().decode("utf-8", "surrogateescape")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error


def _as_dict(path: Path, verdict: Any) -> dict[str, Any]:
    return {
        "file": str(path),
        "accepted": verdict.accepted,
        "claim": verdict.claim,
        "code": verdict.code,
        "reason": verdict.reason,
        "seconds": verdict.seconds,
    }
