import errno
import json
import math
import os
import stat

import pytest

from convattn.cli.output import require_outputs, require_writable, run_files, write_json
from convattn.cli.running import UsageError
from convattn.files import write_file


def test_an_existing_file_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    target = tmp_path / "file.json"
    target.write_text("old")
    target.chmod(0o640)
    with pytest.raises(ValueError, match="JSON"):
        write_json(target, {"figure": math.nan})
    assert target.read_text() == "old"

    def fails(source, destination):
        raise OSError(errno.ENOSPC, "disk full")

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

    monkeypatch.setattr("tempfile.mkstemp", refused)
    with pytest.raises(UsageError, match=r"--json got .*Permission denied"):
        require_writable(tmp_path / "file", "--json")
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="may not be written"):
        require_writable(tmp_path / "file", "--json")


def spellings(path):
    """The same file by other names: relative parts, a symbolic link, a hard link."""
    symbolic, hard = path.with_name("symbolic"), path.with_name("hard")
    symbolic.symlink_to(path)
    os.link(path, hard)
    return [path, path.parent / "." / ".." / path.parent.name / path.name, symbolic, hard]


def test_an_output_that_is_an_input_under_any_name_is_refused(tmp_path):
    path = tmp_path / "c.json"
    path.write_text("read")
    for name in spellings(path):
        with pytest.raises(UsageError, match=r"--json and FILES are both .* overwrite the other"):
            require_outputs({"--json": name}, {"FILES": [tmp_path / "other", path]})
    with pytest.raises(UsageError, match="--json and --output are both"):
        require_outputs({"--output": tmp_path / "new", "--json": tmp_path / "new"}, {})
    require_outputs({"--output": None, "--json": tmp_path / "new"}, {"FILES": path, "--bias": None})


@pytest.mark.parametrize("link", ["", "symlink_to", "hardlink_to"])
@pytest.mark.parametrize(
    "words",
    [
        ("check", "{file}", "--json", "{output}"),
        ("verify", "--proofs", "{folder}", "--json", "{output}"),
        ("verify", "--certificates", "{folder}", "--json", "{output}"),
        ("ledger", "--proofs", "{folder}", "--output", "{output}"),
        ("convert", "kernel", "{file}", "--json", "{output}"),
        ("convert", "kernel", "{folder}/x.npz", "--bias", "{file}", "--json", "{output}"),
        ("convert", "network", "{folder}", "--json", "{output}"),
    ],
)
def test_no_command_overwrites_what_it_reads(convattn_command, tmp_path, words, link):
    folder = tmp_path / "folder"
    folder.mkdir()
    suffix = "py" if "--proofs" in words and words[2] == "{folder}" else "json"
    path = folder / f"config.{suffix}"
    path.write_text("{}")
    output = tmp_path / f"output.{suffix}" if link else path
    if link:
        getattr(output, link)(path)
    done = convattn_command(
        *(word.format(file=path, folder=folder, output=output) for word in words)
    )
    assert done.code == 2
    assert "one would overwrite the other" in done.err
    assert path.read_text() == "{}"
    assert sorted(folder.iterdir()) == [path]


@pytest.mark.parametrize(
    "content", ["[" * 10**5, '{"images":{"source":"a\\u0000b"}}', '{"images":1}', "1" * 10**5, ""]
)
def test_damaged_settings_of_a_run_do_not_end_the_check_of_outputs(tmp_path, content):
    (tmp_path / "config.json").write_text(content)
    files = run_files(tmp_path)
    assert tmp_path / "config.json" in files
    require_outputs({"--json": tmp_path / "new.json"}, {"RUN": files})
    with pytest.raises(UsageError, match="one would overwrite the other"):
        require_outputs({"--json": tmp_path / "config.json"}, {"RUN": files})
