"""Two hundred at once, and the end: on a signal, with the terminal, leaving nothing behind."""

import os
import pty
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from lab.explorer.test_server import ASK, bomb

from convattn_lab.explorer.run import listening

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_signal_is_ignored")]


def start(files: Path, *before: str, **options) -> tuple[subprocess.Popen, str]:
    words = [*before, sys.executable, "-m", "convattn.cli", "explore"]
    words += [str(files / "vit.safetensors"), "--heads", "2", "--image-size", "8", "12"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    done = subprocess.Popen(words, **pipes, **options)
    line, hint = done.stdout.readline(), done.stdout.readline()
    result = re.search(r"http://127\.0\.0\.1:\d+/[\w-]{32}/", line)
    assert result, done.stderr.read()
    assert hint == "Ctrl-C ends it.\n"
    return done, result[0]


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_it_ends_on_a_signal(files, number, code) -> None:
    done, url = start(files)
    with urllib.request.urlopen(url) as answer:
        assert b"<title>" in answer.read()
    done.send_signal(number)
    out, err = done.communicate(timeout=20)
    assert done.returncode == code
    assert (out, "Traceback" in err) == ("", False)
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(url, timeout=2)


def test_it_ends_with_its_terminal(files) -> None:
    ours, theirs = pty.openpty()

    done, _ = start(files, "setsid", "--ctty", stdin=theirs)
    os.close(theirs)
    assert done.poll() is None
    os.close(ours)  # the window is closed
    assert done.wait(20) == 128 + signal.SIGHUP


def test_one_socket_listens_and_on_this_machine_alone(files) -> None:
    done, url = start(files)
    try:
        sockets = {os.readlink(descriptor) for descriptor in Path(f"/proc/{done.pid}/fd").iterdir()}
        inodes = {name[8:-1] for name in sockets if name.startswith("socket:")}
        result = []
        for table in ("tcp", "tcp6", "udp", "udp6"):
            for line in Path(f"/proc/{done.pid}/net/{table}").read_text().splitlines()[1:]:
                fields = line.split()
                if fields[9] in inodes and fields[3] == ("0A" if table.startswith("tcp") else "07"):
                    result.append(fields[1])
        port = int(url.split(":")[2].partition("/")[0])
        assert result == [f"0100007F:{port:04X}"]
    finally:
        done.terminate()
        done.wait(20)


def test_two_hundred_at_once(served, vit) -> None:
    cells = [(number // 3 % 2, number % 3) for number in range(200)]
    paths = [ASK.format(vit.samples[n % 7], n % 2, *cells[n]) for n in range(200)]
    started = time.monotonic()
    with ThreadPoolExecutor(200) as pool:
        result = list(pool.map(served.ask, paths))
    assert [answer.code for answer in result] == [200] * 200
    assert time.monotonic() - started < 30
    for number, answer in enumerate(result):
        expected = vit.attention(vit.samples[number % 7], number % 2, cells[number])
        assert answer.content["numbers"] == expected.numbers
    assert result[0].content["full"] != result[1].content["full"]


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc")
def test_many_large_pictures_take_little_memory(files) -> None:
    def peak() -> int:
        status = Path(f"/proc/{done.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) * 1024

    def send(_: int) -> int:
        try:
            return urllib.request.urlopen(f"{url}api/image", bomb(2048, 2048)).status
        except urllib.error.HTTPError as error:
            return error.code

    done, url = start(files)
    try:
        ask = url + ASK.format("s0", 0, 0, 0)
        urllib.request.urlopen(ask).close()
        before, slowest = peak(), 0.0
        with ThreadPoolExecutor(60) as pool:
            sent = [pool.submit(send, n) for n in range(60)]
            while not all(future.done() for future in sent):
                started = time.monotonic()
                urllib.request.urlopen(ask).close()
                slowest = max(slowest, time.monotonic() - started)
        codes = {future.result() for future in sent}
        assert 201 in codes <= {201, 503}
        assert slowest < 5
        assert peak() - before < 200 * 2**20
    finally:
        done.terminate()
        done.wait(20)


def test_a_port_that_is_taken(served) -> None:
    with pytest.raises(OSError, match="in use"):
        listening(served.port)
