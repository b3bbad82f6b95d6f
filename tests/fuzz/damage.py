"""Strategies of Hypothesis for damaged files: of bytes, and of the structure that the bytes have.

Where a file is JSON, NumPy's, safetensors, an archive or compressed, what it means is changed and
packed again, so that lengths and checksums fit; an archive's member likewise, inwards. Now and
then, and where a file has no such structure any more, its bytes are changed.
"""

import ast
import bz2
import gzip
import hashlib
import io
import json
import lzma
import re
import struct
import tarfile
import warnings
import zipfile
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

Draw = Callable[[st.SearchStrategy[Any]], Any]
MAX_BYTES = 2**20  # of what is drawn, and of what is unpacked
INTEGER = re.compile(r"-?[0-9]+")
NUMBERS = (0, 1, -1, 2, 255, 65536, 2**31, 2**63, 10**23, 10**400, 0.5, -0.0, 1e308)
TEXTS = ("", "0", "1/2", "1/0", "nan", "x" * 5000, "\x00", "\x1b[31m", "\ud800", "δ", "../../x")
OTHERS = (float("nan"), float("inf"), None, True, False, [], {}, [[]], [0] * 1000, {"a": 1})
NAMES = ("../x.npy", "/x.npy", "x.pkl", "train/cat/../x.png", "", "x" * 300, "ä", "a\x00b")
DTYPES = ("|O", "<f2", ">f8", "<c8", "<M8[s]", "<U100000000", "|S0", "|V2", "", "(1000000000,)f8")
SIDES = (0, 1, 2, 3, -1, 2**31, 2**63, True, 1.5, None, "2")
PIECES = (b"\x00", b"\xff", b"\n", b'"', b"{", b"[" * 20_000, b"-1", b"9" * 30, b"../x", b": ")


@st.composite
def damaged(draw: Draw, seeds: list[bytes], folder: bool = False) -> bytes:
    """One of the seeds after a few changes.

    Args:
        draw: Given by Hypothesis.
        seeds: Whole files.
        folder: Whether each is a ZIP archive that stands for a folder; then it stays whole, and
            its members are changed.
    """
    content: bytes = draw(st.sampled_from(seeds))
    for _ in range(draw(st.sampled_from((1, 1, 1, 2, 4)))):
        content = change_zip(draw, content) if folder else change(draw, content)
    return content if folder else content[:MAX_BYTES]


def change(draw: Draw, content: bytes) -> bytes:
    """One change."""
    kinds = [how for sees, how in STRUCTURES if sees(content)]
    if kinds and draw(st.integers(0, 9)):
        try:
            return kinds[0](draw, content)
        except Exception:  # of a damaged structure anything
            pass
    return change_bytes(draw, content)


def change_bytes(draw: Draw, content: bytes) -> bytes:
    """A few bytes exchanged, put in, taken out, repeated, or all after a place cut off."""
    start = draw(st.integers(0, len(content)))
    end = min(len(content), start + draw(st.sampled_from((1, 2, 4, 8, 64))))
    put = draw(st.one_of(st.sampled_from(PIECES), st.binary(min_size=1, max_size=8)))
    kind = draw(st.sampled_from(("cut", "remove", "insert", "exchange", "repeat")))
    if kind == "cut":
        return content[:start]
    middle = {"remove": b"", "insert": put + content[start:end], "exchange": put[: end - start]}
    return content[:start] + middle.get(kind, 50 * content[start:end]) + content[end:]


def change_value(draw: Draw, value: Any) -> Any:
    """A value of JSON with a change in it; a text that is JSON itself is changed within."""
    if isinstance(value, dict | list) and value and draw(st.integers(0, 9)):
        result: Any = value.copy()
        keys = list(value) if isinstance(value, dict) else range(len(value))
        nested = [key for key in keys if isinstance(value[key], dict | list) and value[key]]
        key = draw(st.sampled_from(nested if nested and draw(st.booleans()) else keys))
        other = draw(st.sampled_from(keys))
        kind = draw(st.sampled_from(("within",) * 6 + ("remove", "exchange")))
        if kind == "remove":
            del result[key]
        elif kind == "exchange":
            result[key], result[other] = result[other], result[key]
        else:
            result[key] = change_value(draw, result[key])
        return result
    if isinstance(value, str) and value[:1] in ("{", "[") and draw(st.integers(0, 3)):
        return change_json(draw, value.encode()).decode("utf-8", "surrogatepass")
    if isinstance(value, int | str) and INTEGER.fullmatch(str(value)) and draw(st.integers(0, 3)):
        return type(value)(int(value) + draw(st.sampled_from((1, -1))))
    return draw(st.sampled_from((*NUMBERS, *TEXTS, *OTHERS)))


