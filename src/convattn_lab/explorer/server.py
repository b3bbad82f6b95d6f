"""The explorer's pages and answers, on this machine and to whoever has the token alone.

Every address begins with the token, which is compared in constant time, so that the page's own
links need not repeat it. A request must name this machine and port as its host: a page elsewhere
whose name is made to lead here (DNS rebinding) does not. Nothing is read from the disk but the
files of the page, by their names in `ASSETS`.
"""

import asyncio
import base64
import contextlib
import hmac
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from typing import Any
from urllib.parse import unquote

import numpy as np
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from convattn_lab.explorer.model import ExploredModel, NotThere
from convattn_lab.explorer.pictures import MAX_BYTES, PictureRefused, as_png, read_picture

HOSTS = ("127.0.0.1", "localhost")
ASSETS = {
    "": ("convattn_lab.explorer", "index.html", "text/html; charset=utf-8"),
    "style.css": ("convattn_ledger.page", "style.css", "text/css; charset=utf-8"),
    "explorer.css": ("convattn_lab.explorer", "explorer.css", "text/css; charset=utf-8"),
    "explorer.js": ("convattn_lab.explorer", "explorer.js", "text/javascript; charset=utf-8"),
}
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
POSITIONAL_NOTE = (
    "Positions alone decide what these heads attend to, so all images have the same maps."
)
POSITION = {  # what is drawn as position only; by whether attention was recorded, or is positional
    (False, True): "Attention by position alone",
    (False, False): "Attention by position alone, in an image of the mean colour",
    (True, False): "Mean attention over the images",
}
MAX_LABEL_LENGTH = 80
MAX_WAITING = 8  # pictures that wait while one is decoded; the next one is refused
MAX_UPLOAD_SECONDS = 30  # seconds for one picture to arrive


