import hashlib
import io
import os
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from convattn.lab.data import DataIntegrityError, download
from convattn.lab.data.download import ARCHIVES, BLOCK, HOME, Archive, download_archive

CONTENT = np.random.default_rng(0).integers(0, 256, 2 * BLOCK + 1234, np.uint8).tobytes()
ARCHIVE = Archive("good.tar.gz", hashlib.md5(CONTENT).hexdigest())
WRONG = hashlib.md5(CONTENT[:-1] + b"?").hexdigest()


class Handler(BaseHTTPRequestHandler):
    """Answers as the first part of the path says."""

    def do_GET(self) -> None:
        kind = self.path.split("/")[1]
        if kind == "missing":
            self.send_error(404)
            return
        self.send_response(200)
        if kind != "unsized":
            self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        body = {"truncated": CONTENT[:BLOCK], "wrong": CONTENT[:-1] + b"?"}.get(kind, CONTENT)
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.fixture
def fetch(address, tmp_path, monkeypatch):
    """Download from the local server in one of its ways; the progress goes into `shown`."""
    monkeypatch.setitem(ARCHIVES, "good", ARCHIVE)

    def run(kind: str, wrap=lambda response: response) -> Path:
        def opener(url: str):
            assert url == HOME + ARCHIVE.file_name
            return wrap(urllib.request.urlopen(f"{address}/{kind}/{ARCHIVE.file_name}", timeout=10))

        console = Console(file=run.shown, force_terminal=True, width=100)
        return download_archive("good", tmp_path / "new" / "folder", opener=opener, console=console)

    run.shown = io.StringIO()
    return run


def files_in(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize("kind", ["good", "unsized"])
def test_the_archive_arrives_with_a_progress_bar(fetch, tmp_path, kind) -> None:
    path = fetch(kind)
    assert path == tmp_path / "new" / "folder" / "good.tar.gz"
    assert path.read_bytes() == CONTENT
    assert files_in(tmp_path) == ["good.tar.gz"]
    assert "good.tar.gz" in fetch.shown.getvalue()
    assert "525.5/525.5 kB" in fetch.shown.getvalue() or kind == "unsized"


def test_nothing_has_the_final_name_before_it_was_checked(fetch, tmp_path) -> None:
    seen = []

    class Watched:
        def __init__(self, response) -> None:
            self.response, self.headers = response, response.headers

        def __enter__(self):
            return self

        def __exit__(self, *_: object) -> None:
            self.response.close()

        def read(self, size: int) -> bytes:
            seen.extend(files_in(tmp_path))
            return self.response.read(size)

    fetch("good", Watched)
    assert len(seen) == 4
    assert len(set(seen)) == 1
    assert seen[0].startswith(".good.tar.gz.")
    assert seen[0].endswith(".part")


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("truncated", r"262,144 bytes came, but 525,522 were announced|IncompleteRead"),
        ("wrong", f"have the MD5 sum {WRONG}, but {ARCHIVE.md5} was expected"),
        ("missing", r"can't be downloaded \(HTTPError: HTTP Error 404: Not Found\)"),
    ],
)
def test_what_is_not_the_archive_is_refused_and_removed(fetch, tmp_path, kind, message) -> None:
    with pytest.raises(DataIntegrityError, match=message):
        fetch(kind)
    assert files_in(tmp_path) == []


class Interrupted:
    """A response that ends in an exception after its first block."""

    def __init__(self, response, error: BaseException) -> None:
        self.response, self.headers, self.error = response, response.headers, error
        self.first = True

    def __enter__(self):
        return self

    def __exit__(self, *_: object) -> None:
        self.response.close()

    def read(self, size: int) -> bytes:
        if not self.first:
            raise self.error
        self.first = False
        return self.response.read(size)


def test_an_interrupt_leaves_nothing(fetch, tmp_path) -> None:
    with pytest.raises(KeyboardInterrupt):
        fetch("good", lambda response: Interrupted(response, KeyboardInterrupt()))
    assert files_in(tmp_path) == []


@pytest.mark.parametrize("error", [ConnectionResetError("by peer"), TimeoutError("timed out")])
def test_a_broken_connection_leaves_nothing(fetch, tmp_path, error) -> None:
    with pytest.raises(DataIntegrityError, match=f"can't be downloaded .*{error}"):
        fetch("good", lambda response: Interrupted(response, error))
    assert files_in(tmp_path) == []


class Endless:
    """A response that goes on and on, and counts what was read."""

    def __init__(self, response) -> None:
        self.headers, self.count = response.headers, 0
        response.close()

    def __enter__(self):
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def read(self, size: int) -> bytes:
        self.count += size
        assert self.count < 2**24
        return bytes(size)