def change_json(draw: Draw, content: bytes) -> bytes:
    """A value changed; the digests of a certificate fit again, mostly."""
    value = change_value(draw, json.loads(content))
    if isinstance(value, dict) and "digests" in value and draw(st.integers(0, 9)):
        outside = {key: part for key, part in value.items() if key not in ("body", "digests")}
        parts = {"specification": outside, "body": value.get("body")}
        value["digests"] = {
            name: hashlib.sha256(
                json.dumps(part, sort_keys=True, separators=(",", ":")).encode()
            ).hexdigest()
            for name, part in parts.items()
        }
    tight = b'": ' not in content[:200]
    how: dict[str, Any] = {"separators": (",", ":"), "sort_keys": True} if tight else {}
    result = json.dumps(value, indent=2 if content[1:2] == b"\n" else None, **how)
    return (result + "\n" * content.endswith(b"\n")).encode("utf-8", "surrogatepass")


def change_npy(draw: Draw, content: bytes) -> bytes:
    """The dtype, the order or the shape in the header changed."""
    size = struct.unpack("<H", content[8:10])[0]
    header = ast.literal_eval(content[10 : 10 + size].decode())
    key = draw(st.sampled_from(("descr", "fortran_order", "shape")))
    if key == "shape":
        side = draw(st.sampled_from(SIDES))
        header[key] = (*header[key][:-1], side) if draw(st.booleans()) else (side, *header[key])
    else:
        header[key] = draw(st.sampled_from(DTYPES if key == "descr" else (True, False, None)))
    text = repr(header).encode("latin-1")
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return content[:8] + struct.pack("<H", len(text) % 2**16) + text + content[10 + size :]


def change_safetensors(draw: Draw, content: bytes) -> bytes:
    """The header's JSON changed, and its length told again; or the numbers."""
    size = int.from_bytes(content[:8], "little")
    header, numbers = content[8 : 8 + size], content[8 + size :]
    if not draw(st.integers(0, 9)):
        return content[: 8 + size] + change_bytes(draw, numbers)
    result = change_json(draw, header)
    return len(result).to_bytes(8, "little") + result + numbers


def change_members(draw: Draw, files: dict[str, bytes]) -> dict[str, bytes]:
    """The files of an archive, one of them changed, removed, renamed or exchanged."""
    result, names = dict(files), list(files)
    name = draw(st.sampled_from(names))
    kind = draw(st.sampled_from(("within",) * 6 + ("remove", "rename", "exchange")))
    if kind == "within":
        result[name] = change(draw, result[name])[:MAX_BYTES]
    elif kind == "exchange":
        result[name] = result[draw(st.sampled_from(names))]
    else:
        content = result.pop(name)
        if kind == "rename":
            result[draw(st.sampled_from(NAMES))] = content
    return result or {"x": b""}


def change_zip(draw: Draw, content: bytes) -> bytes:
    """A member changed; checksums fit."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        files = {info.filename: archive.read(info) for info in archive.infolist()}
        packing = archive.infolist()[0].compress_type
    result = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(result, "w", packing) as archive:
        warnings.simplefilter("ignore")  # of names that are there twice
        for name, data in change_members(draw, files).items():
            archive.writestr(zipfile.ZipInfo(name), data, packing)
    return result.getvalue()


def change_tar(draw: Draw, content: bytes) -> bytes:
    """The same of a tar archive."""
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        members = [member for member in archive.getmembers() if member.isreg()]
        files = {each.name: archive.extractfile(each).read() for each in members}  # type: ignore[union-attr]
    result = io.BytesIO()
    with tarfile.open(fileobj=result, mode="w") as archive:
        for name, data in change_members(draw, files).items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            info.type = draw(st.sampled_from((tarfile.REGTYPE,) * 9 + (tarfile.SYMTYPE,)))
            archive.addfile(info, io.BytesIO(data))
    return result.getvalue()


def change_packed(draw: Draw, content: bytes) -> bytes:
    """What a compressed file unpacks to changed, and packed again."""
    unpack, pack = next(both for mark, both in PACKERS.items() if content.startswith(mark))
    with unpack(io.BytesIO(content)) as file:
        return pack(change(draw, file.read(MAX_BYTES)))


PACKERS: dict[bytes, tuple[Any, Callable[[bytes], bytes]]] = {
    b"\x1f\x8b": (gzip.open, gzip.compress),
    b"BZh": (bz2.open, bz2.compress),
    b"\xfd7zXZ\x00": (lzma.open, lzma.compress),
}
STRUCTURES: tuple[tuple[Callable[[bytes], bool], Callable[[Draw, bytes], bytes]], ...] = (
    (lambda content: content[:1] in (b"{", b"["), change_json),
    (lambda content: content[:6] == b"\x93NUMPY", change_npy),
    (lambda content: content[8:9] == b"{", change_safetensors),
    (lambda content: content[:4] == b"PK\x03\x04", change_zip),
    (lambda content: content[257:262] == b"ustar", change_tar),
    (lambda content: content.startswith(tuple(PACKERS)), change_packed),
)
