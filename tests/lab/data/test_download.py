"""Archives come whole and checked, or not at all; the server is a local one."""

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from convattn.data import DataIntegrityError
from convattn_lab.data.download import ARCHIVES, LARGEST, Archive, download_archive

CONTENT = np.random.default_rng(0).integers(0, 256, 300_000, np.uint8).tobytes()
ARCHIVE = Archive("good.tar.gz", hashlib.md5(CONTENT).hexdigest())


class Handler(BaseHTTPRequestHandler):
    """Answers as the first part of the path says."""

    asked = 0

    def do_GET(self) -> None:
        type(self).asked += 1
        kind = self.path.split("/")[1]
        if kind == "missing":
            self.send_error(404)
            return
        self.send_response(200)
        length = {"large": LARGEST + 1, "endless": "1e9"}.get(kind, len(CONTENT))
        self.send_header("Content-Length", str(length))
        self.end_headers()
        body = {"truncated": CONTENT[:1000], "wrong": CONTENT[:-1] + b"?"}.get(kind, CONTENT)
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
    """Download from the local server in one of its ways."""
    monkeypatch.setitem(ARCHIVES, "good", ARCHIVE)
    return lambda kind: download_archive("good", tmp_path / "new", home=f"{address}/{kind}/")


def test_the_archive_arrives_once(fetch, tmp_path) -> None:
    path = fetch("good")
    assert path == tmp_path / "new" / "good.tar.gz"
    assert path.read_bytes() == CONTENT
    assert list(path.parent.iterdir()) == [path]
    asked = Handler.asked
    assert fetch("missing") == path
    assert Handler.asked == asked


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("wrong", "known hash"),
        ("truncated", "cannot be fetched"),
        ("missing", "404"),
        ("large", "171000001 bytes"),
        ("endless", "1e9 bytes"),
    ],
)
def test_what_is_not_the_archive_is_thrown_away(fetch, tmp_path, kind, message) -> None:
    with pytest.raises(DataIntegrityError, match=message):
        fetch(kind)
    assert not (tmp_path / "new").exists() or not list((tmp_path / "new").iterdir())


def test_a_changed_file_of_that_name_is_left_as_it_is(fetch, tmp_path) -> None:
    path = tmp_path / "new" / "good.tar.gz"
    path.parent.mkdir()
    path.write_bytes(CONTENT[:-1])
    with pytest.raises(DataIntegrityError, match="MD5 sum is not"):
        fetch("good")
    assert path.read_bytes() == CONTENT[:-1]


def test_no_server_and_no_folder_are_said(tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(ARCHIVES, "good", ARCHIVE)
    with pytest.raises(DataIntegrityError, match="fetch it elsewhere and put it into"):
        download_archive("good", tmp_path, home="http://127.0.0.1:1/")
    (tmp_path / "file").touch()
    with pytest.raises(DataIntegrityError, match="cannot be fetched into"):
        download_archive("good", tmp_path / "file", home="http://127.0.0.1:1/")


@pytest.mark.parametrize("name", ["cifar10-python", "mnist"])
def test_an_archive_that_is_not_there_is_refused(tmp_path, name) -> None:
    with pytest.raises(ValueError, match="expected cifar10-binary or cifar100-binary"):
        download_archive(name, tmp_path)