@pytest.mark.parametrize(("kind", "most"), [("good", len(CONTENT)), ("unsized", 2**20)])
def test_more_than_was_announced_is_not_read(fetch, tmp_path, monkeypatch, kind, most) -> None:
    monkeypatch.setattr(download, "LARGEST", 2**20, raising=False)
    with pytest.raises(DataIntegrityError, match=f"bytes or more, but at most {most:,} were exp"):
        fetch(kind, Endless)
    assert files_in(tmp_path) == []


def test_more_than_any_archive_has_is_not_even_begun(fetch, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(download, "LARGEST", 1000, raising=False)

    class Unread(Endless):
        def read(self, size: int) -> bytes:
            raise AssertionError("nothing was to be read")

    with pytest.raises(DataIntegrityError, match="525,522 bytes or more, but at most 1,000 were"):
        fetch("good", Unread)
    assert files_in(tmp_path) == []


def test_an_error_of_another_kind_while_reading_is_reported(fetch, tmp_path) -> None:
    with pytest.raises(DataIntegrityError, match=r"can't be downloaded \(ValueError: read of clos"):
        fetch("good", lambda response: Interrupted(response, ValueError("read of closed file")))
    assert files_in(tmp_path) == []


def test_a_folder_with_the_archives_name_is_refused(fetch, tmp_path) -> None:
    (tmp_path / "new" / "folder" / "good.tar.gz").mkdir(parents=True)
    with pytest.raises(DataIntegrityError, match=r"good\.tar\.gz: is there but can't be read"):
        fetch("good")


def test_a_folder_that_is_a_file_is_refused(fetch, tmp_path) -> None:
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "folder").write_bytes(b"x")
    with pytest.raises(DataIntegrityError, match=r"new/folder: can't be written to \(.*File exi"):
        fetch("good")


def test_what_killed_downloads_left_is_removed_and_nothing_else(fetch, tmp_path) -> None:
    folder = tmp_path / "new" / "folder"
    folder.mkdir(parents=True)
    old = time.time() - 2 * 3600
    names = [
        ".good.tar.gz.0123abcd.part",  # left by a killed download
        ".good.tar.gz.89abcdef.part",  # written just now
        ".other.tar.gz.0123abcd.part",
        ".good.tar.gz.mine.part",
        "good.tar.gz.0123abcd.part",
    ]
    for name in names:
        (folder / name).write_bytes(b"x")
        if "89ab" not in name:
            os.utime(folder / name, (old, old))
    fetch("good")
    assert sorted(files_in(tmp_path)) == sorted([*names[1:], "good.tar.gz"])


def test_a_full_disk_leaves_nothing(fetch, tmp_path, monkeypatch) -> None:
    original = Path.open

    class Full:
        def __init__(self, file) -> None:
            self.file = file

        def __enter__(self):
            return self

        def __exit__(self, *_: object) -> None:
            self.file.close()

        def write(self, block: bytes) -> None:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "open", lambda path, mode="r": Full(original(path, mode)))
    with pytest.raises(DataIntegrityError, match=r"can't be written to .*No space left.*make room"):
        fetch("good")
    assert files_in(tmp_path) == []


def test_without_a_network_it_says_what_to_do(tmp_path) -> None:
    def opener(url: str):
        raise urllib.error.URLError("name or service not known")

    message = "fetch it elsewhere, put it into .* under the name cifar-10-binary.tar.gz"
    with pytest.raises(DataIntegrityError, match=message):
        download_archive("cifar10-binary", tmp_path, opener=opener, console=Console(quiet=True))
    assert files_in(tmp_path) == []


def test_a_good_file_is_used_again(fetch, tmp_path) -> None:
    path = tmp_path / "new" / "folder" / "good.tar.gz"
    path.parent.mkdir(parents=True)
    path.write_bytes(CONTENT)
    assert fetch("missing") == path


def test_a_bad_file_is_named_and_left_alone(fetch, tmp_path) -> None:
    path = tmp_path / "new" / "folder" / "good.tar.gz"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"half")
    found = hashlib.md5(b"half").hexdigest()
    message = f"{path}: is there with the MD5 sum {found}, but {ARCHIVE.md5} .* delete it"
    with pytest.raises(DataIntegrityError, match=message):
        fetch("good")
    assert path.read_bytes() == b"half"


def test_an_unknown_archive_is_refused(tmp_path) -> None:
    with pytest.raises(ValueError, match="no archive 'mnist', but one of cifar10-binary"):
        download_archive("mnist", tmp_path)


def test_archives_come_over_https_from_their_publisher() -> None:
    assert HOME == "https://www.cs.toronto.edu/~kriz/"
    assert len({archive.md5 for archive in ARCHIVES.values()}) == len(ARCHIVES) == 4
    assert all(len(bytes.fromhex(archive.md5)) == 16 for archive in ARCHIVES.values())


def test_the_request_has_a_time_limit(monkeypatch) -> None:
    asked = []
    monkeypatch.setattr(
        urllib.request, "urlopen", lambda url, timeout: asked.append((url, timeout))
    )
    download.open_url("https://example.org/")
    assert asked == [("https://example.org/", 60.0)]
