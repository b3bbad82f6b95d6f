"""Kills the writer that is named, of which all but one have a planted error."""

import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "scripts" / "reliability"))
import crash

from convattn.files import write_file


def right(path: Path, content: bytes) -> None:
    write_file(path, content)


def in_place(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def forgetful(path: Path, content: bytes) -> None:
    path.unlink(missing_ok=True)
    write_file(path, content)


def littering(path: Path, content: bytes) -> None:
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".a.")
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    os.replace(name, path)


def stubborn(path: Path, content: bytes) -> None:
    if any(entry.name.startswith(".a.") for entry in path.parent.iterdir()):
        raise SystemExit(2)
    write_file(path, content)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        kills, problems = crash.trials(globals()[sys.argv[1]], Path(folder))
    print(kills, *problems, sep="\n")


if __name__ == "__main__":
    main()
