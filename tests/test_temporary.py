"""What a killed process has left is removed by the next one, and what another one has is not."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from convattn.files import filename_in_errors, write_file
from convattn.temporary import LOCK_NAME, file_beside, is_beside, lock, temporary_folder

locks = pytest.mark.skipif(os.name != "posix", reason="no locks")
KILLED = """
import os, sys
from pathlib import Path
from convattn.temporary import file_beside, temporary_folder
kind, place = sys.argv[1:]
made = file_beside(Path(place)) if kind == "file" else temporary_folder(place)
with made as name:
    print(name, flush=True)
    if kind == "folder":
        Path(name, "more").mkdir()
        Path(name, "more", "content").write_text("content")
    os.kill(os.getpid(), 9)
"""


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def killed(kind, place):
    """What a process that was killed has left."""
    words = [sys.executable, "-c", KILLED, kind, str(place)]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == -9
    return Path(done.stdout.strip())


@locks
def test_a_file_that_was_left_is_removed_by_the_next_writer(tmp_path):
    path = tmp_path / "a.json"
    left = killed("file", path)
    assert left.exists()
    other = killed("file", tmp_path / "b.json")
    write_file(path, b"{}")
    assert sorted(each.name for each in tmp_path.iterdir()) == [other.name, "a.json"]


@locks
def test_a_folder_that_was_left_is_removed_by_the_next(temporary):
    left = killed("folder", "convattn-test-")
    assert (left / "more" / "content").exists()
    (temporary / "convattn-test-empty").mkdir()
    with temporary_folder("convattn-test-") as folder:
        assert list(temporary.iterdir()) == [folder]
        assert list(folder.iterdir()) == [folder / LOCK_NAME]
        (folder / "more").mkdir()
    assert list(temporary.iterdir()) == []


@locks
def test_what_somebody_has_stays(temporary):
    path = temporary / "a.json"
    with file_beside(path) as first, temporary_folder("convattn-test-") as folder:
        with file_beside(path) as second, temporary_folder("convattn-test-") as other:
            assert len({first, second, folder, other}) == 4
            assert all(os.path.exists(each) for each in (first, second, folder, other))
        assert os.path.exists(first)
        assert folder.exists()


@locks
def test_a_maker_begins_again_if_what_it_has_made_is_taken_for_left(temporary, monkeypatch):
    """Another process comes between making and locking."""
    makers = {"mkstemp": tempfile.mkstemp, "mkdtemp": tempfile.mkdtemp}

    def taken_once(name, remove):
        def make(*args, **more):
            temporary_path = makers[name](*args, **more)
            monkeypatch.setattr(tempfile, name, makers[name])
            remove(temporary_path[1] if isinstance(temporary_path, tuple) else temporary_path)
            return temporary_path

        monkeypatch.setattr(tempfile, name, make)

    taken_once("mkstemp", os.unlink)
    taken_once("mkdtemp", os.rmdir)
    write_file(temporary / "a.json", b"{}")
    with temporary_folder("convattn-test-") as folder:
        assert folder.exists()
    assert [each.name for each in temporary.iterdir()] == ["a.json"]


def test_what_looks_like_it_and_is_not_stays(temporary):
    """A file of somebody else's, a link, and a folder without the file by which it is held."""
    others = [
        ".a.json.original",
        ".a.json.bak.part",
        ".a.json.A0000000.part",
        "a.json.00000000.part",
    ]
    for name in others:
        (temporary / name).write_text("precious")
    (temporary / ".a.json.00000000.part").symlink_to(temporary / others[0])
    (temporary / "convattn-test-0").mkdir()
    (temporary / "convattn-test-0" / "precious").touch()
    (temporary / "convattn-test-1").symlink_to(temporary / "convattn-test-0")
    before = sorted(temporary.rglob("*"))
    write_file(temporary / "a.json", b"{}")
    with temporary_folder("convattn-test-"):
        pass
    assert sorted(temporary.rglob("*")) == sorted([*before, temporary / "a.json"])


def test_without_locks_nothing_is_removed_but_ones_own(temporary, monkeypatch):
    monkeypatch.setitem(sys.modules, "fcntl", None)
    left = temporary / ".a.json.00000000.part"
    left.touch()
    with left.open() as file:
        assert lock(file.fileno()) is None
    write_file(temporary / "a.json", b"{}")
    assert sorted(each.name for each in temporary.iterdir()) == [left.name, "a.json"]
    assert is_beside(left.name, ["a.json"])


def test_an_error_names_the_file_that_was_asked_for(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    with pytest.raises(FileNotFoundError) as error:
        write_file(tmp_path / "none" / "a.json", b"")
    assert error.value.filename == str(tmp_path / "none" / "a.json")

    def full(descriptor):
        raise OSError(28, "No space left on device")

    path.write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"No space left on device: it was not written.*a\.json"):
        write_file(path, b"new")
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("a.json", b"old")]


def test_an_error_that_names_a_file_is_left_as_it_is(tmp_path):
    with pytest.raises(FileNotFoundError) as error, filename_in_errors(tmp_path / "a"):
        (tmp_path / "b").read_bytes()
    assert error.value.filename == str(tmp_path / "b")
    with (
        pytest.raises(OSError, match="No space left on device") as error,
        filename_in_errors(tmp_path / "a"),
    ):
        raise OSError(28, "No space left on device")
    assert error.value.filename == str(tmp_path / "a")
