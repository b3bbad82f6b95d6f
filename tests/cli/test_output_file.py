import json
import math
import os
import stat

import pytest

from convattn.cli.output_file import require_writable, write_file, write_json
from convattn.cli.usage import UsageError


def test_an_existing_file_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    target = tmp_path / "file.json"
    target.write_text("old")
    target.chmod(0o640)
    with pytest.raises(ValueError, match="JSON"):
        write_json(target, {"figure": math.nan})
    assert target.read_text() == "old"

    def fails(source, destination):
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fails)
        with pytest.raises(OSError, match="disk full"):
            write_file(target, b"new")
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["file.json"]
    write_json(target, {"text": "lone surrogate \udc80"})
    assert json.loads(target.read_text()) == {"text": "lone surrogate \udc80"}
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert os.listdir(tmp_path) == ["file.json"]


def test_links_are_followed_and_pipes_are_written_to(tmp_path):
    target, link, pipe = tmp_path / "target", tmp_path / "link", tmp_path / "pipe"
    target.write_text("old")
    link.symlink_to(target)
    write_file(link, b"new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    require_writable(pipe, "--json")
    write_file(pipe, b"through")
    assert os.read(reader, 100) == b"through"
    os.close(reader)


def test_a_directory_that_may_not_be_written_is_refused(tmp_path, monkeypatch):
    def refused(*args, **keywords):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.NamedTemporaryFile", refused)
    with pytest.raises(UsageError, match=r"--json got .*Permission denied"):
        require_writable(tmp_path / "file", "--json")
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="may not be written"):
        require_writable(tmp_path / "file", "--json")
