"""The explorer: the requests that it answers, and the files that it opens."""

import contextlib
import functools
import re
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.image_readers import picture
from fuzz.network_readers import diagnosed_seeds, network_seeds
from fuzz.reader import Disagreement


def read_request(content: bytes, folder: Path) -> None:
    """Bytes that are sent to the explorer; every answer is one of those that it documents."""
    import socket

    port, problems = _server()
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(content.replace(b"PORT", b"%d" % port, 1))
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        with contextlib.suppress(ConnectionResetError):
            while part := connection.recv(2**16):
                answer += part
    for line in re.findall(rb"HTTP/1\.1 (\d+)[^\r]*\r\n", answer):
        if line not in ANSWERS:
            raise Disagreement(f"the explorer answers {line!r}: {answer[:500]!r}")
    if problems:
        raise Disagreement(f"the explorer says {problems.pop()}")


ANSWERS = b"100 200 201 202 400 403 404 405 408 413 421 422 503".split()
TOKEN = "the-token"


@functools.cache
def _server() -> tuple[int, list[str]]:
    """The port of an explorer in a thread, and what it logs as an error."""
    import logging
    import threading
    import time

    import uvicorn

    from convattn_lab.explorer.model import ExploredModel
    from convattn_lab.explorer.run import Server, listening
    from convattn_lab.explorer.server import explorer

    problems: list[str] = []
    handler = logging.Handler(logging.ERROR)
    handler.emit = lambda record: problems.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("uvicorn.error").addHandler(handler)
    model, listener = ExploredModel(_explored_source(), reference=1), listening()
    model.measure()
    port = listener.getsockname()[1]
    how: dict[str, Any] = {"log_level": "error", "access_log": False, "lifespan": "off"}
    how |= {"ws": "none", "loop": "asyncio", "http": "h11", "log_config": None}
    server = Server(uvicorn.Config(explorer(model, TOKEN, port), **how))
    threading.Thread(target=server.run, args=([listener],), daemon=True).start()
    while not server.started:
        time.sleep(0.01)
    return port, problems


def _explored_source() -> Any:
    import tempfile

    from convattn_lab.explorer.opening import open_source

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "layer.safetensors")
        path.write_bytes(layer_of_images())
        return open_source(path, image_size=(4, 4))


def layer_of_images() -> bytes:
    """A converted layer on pictures of three channels."""
    import jax.numpy as jnp

    import convattn as ca
    from convattn.networks.weights.stored_layer import encode, layer_arrays, layer_metadata

    kernel = jnp.asarray(np.random.default_rng(0).normal(size=(3, 3, 3, 2)), jnp.float32)
    layer = ca.conv_to_attention(kernel)
    return encode(layer_arrays(layer), layer_metadata(layer), ".safetensors")


def request_seeds() -> list[bytes]:
    """Each address of the explorer, and pictures that are sent."""
    addresses = (
        *("", "style.css", "api/model", "api/image?image=s0", "api/numbers?layer=0"),
        "api/attention?image=s0&layer=0&row=1&column=1",
        "api/outputs?image=s0&layer=0&channel=1",
    )
    head = "{} /" + TOKEN + "/{} HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n"
    asked = [head.format("GET", where) + "\r\n" for where in addresses]
    post = head.format("POST", "api/image") + "X-File-Name: a%20b\r\nContent-Length: {}\r\n\r\n"
    sent = [picture("RGB", "PNG"), picture("RGB", "JPEG")]
    posts = [post.format(len(body)).encode() + body for body in sent]
    return [*(text.encode() for text in asked), *posts]


def read_explored(content: bytes, folder: Path) -> None:
    """A file that the explorer opens, shown for one query."""
    from convattn_lab.explorer.model import ExploredModel
    from convattn_lab.explorer.opening import open_source

    path = folder / "given"
    path.write_bytes(content)
    with np.errstate(all="ignore"):
        model = ExploredModel(open_source(path, image_size=(4, 4)), reference=1)
        model.attention(model.samples[0], 0, (0, 0))


def explored_seeds() -> list[bytes]:
    """A converted layer, attention probabilities, a vision transformer and a network."""
    return [layer_of_images(), *diagnosed_seeds(), *network_seeds()]
