import io
import itertools
import json
import os
import runpy
import sys
import time

import certificate_builder as build
import pytest
from certificate_cases import CASES

from convattn_check.command import main


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("wo", "finite", "rank"):
        (tmp_path / f"{name}.json").write_text(build.written(CASES[name]))
    bad = build.sealed(CASES["wo"])
    bad["body"]["ring"] = [[0, 0], [0, 0]]
    (tmp_path / "bad.json").write_text(build.written(build.sealed(bad)))
    old = CASES["rank"] | {"statement": "Another."}
    (tmp_path / "old.json").write_text(build.written(old))
    return tmp_path


def test_all_accepted(folder, capsys):
    assert main(["wo.json", "finite.json"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("ACCEPT  L21.wo  wo.json  for every 5x3 kernel")
    assert lines[1].startswith("ACCEPT  S.finite  finite.json  ")
    assert lines[2].startswith("2 accepted, 0 rejected in ")
    assert len(lines) == 3


def test_one_rejected(folder, capsys):
    assert main(["wo.json", "bad.json", "missing.json", "."]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("REJECT  ring  bad.json  axis 0 has 0 zero tokens before")
    assert lines[2].startswith("REJECT  unreadable  missing.json  the file cannot be read: ")
    assert "No such file" in lines[2]
    assert lines[3].startswith("REJECT  unreadable  .  the file cannot be read: ")
    assert "Is a directory" in lines[3]
    assert lines[4].startswith("1 accepted, 3 rejected")


def test_digests_can_be_left_alone(folder, capsys):
    assert main(["old.json"]) == 1
    assert capsys.readouterr().out.startswith("REJECT  stale  old.json")
    assert main(["--ignore-digests", "old.json", "bad.json"]) == 1
    out = capsys.readouterr().out
    assert "ACCEPT  C20.rank  old.json" in out
    assert "REJECT  ring  bad.json" in out


def test_json(folder, capsys):
    assert main(["--json", "rank.json", "bad.json", "missing.json"]) == 1
    out = capsys.readouterr().out
    good, bad, missing = json.loads(out)
    assert out.startswith('[\n  {\n    "file": "rank.json",\n')
    assert good["seconds"] > missing["seconds"] == 0
    assert good.keys() == {"file", "accepted", "claim", "code", "reason", "seconds"}
    assert (good["file"], good["accepted"], good["claim"]) == ("rank.json", True, "C20.rank")
    assert (bad["accepted"], bad["claim"], bad["code"]) == (False, "L21.wo", "ring")
    assert (missing["accepted"], missing["claim"], missing["code"]) == (False, "", "unreadable")


def test_seconds_are_those_that_passed(folder, capsys, monkeypatch):
    """On a clock that is a second further at each look: the whole and each check look twice."""
    monkeypatch.setattr(time, "perf_counter", itertools.count(5).__next__)
    assert main(["rank.json"]) == 0
    assert capsys.readouterr().out.endswith("\n1 accepted, 0 rejected in 3.00 s\n")
    assert main(["--json", "rank.json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["seconds"] == 1


@pytest.mark.parametrize("arguments", [[], ["--json"], ["--quick", "wo.json"], ["--js", "wo.json"]])
def test_wrong_use(folder, capsys, arguments):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert "usage: python -m convattn_check" in capsys.readouterr().err


def test_any_name_is_printed_on_one_line_of_ascii(folder, capsys):
    names = ["a\nACCEPT b", "\x1b[31m", "é", "\udcff", "nul\0"]
    assert main(names) == 1
    out = capsys.readouterr().out
    assert out.isascii()
    assert len(out.splitlines()) == len(names) + 1
    assert out.count("REJECT  unreadable") == len(names)
    for number, name in enumerate((r"a\nACCEPT b", r"\x1b[31m", r"\xe9", r"\udcff", r"nul\x00")):
        assert out.splitlines()[number].startswith(f"REJECT  unreadable  {name}  the file")
    assert main(["--json", *names]) == 1
    assert [verdict["file"] for verdict in json.loads(capsys.readouterr().out)] == names


def test_a_pipe_or_a_device_is_not_read(tmp_path, capsys):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert main(["/dev/zero", str(pipe)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("REJECT  unreadable  /dev/zero  the file cannot be read: it is a")
    assert lines[1].startswith(f"REJECT  unreadable  {pipe}  the file cannot be read: it is a pipe")


def test_a_long_file_is_not_read_to_its_end(tmp_path, capsys):
    path = tmp_path / "long.json"
    with path.open("wb") as file:
        file.truncate(2**40)
    assert main([str(path)]) == 1
    assert capsys.readouterr().out.startswith(f"REJECT  range  {path}  the file is longer than")


def test_as_a_module(folder, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["convattn_check", "rank.json"])
    with pytest.raises(SystemExit) as stop:
        runpy.run_module("convattn_check", run_name="__main__")
    assert stop.value.code == 0
    assert capsys.readouterr().out.startswith("ACCEPT  C20.rank  rank.json")


@pytest.mark.parametrize("method", ["write", "flush"])
@pytest.mark.parametrize(("problem", "code"), [(BrokenPipeError(), 0), (OSError(28, "full"), 1)])
def test_output_that_cannot_be_written(folder, capsys, monkeypatch, method, problem, code):
    def fails(*_):
        raise problem

    monkeypatch.setattr(sys, "stdout", io.StringIO())
    monkeypatch.setattr(sys.stdout, method, fails)
    assert main(["rank.json"]) == code
    assert sys.stdout is None
    assert ("the verdicts cannot be written" in capsys.readouterr().err) == bool(code)
