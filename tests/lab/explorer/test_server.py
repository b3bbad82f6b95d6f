"""What the server answers, and whom and what it refuses, saying why."""

import base64
import io
import socket
import struct
import threading
import zlib
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from itertools import islice
from zlib import crc32

import numpy as np
import pytest
from lab.explorer.test_pictures import saved
from PIL import Image

from convattn_lab.explorer import server
from convattn_lab.explorer.pictures import MAX_BYTES, read_picture
from convattn_lab.explorer.server import HEADERS, packed


def short_png() -> bytes:
    """A PNG with half of its rows, all checksums right, which Pillow would fill in."""
    png = picture(8, 6)

    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", crc32(name + body))

    rows = zlib.compress(bytes(3 * (1 + 3 * 8)))
    return png[:33] + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


ASK = "api/attention?image={}&layer={}&row={}&column={}"


def picture(width: int = 30, height: int = 20, kind: str = "PNG") -> bytes:
    noise = np.random.default_rng(0).integers(0, 256, (height, width, 3)).astype(np.uint8)
    return saved(Image.fromarray(noise), kind)


def bomb(width: int, height: int) -> bytes:
    """A small PNG of so many pixels: all black."""
    return saved(Image.new("1", (width, height)))


def test_attention_is_sent_as_it_is(served, vit) -> None:
    image = vit.samples[2]
    result = served.ask(ASK.format(image, 1, 0, 2)).content
    expected = vit.attention(image, 1, (0, 2))
    assert result["shape"] == [2, 2, 3]
    assert (
        result["full"] == packed(expected.full) != packed(expected.position) == result["position"]
    )
    numbers = np.frombuffer(base64.b64decode(result["full"]), "<f4").reshape(2, 2, 3)
    assert (numbers == expected.full.astype(np.float32)).all()
    assert result["numbers"] == expected.numbers


def test_every_answer_has_the_headers(served) -> None:
    for path in ("", "explorer.js", "style.css", "api/model", "api/image?image=s0", "nothing"):
        answer = served.ask(path)
        assert answer.headers.items() >= HEADERS.items(), path
        assert answer.code == (404 if path == "nothing" else 200)


@pytest.mark.parametrize(
    "token", ["/", "/the-tokem/", "/the-token2/", "//", "/THE-TOKEN/", "/%00/"]
)
def test_without_the_token_there_is_nothing(served, token) -> None:
    for path in ("", "api/model", "style.css"):
        answer = served.ask(path, token=token)
        assert answer.code == 403, path
        assert "no valid token" in answer.content["error"]
    assert served.ask("", token="").code in (400, 403)


@pytest.mark.parametrize(
    "path",
    [
        *("../style.css", "../../pyproject.toml", "%2e%2e/style.css", "..%2fstyle.css"),
        *("assets/../explorer.js", "....//explorer.js", "/etc/passwd", "%2fetc%2fpasswd"),
        *("..%5cstyle.css", "explorer.js%00", "api/../api/model", "style.css/../../../x"),
    ],
)
def test_no_path_leads_out(served, path) -> None:
    assert served.ask(path).code in (403, 404)


def test_another_host_or_origin_is_refused(served) -> None:
    for host in ("evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:80", ""):
        assert served.ask("api/model", Host=host).code in (400, 421), host
    for origin in ("http://evil.example", "null"):
        assert served.ask("api/model", Origin=origin).code == 403, origin
    own = f"localhost:{served.port}"
    assert served.ask("api/model", Host=own, Origin=f"http://{own}").code == 200


@pytest.mark.parametrize(
    ("path", "code", "message"),
    [
        (ASK.format("s0", 2, 0, 0), 404, "layer=2, but expected 0 to 1"),
        (ASK.format("s0", 0, 2, 0), 404, "query=(2, 0), but expected a row of 0 to 1"),
        (ASK.format("s0", 0, -1, 0), 400, "row='-1', but expected a whole number"),
        (ASK.format("s0", 0, 0, "9" * 99), 400, "but expected a whole number"),
        (ASK.format("nope", 0, 0, 0), 404, "image='nope', but expected one of"),
        ("api/attention?image=s0", 400, "is missing; give it as"),
        ("api/numbers?layer=7", 404, "layer=7"),
        ("api/outputs?image=s0&layer=0&channel=0", 404, "was not converted"),
        ("api/image?image=../../etc/passwd", 404, "image='../../etc/passwd'"),
    ],
)
def test_what_the_model_does_not_have(served, path, code, message) -> None:
    answer = served.ask(path)
    assert (answer.code, message in answer.content["error"]) == (code, True), answer.content


