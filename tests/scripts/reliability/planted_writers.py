"""Writers with a planted error, and one without, killed by crash.py: KIND PARTS…"""

import json
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "scripts" / "reliability"))
import crash
from crash_commands import Command
from crash_process import Program

from convattn.files import write_file

OUT = Path("out/a.json")


def right(content: bytes) -> None:
    write_file(OUT, content)


def in_place(content: bytes) -> None:
    OUT.write_bytes(content)


def forgetful(content: bytes) -> None:
    OUT.unlink(missing_ok=True)
    write_file(OUT, content)


def littering(content: bytes) -> None:
    descriptor, name = tempfile.mkstemp(dir="out", prefix=".a.")
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    os.replace(name, OUT)


def stubborn(content: bytes) -> None:
    if any(path.name.startswith(".a.") for path in OUT.parent.iterdir()):
        raise SystemExit(2)
    write_file(OUT, content)


def main() -> int:
    write = globals()[sys.argv.pop(1)]

    def call(words: list[str]) -> int:
        write(json.dumps({"content": words * 1000}).encode())
        return 0

    def words(inputs: str, before: bool) -> list[str]:
        return ["before" if before else "now"]

    program = Program(call, (sys.executable, "-c", "raise SystemExit(1)"))
    return crash.main({"planted": Command(program, lambda inputs: None, words)})


if __name__ == "__main__":
    sys.exit(main())
