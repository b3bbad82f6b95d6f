"""``python -m convattn_check``: one line for each file, and a last one that sums up."""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from convattn_check.checking import check
from convattn_check.reading import LARGEST_FILE
from convattn_check.verdict import Verdict


def main(arguments: Sequence[str] | None = None) -> int:
    """Check the files named on the command line.

    Returns:
        0 if all are accepted, 1 if one is rejected, unreadable files among them.

    Raises:
        SystemExit: With 2 for wrong use, with 0 for ``--help``.
    """
    options = _parser().parse_args(arguments)
    started = time.perf_counter()
    verdicts = [(name, _check_file(name, options.ignore_digests)) for name in options.files]
    accepted = sum(verdict.accepted for _, verdict in verdicts)
    if options.json:
        text = json.dumps([_as_dict(name, verdict) for name, verdict in verdicts], indent=2)
    else:
        seconds = time.perf_counter() - started
        last = f"{accepted} accepted, {len(verdicts) - accepted} rejected in {seconds:.2f} s"
        text = "\n".join([*(_line(name, verdict) for name, verdict in verdicts), last])
    try:
        print(text, flush=True)
    except BrokenPipeError:  # its reader has seen enough
        sys.stdout = None
    except OSError as error:
        sys.stdout = None  # or the interpreter would try again
        print(f"the verdicts cannot be written: {error}", file=sys.stderr)
        return 1
    return 0 if accepted == len(verdicts) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m convattn_check",
        description="Check certificates by integers and fractions alone.",
        epilog="Exit status: 0 all accepted, 1 any rejected, 2 wrong use.",
        allow_abbrev=False,
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="a certificate")
    parser.add_argument(
        "--ignore-digests", action="store_true", help="leave it to the mathematics alone"
    )
    parser.add_argument("--json", action="store_true", help="print the verdicts as JSON")
    return parser


def _check_file(name: str, ignore_digests: bool) -> Verdict:
    try:
        path = Path(name)
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise ValueError("it is a pipe or a device")  # which may never begin, or never end
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except (OSError, ValueError) as error:
        return Verdict(False, "", "unreadable", f"the file cannot be read: {error}", 0.0)
    return check(content, ignore_digests=ignore_digests)


def _line(name: str, verdict: Verdict) -> str:
    word = f"ACCEPT  {verdict.claim}" if verdict.accepted else f"REJECT  {verdict.code}"
    return _printable(f"{word}  {name}  {verdict.reason}")


def _printable(text: str) -> str:
    """In plain ASCII on one line: a file's name may hold anything."""
    return "".join(c if " " <= c <= "~" else ascii(c)[1:-1] for c in text)


def _as_dict(name: str, verdict: Verdict) -> dict[str, object]:
    return {
        "file": name,
        "accepted": verdict.accepted,
        "claim": verdict.claim,
        "code": verdict.code,
        "reason": verdict.reason,
        "seconds": verdict.seconds,
    }
