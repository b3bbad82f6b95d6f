"""Readers that do what none may do, each at one word, and what is found at the words given."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "tests"))


from fuzz.reader import Reader  # noqa: E402

OUTSIDE = Path(tempfile.gettempdir(), f"fuzz-outside-{os.getpid()}")


def swallowed(work) -> None:
    try:
        work()
    except Exception as error:
        raise ValueError("it is damaged; copy it again") from error


def forever() -> None:
    while True:
        pass


def at_a_word(content: bytes, folder: Path) -> None:
    word = content.decode("latin-1")
    if word == "exception":
        {}[word]
    elif word == "hang":
        forever()
    elif word == "memory":
        raise MemoryError
    elif word == "hidden memory":
        swallowed(lambda: bytearray(2**62))
    elif word == "written":
        OUTSIDE.write_text("x")
    elif word == "renamed":
        (folder / "a").write_text("x")
        os.replace(folder / "a", OUTSIDE)
    elif word == "process":
        swallowed(lambda: subprocess.run(["true"], check=True))
    elif word == "printed":
        print("Traceback (most recent call last):", file=sys.stderr)
    elif word == "message":
        raise ValueError("")
    elif word == "long message":
        raise ValueError("x" * 10_000)
    elif word == "left":
        (folder / "half").write_text("x")
        raise ValueError("it is damaged; copy it again")
    elif word != "whole":
        raise ValueError("it is damaged; copy it again")


def at_a_sign(content: bytes, folder: Path) -> None:
    if b"\xff" in content:
        raise KeyError("a sign")


READERS = {
    "word": Reader("word", at_a_word, (ValueError,), lambda: [b"whole"]),
    "sign": Reader("sign", at_a_sign, (ValueError,), lambda: [b"whole", b"whole too"]),
}


def watched(words: list[str]) -> None:
    """Print what is found at each of the words."""
    from fuzz.watch import Finding, Watch

    with tempfile.TemporaryDirectory() as folder:
        watch = Watch(READERS["word"], Path(folder), seconds=0.5)
        for word in words:
            try:
                watch(word.encode())
                print(f"{word}: nothing")
            except Finding as found:
                print(f"{word}: {str(found)[:80]}".replace("\n", " "))
    print(f"outside: {OUTSIDE.exists()}")


if __name__ == "__main__":
    watched(sys.argv[1:])