class Gate:
    """What every request passes first: host, origin and token; and the headers of every answer."""

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self.app, self.token = app, token.encode()
        self.hosts = {f"{host}:{port}" for host in HOSTS}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or hand the request on without the token."""
        if scope["type"] != "http":
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message = {**message, "headers": [*message["headers"], *headers]}
            await send(message)

        refusal, rest = self._check(scope)
        if refusal is not None:
            await refusal(scope, receive, with_headers)
            return
        forwarded = {**scope, "path": rest, "raw_path": rest.encode()}
        await self.app(forwarded, receive, with_headers)

    def _check(self, scope: Scope) -> tuple[Response | None, str]:
        headers = {name.lower(): value for name, value in scope["headers"]}
        host = headers.get(b"host", b"").decode("latin-1").lower()
        if host not in self.hosts:
            expected = " or ".join(sorted(self.hosts))
            return _error(f"host={host!r}, but expected {expected}; open the printed URL", 421), ""
        origin = headers.get(b"origin", b"").decode("latin-1").lower()
        if origin and origin.removeprefix("http://") not in self.hosts:
            return _error(
                f"origin={origin!r}, but the explorer answers its own page alone", 403
            ), ""
        _, token, rest = ("/" + scope["path"].lstrip("/") + "//").split("/", 2)
        if not hmac.compare_digest(token.encode(), self.token):
            message = "the address has no valid token; open the URL that convattn explore printed"
            return _error(message, 403), ""
        return None, "/" + rest.removesuffix("//").removesuffix("/")


def explorer(model: ExploredModel, token: str, port: int) -> ASGIApp:
    """The application, for one port of this machine.

    Pictures are decoded one at a time, in a thread of their own, so that other answers do not wait
    for them; of those that wait `MAX_WAITING` are held, which bounds the memory.
    """
    decoder, waiting = ThreadPoolExecutor(1, "decoder"), 0

    def described(request: Request) -> Response:
        source = model.source
        layers = [
            {"name": layer.name, "heads": layer.heads, "grid": list(layer.grid)}
            for layer in model.layers
        ]
        return JSONResponse(
            {
                "name": source.name,
                "kind": source.kind,
                "notes": [*source.notes, *([POSITIONAL_NOTE] if source.positional else [])],
                "position": POSITION[bool(source.recorded), bool(source.positional)],
                "image_size": source.image_size and list(source.image_size),
                "recorded": bool(source.recorded),
                "converted": source.compare is not None,
                "layers": layers,
                "images": [{"id": key, "label": model.label(key)} for key in model.samples],
            }
        )

    def picture(request: Request) -> Response:
        return Response(as_png(model.pixels(_text(request, "image"))), media_type="image/png")

    def attention(request: Request) -> Response:
        query = (_number(request, "row"), _number(request, "column"))
        rows = model.attention(_text(request, "image"), _number(request, "layer"), query)
        maps = {"full": packed(rows.full), "position": packed(rows.position)}
        return JSONResponse({"shape": list(rows.full.shape), **maps, "numbers": rows.numbers})

    def numbers(request: Request) -> Response:
        stats = model.numbers(_number(request, "layer"))
        return JSONResponse({"measuring": True}, 202) if stats is None else JSONResponse(stats)

    def outputs(request: Request) -> Response:
        layer, channel = _number(request, "layer"), _number(request, "channel")
        before, after = model.outputs(_text(request, "image"), layer)
        channels = before.shape[-1]
        if not 0 <= channel < channels:
            raise NotThere(f"channel={channel}, but expected 0 to {channels - 1}")
        signed = after - before
        gap = np.abs(signed)
        position = np.unravel_index(int(gap[..., channel].argmax()), gap.shape[:2])
        return JSONResponse(
            {
                "shape": list(before.shape[:2]),
                "channels": channels,
                "before": packed(before[..., channel]),
                "after": packed(after[..., channel]),
                "gap": packed(signed[..., channel]),
                "difference": float(gap[..., channel].max()),
                "at": [int(index) for index in position],
                "all": float(gap.max()),
                "largest": float(np.abs(before).max()),
            }
        )

    async def arrived(request: Request, keep: bool) -> bytes | None:
        """What was sent, or None if that is too much; what is not kept is read and forgotten."""
        content, size = bytearray(), 0
        async for chunk in request.stream():
            size += len(chunk)
            if size > MAX_BYTES:
                return None
            if keep:
                content += chunk
        return bytes(content)

    async def receive_picture(request: Request) -> Response:
        nonlocal waiting  # on the one thread that receives
        size = model.source.image_size
        if size is None:
            raise NotThere(f"{model.source.name} takes no images: it holds attention alone")
        if waiting > MAX_WAITING:
            with contextlib.suppress(ClientDisconnect, TimeoutError):
                async with asyncio.timeout(MAX_UPLOAD_SECONDS):
                    await arrived(request, keep=False)
            message = (
                f"{waiting} pictures are being read already; send this one again in a few seconds"
            )
            return _error(message, 503)
        label = unquote(request.headers.get("x-file-name", "")).strip() or "a picture"
        label = "".join(char for char in label if char.isprintable())[:MAX_LABEL_LENGTH]
        waiting += 1
        try:
            async with asyncio.timeout(MAX_UPLOAD_SECONDS):
                content = await arrived(request, keep=True)
            if content is None:
                message = f"the file has more than {MAX_BYTES:,} bytes; send a smaller picture"
                return _error(message, 413)

            def decoded() -> str:
                return model.add(read_picture(content, size), label)

            key = await asyncio.get_running_loop().run_in_executor(decoder, decoded)
        except ClientDisconnect:  # nobody is there to be answered
            return _error("the file did not arrive whole; send it again", 400)
        except TimeoutError:
            message = (
                f"the file took more than {MAX_UPLOAD_SECONDS} seconds to arrive; send it again"
            )
            return _error(message, 408)
        finally:
            waiting -= 1
        return JSONResponse({"image": key, "label": label}, 201)

    def asset(package: str, name: str, media: str) -> Callable[[Request], Response]:
        content = files(package).joinpath("assets", name).read_bytes()
        return lambda request: Response(content, media_type=media)

    routes = [
        *(Route(f"/{name}", asset(*file), methods=["GET"]) for name, file in ASSETS.items()),
        Route("/api/model", described),
        Route("/api/image", picture, methods=["GET"]),
        Route("/api/image", receive_picture, methods=["POST"]),
        Route("/api/attention", attention),
        Route("/api/numbers", numbers),
        Route("/api/outputs", outputs),
    ]
    codes: dict[Any, int] = {NotThere: 404, PictureRefused: 422, ValueError: 400}

    def handler(code: int) -> Callable[[Request, Exception], Response]:
        return lambda request, error: _error(str(error), code)

    def plain(request: Request, error: Exception) -> Response:
        code = getattr(error, "status_code", 500)
        messages = {
            404: "there is nothing at this address",
            405: "this address takes no such method",
        }
        requested = f"{request.method} {request.url.path}"
        return _error(f"{requested}: {messages.get(code, 'the explorer failed')}", code)

    handlers: dict[Any, Any] = {kind: handler(code) for kind, code in codes.items()}
    handlers |= {HTTPException: plain}
    return Gate(Starlette(routes=routes, exception_handlers=handlers), token, port)


def packed(array: np.ndarray) -> str:
    """Numbers as little-endian float32 in base64, which is short and quick to read.

    >>> np.frombuffer(base64.b64decode(packed(np.array([0.5]))), "<f4").tolist()
    [0.5]
    """
    return base64.b64encode(np.ascontiguousarray(array, "<f4").tobytes()).decode()


def _error(message: str, code: int) -> Response:
    return JSONResponse({"error": message}, code)


def _text(request: Request, name: str) -> str:
    if name not in request.query_params:
        raise ValueError(f"{name} is missing; give it as ?{name}=…")
    return request.query_params[name]


def _number(request: Request, name: str) -> int:
    text = _text(request, name)
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise ValueError(f"{name}={text[:40]!r}, but expected a whole number, 0 or more")
    return int(text)
