"""Certificates, for the independent checker and the two commands that give them to it."""

import contextlib
import io
import json
from pathlib import Path

from fuzz.reader import ROOT, Disagreement, chosen, command, same


def read_certificate(content: bytes, folder: Path) -> None:
    """The checker alone, through its own command, and through `convattn check`."""
    from convattn_check import check
    from convattn_check.command import main

    verdict = check(content)
    if verdict.code == "internal":
        raise Disagreement(f"internal: {verdict.reason}")
    if not verdict.accepted and not verdict.reason:
        raise Disagreement(f"no reason for {verdict.code}")
    if not chosen(content, 50):
        return
    path = folder / "given"
    path.write_bytes(content)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        code = main(["--json", str(path)])
    printed = json.loads(said.getvalue())[0]
    expected = (int(not verdict.accepted), verdict.accepted, verdict.code, verdict.reason)
    same((code, printed["accepted"], printed["code"], printed["reason"]), expected, "the command")
    if chosen(content, 500):
        same(command(folder, content, "check"), "", "convattn check")


def certificate_seeds() -> list[bytes]:
    """The quick ones of those that are committed, and all that are to be accepted or refused."""
    from convattn_check import check

    places = ("certificates", "tests/correct", "tests/incorrect")
    paths = [path for place in places for path in sorted((ROOT / place).glob("*-*.json"))]
    contents = [path.read_bytes() for path in paths if path.stat().st_size < 6000]
    return [each for each in contents[::3] if check(each).seconds < 0.05]
