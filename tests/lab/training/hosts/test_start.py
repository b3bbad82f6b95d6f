"""What cannot be right about the processes is refused before anything is waited for."""

import socket

import jax
import pytest

from convattn.lab.runs.hosts import HostArguments
from convattn.lab.training.hosts import check_processes, start, start_processes


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("a:1", 2, None), "expected all three"),
        ((None, 2, 0), "expected all three"),
        (("a", 2, 0), "expected HOST:PORT"),
        ((":1", 2, 0), "expected HOST:PORT"),
        (("a:x", 2, 0), "expected HOST:PORT"),
        (("a:65536", 2, 0), "expected HOST:PORT"),
        (("a:1", 2, 2), "process=2 of 2, but expected 0 to 1"),
        (("a:1", 2, -1), "process=-1 of 2, but expected 0 to 1"),
        (("a:1", 0, 0), "process=0 of 0, but expected 0 to 0"),
    ],
)
def test_refused(given, message):
    with pytest.raises(ValueError, match=message):
        check_processes(*given)


def test_both_ways_are_refused():
    with pytest.raises(ValueError, match="--distributed takes the processes from the cluster"):
        HostArguments(process=0, distributed=True).start()


def test_a_part_of_the_options_is_refused():
    with pytest.raises(ValueError, match="coordinator=None, processes=2, process=None: expected"):
        HostArguments(processes=2).start()


def test_one_process_starts_nothing():
    check_processes("a:1", 1, 0)
    HostArguments().start()


@pytest.mark.parametrize("address", ["127.0.0.1", "::"])
def test_a_taken_port_is_refused(address, monkeypatch):
    """At an address of this machine; JAX is not asked, for it could crash."""
    monkeypatch.setattr(jax.distributed, "initialize", lambda **given: None)
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        server = socket.create_server((address, 0), family=family)
    except OSError:
        pytest.skip("no IPv6 here")
    with server:
        where = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(ValueError, match=f"could not begin at {where} .*take another"):
            start_processes(where, 1, 0)
    start_processes(where, 1, 0)  # now it is free
    start.stop_watching()
