"""Readers that do what none may do, each at one word, for the tests of fuzz.py."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

OUTSIDE = Path(os.environ.get("FUZZ_OUTSIDE", "/nowhere"))


@dataclass(frozen=True)
class Planted:
    """As `Reader` of tests/fuzz/readers.py."""

    name: str
    call: object
    refusals: tuple = (ValueError,)
    seeds: tuple = (b"whole", b"whole too")
    folder: bool = False
    allowed: tuple = ()


def swallowed_memory() -> None:
    try:
        bytearray(2**31)
    except MemoryError as error:
        raise ValueError("it is damaged; copy it again") from error


def hidden_process() -> None:
    try:
        subprocess.run(["true"], check=True)
    except Exception as error:
        raise ValueError("it is damaged; copy it again") from error


def module_from_data(folder: Path) -> None:
    (folder / "given_module.py").write_text("found = 1\n")
    sys.path.insert(0, str(folder))
    try:
        __import__("given_module")
    finally:
        sys.path.pop(0)


def at_a_word(content: bytes, folder: Path) -> None:
    word = content.decode("latin-1")
    if word == "exception":
        {}[word]
    elif word == "hang":
        while True:
            pass
    elif word == "waits":
        import time

        time.sleep(1000)
    elif word == "memory":
        bytearray(2**31)
    elif word == "hidden memory":
        swallowed_memory()
    elif word == "end":
        os.kill(os.getpid(), 11)
    elif word == "written":
        OUTSIDE.write_text("x")
    elif word == "renamed":
        (folder / "a").write_text("x")
        os.replace(folder / "a", OUTSIDE)
    elif word == "process":
        hidden_process()
    elif word == "executed":
        exec("1 + 1")
    elif word == "module":
        module_from_data(folder)
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
    if not content.startswith(b"whole"):
        raise ValueError("it is damaged; copy it again")


READERS = {each.name: each for each in (Planted("word", at_a_word), Planted("sign", at_a_sign))}
