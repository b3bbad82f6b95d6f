"""`python -m convattn_ledger.certificates` writes the committed certificates, byte for byte."""

import pytest

from convattn_ledger.certificates import __main__ as module
from convattn_ledger.certificates.canonical import SCHEMA
from convattn_ledger.certificates.stated import TABLE
from convattn_ledger.locations import certificates_directory


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.slow
def test_the_committed_certificates_are_what_is_written(tmp_path, capsys):
    folder = tmp_path / "new" / "folder"
    table = tmp_path / "stated.json"
    assert module.main(["--output", str(folder), "--stated", str(table)]) == 0
    written = contents(folder)
    assert table.read_bytes() == TABLE.read_bytes()
    assert capsys.readouterr().out == f"{len(written)} certificates in {folder}\n"
    assert written == contents(certificates_directory())


@pytest.fixture
def two(monkeypatch):
    """A catalogue of two, for speed."""
    pair = [("a.json", {"schema": SCHEMA, "n": 1}), ("b.json", {"schema": SCHEMA, "n": 2})]
    monkeypatch.setattr(module, "certificates", lambda: iter(pair))
    return pair


def test_stale_certificates_are_removed_and_nothing_else(two, tmp_path, capsys):
    (tmp_path / "stale.json").write_text(f'{{"schema":"{SCHEMA}"}}\n')
    (tmp_path / "package.json").write_text('{"name":"another"}')
    (tmp_path / "notes.txt").write_text(SCHEMA)
    (tmp_path / "a.json").write_text("old")
    assert module.main(["--output", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"2 certificates in {tmp_path}\n"
    assert sorted(contents(tmp_path)) == ["a.json", "b.json", "notes.txt", "package.json"]
    assert contents(tmp_path)["a.json"] == f'{{"n":1,"schema":"{SCHEMA}"}}\n'.encode()


def test_a_failure_removes_nothing(two, tmp_path, monkeypatch):
    stale = f'{{"schema":"{SCHEMA}"}}\n'.encode()
    (tmp_path / "stale.json").write_bytes(stale)

    def broken():
        yield two[0]
        raise ArithmeticError

    monkeypatch.setattr(module, "certificates", broken)
    with pytest.raises(ArithmeticError):
        module.main(["--output", str(tmp_path)])
    assert contents(tmp_path)["stale.json"] == stale
    assert sorted(contents(tmp_path)) == ["a.json", "stale.json"]


def test_wrong_use(capsys):
    with pytest.raises(SystemExit) as exit_:
        module.main([])
    assert exit_.value.code == 2
    assert "--output" in capsys.readouterr().err
