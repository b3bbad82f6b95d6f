"""Serving until a signal: on 127.0.0.1, one socket, with a token drawn for this time alone."""

import contextlib
import logging
import secrets
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator

import h11
import uvicorn
from starlette.types import ASGIApp

from convattn_lab.explorer.connections import BoundedConnection, bounds, without_traceback
from convattn_lab.explorer.model import ExploredModel
from convattn_lab.explorer.server import explorer

ADDRESS = "127.0.0.1"
ENDING = ("SIGINT", "SIGTERM", "SIGHUP")  # SIGHUP: its terminal was closed
MAX_WAIT = 5  # seconds for what is being computed when it ends


class Server(uvicorn.Server):
    """Ends on any signal of `ENDING` that is not ignored, and keeps the number of the first."""

    ended_by: int | None = None

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        for name in ("uvicorn.error", "asyncio"):
            logging.getLogger(name).addFilter(_not_of_the_protocol)
        logging.getLogger("asyncio").addFilter(without_traceback)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle the signals meanwhile."""
        numbers = [getattr(signal, name) for name in ENDING if hasattr(signal, name)]
        if threading.current_thread() is not threading.main_thread():
            numbers = []
        before = {n: signal.getsignal(n) for n in numbers if signal.getsignal(n) != signal.SIG_IGN}
        for number in before:
            signal.signal(number, self._end)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _end(self, number: int, frame: object) -> None:
        self.force_exit = self.ended_by is not None
        self.ended_by = self.ended_by or number
        self.should_exit = True


def _not_of_the_protocol(record: logging.LogRecord) -> bool:
    """Whether an error that is logged is another one than a request that is no HTTP.

    Uvicorn answers such a request, or closes the connection, and logs its own failure to do more.
    """
    problem = record.exc_info[1] if record.exc_info else None
    while problem is not None and not isinstance(problem, h11.ProtocolError):
        problem = problem.__cause__ or problem.__context__
    return problem is None


def listening(port: int = 0) -> socket.socket:
    """A socket on this machine alone; port 0 takes a free one.

    Raises:
        OSError: If the port is taken.
    """
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((ADDRESS, port))
        listener.listen(1024)
    except OSError:
        listener.close()
        raise
    return listener


def configured(application: ASGIApp) -> uvicorn.Config:
    """How an application is served: bounded, and with errors alone in the log."""
    return uvicorn.Config(
        application,
        log_level="error",
        access_log=False,
        lifespan="off",
        ws="none",
        loop="asyncio",
        http=BoundedConnection,
        backlog=bounds()[1],
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=1,
    )


def serve(
    model: ExploredModel, listener: socket.socket, ready: Callable[[str], None]
) -> int | None:
    """Serve a model until a signal; heads are measured meanwhile.

    Args:
        listener: From `listening`; closed in the end.
        ready: Called with the URL once it can be opened.

    Returns:
        The number of the signal.
    """
    token, port = secrets.token_urlsafe(24), listener.getsockname()[1]
    server, stop = Server(configured(explorer(model, token, port))), threading.Event()
    measuring = threading.Thread(target=model.measure, args=(stop,), daemon=True)

    def announce() -> None:
        while not (server.started or stop.is_set()):
            time.sleep(0.01)
        if server.started:
            ready(f"http://{ADDRESS}:{port}/{token}/")

    announcing = threading.Thread(target=announce, daemon=True)
    with listener:
        measuring.start()
        announcing.start()
        try:
            server.run(sockets=[listener])
        finally:
            stop.set()
            for thread in (announcing, measuring):
                thread.join(MAX_WAIT)
    return server.ended_by
