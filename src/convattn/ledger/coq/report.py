"""The report of a run of ``convattn prove``: what was checked, of which sources.

It is written whole or not at all, and believed only for sources that are still the same, byte for
byte: a theorem's own file, all that it requires, and ``_CoqProject``.
"""

import json
from pathlib import Path
from typing import Any

from convattn.ledger.coq.project import PROJECT, digest

SCHEMA = 1


def read_report(path: Path) -> dict[str, Any] | None:
    """The report; ``None`` if there is none, or it is none of ours.

    Args:
        path: The file.
    """
    try:
        report = json.loads(path.read_text("utf-8"))
        readable = report["schema"] == SCHEMA and isinstance(report["theorems"], dict)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return report if readable else None


def changed_since(report: dict[str, Any], file: str, directory: Path) -> list[str]:
    """Which sources of a theorem are not those of the report.

    Args:
        report: What `read_report` returned; it must have the theorem.
        file: The theorem's file, under the directory.
        directory: The folder of the sources.
    """
    names = {file, PROJECT, *report["theorems"][file]["requires"]}
    recorded = report["sources"]
    return sorted(
        name for name in names if _digest_of(directory / name) != recorded.get(name, "absent")
    )


def _digest_of(path: Path) -> str:
    try:
        return digest(path.read_bytes())
    except OSError:
        return "absent"