def test_other_methods_are_refused(served) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
        assert served.ask("api/attention", method).code == 405, method
    assert served.ask("api/image", "DELETE").code == 405


def test_a_picture_is_taken(served, vit) -> None:
    for kind in ("PNG", "JPEG", "WEBP"):
        answer = served.ask("api/image", "POST", picture(kind=kind), x_file_name="a%20cat.png")
        assert (answer.code, answer.content["label"]) == (201, "a cat.png")
        key = answer.content["image"]
        image = Image.open(io.BytesIO(served.ask(f"api/image?image={key}").content))
        assert (np.asarray(image) == vit.pixels(key)).all()
        assert vit.pixels(key).shape == (8, 12, 3)
        assert served.ask(ASK.format(key, 0, 0, 0)).code == 200


@pytest.mark.quick(7)
@pytest.mark.parametrize(
    ("content", "code", "message"),
    [
        (b"", 422, "0 bytes, but expected 1 to"),
        (b"no picture at all", 422, "cannot be read as a picture"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", 422, "cannot be read"),
        (picture()[:200], 422, "cut short"),
        (picture(kind="JPEG")[:300], 422, "cut short"),
        (short_png(), 422, "fewer pixels than its header says"),
        (partial(bomb, 2049, 2048), 422, "2,049 × 2,048 pixels, but expected at most"),
        (partial(bomb, 30_000, 30_000), 422, "expected at most 4,194,304 pixels"),
        (bytes(MAX_BYTES + 1), 413, "more than 8,388,608 bytes"),
    ],
)
def test_what_is_no_picture_or_too_large_is_refused(served, vit, content, code, message) -> None:
    before = len(vit._pictures)
    answer = served.ask("api/image", "POST", content() if callable(content) else content)
    assert (answer.code, message in answer.content["error"]) == (code, True), answer.content
    assert len(vit._pictures) == before


def test_who_goes_away_while_sending_leaves_no_traceback(served, caplog) -> None:
    own = f"127.0.0.1:{served.port}"
    where = served.url.partition(own)[2]
    head = f"POST {where}api/image HTTP/1.1\r\nHost: {own}\r\nContent-Length: 100\r\n\r\n"
    with socket.create_connection(("127.0.0.1", served.port), timeout=20) as connection:
        connection.sendall(f"{head}half".encode())
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(2**16):
            pass
    assert served.ask("api/model").code == 200
    assert not [record.getMessage() for record in caplog.records if record.exc_info]


def test_pictures_wait_in_a_short_queue_and_nothing_else_does(served, vit, monkeypatch) -> None:
    free, decoders = threading.Event(), set()

    def slow(content, size):
        decoders.add(threading.current_thread().name)
        assert free.wait(60)
        return read_picture(content, size)

    monkeypatch.setattr(server, "read_picture", slow)
    with ThreadPoolExecutor(60) as pool:
        sent = [pool.submit(served.ask, "api/image", "POST", picture(n, 9)) for n in range(9, 69)]
        for future in islice(as_completed(sent), 51):
            answer = future.result()
            assert answer.code == 503
            assert "9 pictures are being read already" in answer.content["error"]
        assert served.ask(ASK.format(vit.samples[0], 0, 0, 0)).code == 200
        free.set()
        codes = sorted(future.result().code for future in sent)
    assert codes == [201] * 9 + [503] * 51
    assert len(decoders) == 1
    assert served.ask("api/image", "POST", picture()).code == 201


def test_a_stream_without_a_length_is_cut_off(served) -> None:
    def endless():
        for _ in range(200):
            yield bytes(2**20)

    try:
        answer = served.ask("api/image", "POST", endless(), transfer_encoding="chunked")
    except (BrokenPipeError, ConnectionResetError):
        return  # it was cut off while it was still sending
    assert answer.code == 413


@pytest.mark.slow
def test_a_layer_before_and_after(serve, layer) -> None:
    result = serve(layer).ask("api/outputs?image=s0&layer=0&channel=3").content
    before, after, gap = (
        np.frombuffer(base64.b64decode(result[name]), "<f4").reshape(8, 9)
        for name in ("before", "after", "gap")
    )
    assert np.abs(before - after).max() <= 2.0**-20
    assert result["difference"] == pytest.approx(np.abs(gap).max(), rel=1e-6)
    assert np.unravel_index(np.abs(gap).argmax(), gap.shape) == tuple(result["at"])
    assert 0 < result["difference"] <= result["all"] < 1e-4
    assert 1e-4 < np.abs(before).max() < result["largest"] + 1
    answer = serve(layer).ask("api/outputs?image=s0&layer=0&channel=4")
    assert (answer.code, answer.content["error"]) == (404, "channel=4, but expected 0 to 3")
