"""Running both checkers on files, and certificates to run them on."""

import json
import subprocess
from pathlib import Path

from convattn_check import check
from convattn_check.reading import canonical

ROOT = Path(__file__).parents[2]
NOT_COVERED = 3


def run(program, *names):
    """The exit status, and the line of each file without the last one, which sums up."""
    command = [program, *names]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()[:-1]


def word(line):
    return line.partition("  ")[0]


def differences(program, paths):
    """Where a file that the second checker covers is accepted by one checker alone."""
    lines = run(program, *paths)[1]
    assert len(lines) == len(paths)
    return [
        f"{path}: {line}; the first checker: {verdict}"
        for path, line in zip(paths, lines, strict=True)
        for verdict in [check(path.read_bytes(), ignore_digests=True)]
        if word(line) != "NOT COVERED" and (word(line) == "ACCEPT") != verdict.accepted
    ]


def certificates(*kinds):
    """The committed certificates of these kinds, by their names."""
    by_name = {path.stem: json.loads(path.read_text()) for path in sorted(committed())}
    return {name: value for name, value in by_name.items() if value["kind"] in kinds}


def committed():
    return sorted((ROOT / "certificates").glob("*.json"))


def written(folder, values):
    """Certificates, or texts, as files."""
    paths = []
    for name, value in values.items():
        paths.append(folder / f"{name}.json")
        paths[-1].write_text(value if isinstance(value, str) else canonical(value) + "\n")
    return paths
