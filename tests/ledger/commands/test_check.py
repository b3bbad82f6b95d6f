import json
import os
from types import SimpleNamespace

import pytest


@pytest.fixture
def checker(monkeypatch):
    """A checker that accepts what says so."""

    def check(text, ignore_digests=False):
        accepted = text == b"good" or (ignore_digests and text == b"digest")
        code, reason = ("", "") if accepted else ("E_TEXT", "is [bad]")
        return SimpleNamespace(
            accepted=accepted, claim="C20.x", code=code, reason=reason, seconds=0.5
        )

    monkeypatch.setattr("convattn_ledger.commands.check.check", check)


def test_check(convattn_command, checker, tmp_path):
    good, bad, digest = (tmp_path / name for name in ("good.json", "bad.json", "digest.json"))
    for path in (good, bad, digest):
        path.write_text(path.stem)
    done = convattn_command("check", good)
    assert done.code == 0
    assert done.out.splitlines() == [f"ACCEPT  {good}  C20.x  0.50 s", "1 accepted, 0 rejected"]
    target = tmp_path / "verdicts.json"
    done = convattn_command("check", good, bad, "--json", target)
    assert done.code == 1
    assert "E_TEXT: is [bad]" in done.out
    first, second = json.loads(target.read_text())["certificates"]
    assert (first["accepted"], second["accepted"]) == (True, False)
    assert second["code"] == "E_TEXT"
    assert convattn_command("check", digest).code == 1
    assert convattn_command("check", digest, "--ignore-digests").code == 0


def test_check_takes_the_committed_certificates_and_wants_some(
    convattn_command, checker, tmp_path, monkeypatch
):
    monkeypatch.setattr("convattn_ledger.commands.check.certificates_directory", lambda: tmp_path)
    done = convattn_command("check")
    assert done.code == 2
    assert f"no certificates *.json in {tmp_path}" in done.err
    (tmp_path / "a.json").write_text("good")
    (tmp_path / "b.json").write_bytes(b"\xff")
    done = convattn_command("check")
    assert done.code == 1
    assert "1 accepted, 1 rejected" in done.out
    done = convattn_command("check", tmp_path / "absent.json")
    assert done.code == 2
    assert "No such file" in done.err


def test_pipes_devices_and_long_files_are_not_read_to_their_end(convattn_command, tmp_path):
    pipe, long = tmp_path / "pipe", tmp_path / "long.json"
    os.mkfifo(pipe)
    for path in (pipe, "/dev/zero"):
        done = convattn_command("check", path)
        assert done.code == 2
        assert f"cannot read {path}: is a pipe or a device, but expected a file" in done.err
    with long.open("wb") as file:
        file.truncate(2**40)
    done = convattn_command("check", long)
    assert done.code == 1
    assert "range: the file is longer than 500000 bytes" in done.out
