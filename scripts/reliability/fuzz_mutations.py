"""Mutations for `fuzz.py`: of bytes, and of what they mean, packed again so that checksums fit.

A content is looked at first: of JSON a value is changed, of an archive a member, of a `.npy` file
the header, and so on inwards. Where that fails, as it does of what is damaged already, and now and
then anyway, bytes are changed.
"""

import ast
import bz2
import gzip
import hashlib
import io
import json
import lzma
import math
import re
import struct
import tarfile
import warnings
import zipfile
import zlib
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

Pool = Sequence[bytes]
MOST_BYTES = 2**20  # of what is made, and of what is unpacked
DEEP = "deep nesting goes here"
WHOLE = (
    *(0, 1, -1, 2, 3, 7, 255, 256, 4095, 4096, 65535, 2**24, 10**6, 2**31 - 1, 2**31, 2**32),
    *(2**53 + 1, 2**62, 2**63, 2**64, 10**23, 10**40, 10**400, -(2**31), -(2**63), -(10**23)),
)
NUMBERS = (*WHOLE, 0.5, -0.0, 1e-300, 5e-324, 1e308, float("nan"), float("inf"), float("-inf"))
TEXTS = (
    *("", "0", "-1", "1/2", "1/0", "nan", "x" * 5000, "\x00", "\n", "\x1b[31m", "\ud800", "δ", " "),
    *("../../x", "/etc/passwd", "..", ".", "a/b", "C:\\x", "__class__", "{0.__class__}", "%s%n"),
)
VALUES: tuple[Any, ...] = (
    *NUMBERS,
    *TEXTS,
    None,
    True,
    False,
    [],
    {},
    [[]],
    [0] * 1000,
    {"a": 1},
    DEEP,
)
NAMES = ("../x.npy", "/x.npy", "x.pkl", "a/../b", "train/cat/../x.png", ".x", "", "x" * 300, "ä")
DTYPES: tuple[Any, ...] = (
    *("|O", "<f2", "<f4", ">f8", "<f16", "<c8", "<c32", "<i1", "<u8", "|b1", "<M8[ns]", "<m8[s]"),
    *("<U1", "<U100000000", "|S0", "|V0", "|V2", "<U0", "", "f4,f4", "(2,)f4", "(1000000000,)f8"),
    *([("a", "<f4")], [("a", "|O")], [("a", [("b", "<f4")])], [], [("a", "<f4"), ("a", "<f4")]),
)
SIDES = (0, 1, 2, -1, 2**31, 2**62, 2**63, 10**23, True, 1.5, None, "2", (1,))
TAR_FIELDS = ((0, 100), (100, 8), (108, 8), (124, 12), (136, 12), (156, 1), (157, 100), (257, 8))
TAR_TYPES = b"01234567xgLKSV\x00D"
ZIP_FIELDS = ((8, 2), (10, 2), (16, 4), (20, 4), (24, 4), (28, 2), (30, 2), (42, 4))
CHUNKS = (b"tRNS", b"PLTE", b"acTL", b"fcTL", b"iCCP", b"zTXt", b"eXIf", b"gAMA", b"IEND", b"IDAT")
HEADERS = (
    *("Content-Length: -1", "Content-Length: 99999999999", "Transfer-Encoding: chunked"),
    *("Host: evil.example", "Origin: null", "X-File-Name: %F0%28%8C%28", "Expect: 100-continue"),
    *("Upgrade: websocket", "Connection: close", "Content-Length: 3\r\nContent-Length: 4", "A: é"),
)


def mutated(content: bytes, others: Pool, rng: Random, folder: bool = False) -> bytes:
    """The content after one to eight mutations.

    Args:
        others: Contents of the same kind, of which parts are taken.
        folder: Whether it is a ZIP archive that stands for a folder, of which only what it holds is
            changed.
    """
    for _ in range(min(8, 1 + int(rng.expovariate(1.2)))):
        content = change_zip(content, others, rng, True) if folder else change(content, others, rng)
    return content if folder else content[:MOST_BYTES]


def change(content: bytes, others: Pool, rng: Random) -> bytes:
    """One mutation."""
    kinds = [how for sees, how in STRUCTURES if sees(content)]
    if kinds and rng.random() < 0.8:
        try:
            return rng.choice(kinds)(content, others, rng)
        except Exception:  # of a damaged structure anything
            pass
    return change_bytes(content, others, rng)


def change_bytes(content: bytes, others: Pool, rng: Random) -> bytes:
    """A few bytes flipped, set, inserted, taken out, moved or cut off, or a number exchanged."""
    size = len(content)
    start = rng.randrange(size + 1)
    end = min(size, start + rng.choice((1, 2, 4, 8, 16, 64, 1 + size // 4)))
    kind = rng.randrange(10)
    if kind == 0 and size:
        place = rng.randrange(size)
        flipped = bytes([content[place] ^ 1 << rng.randrange(8)])
        return content[:place] + flipped + content[place + 1 :]
    if kind == 1:
        put = rng.choice((b"\x00", b"\xff", b"\x7f", b"\n", b'"', b"{", b"[", rng.randbytes(1)))
        return content[:start] + put * (end - start) + content[end:]
    if kind == 2:
        return content[:start] + rng.randbytes(rng.choice((1, 2, 8, 100))) + content[start:]
    if kind == 3:
        return content[:start] + content[end:]
    if kind == 4:
        return content[:end] + content[start:end] * rng.choice((1, 2, 50)) + content[end:]
    if kind == 5:
        return content[:start] if rng.random() < 0.7 else content[: size - rng.randrange(9)]
    if kind == 6 and others:
        other = rng.choice(others)
        return content[:start] + other[rng.randrange(len(other) + 1) :]
    if kind == 7:
        number = rng.choice(WHOLE) + rng.choice((0, 0, -1, 1))
        width, order = rng.choice((2, 4, 8)), rng.choice(("little", "big"))
        put = (number % 2 ** (8 * width)).to_bytes(width, order)
        return content[:start] + put + content[start + width :]
    if kind == 8:
        found = [*re.finditer(rb"-?\d+", content)]
        if found:
            chosen = rng.choice(found)
            put = str(rng.choice(NUMBERS)).encode()
            return content[: chosen.start()] + put + content[chosen.end() :]
    return content + rng.choice((b"\x00", b"\n", rng.randbytes(4), content))


def change_json(content: bytes, others: Pool, rng: Random) -> bytes:
    """A value of a JSON document changed; the digests of a certificate fit again, mostly."""
    text = content.decode()
    found = change_value(json.loads(text), rng, [json.loads(o) for o in others[:1]])
    tight = '": ' not in text[:200]
    if isinstance(found, dict) and "digests" in found and rng.random() < 0.9:
        found["digests"] = _digests(found)
    how: dict[str, Any] = {"separators": (",", ":"), "sort_keys": True} if tight else {}
    made = json.dumps(found, indent=2 if text[1:2] == "\n" else None, **how)
    made = made.replace(json.dumps(DEEP), "[" * 20_000 + "]" * 20_000)
    if rng.random() < 0.03:  # a key twice
        made = re.sub(r'("[^"]*":)', r"\1 0, \1", made, count=1)
    return (made + "\n" * text.endswith("\n")).encode("utf-8", "surrogatepass")


def _digests(document: dict[str, Any]) -> dict[str, str]:
    parts = {
        "specification": {k: v for k, v in document.items() if k not in ("body", "digests")},
        "body": document.get("body"),
    }
    texts = {n: json.dumps(p, sort_keys=True, separators=(",", ":")) for n, p in parts.items()}
    return {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()}


def change_value(value: Any, rng: Random, others: Sequence[Any] = ()) -> Any:
    """A value with something inside it changed; a text that is JSON itself is changed within."""
    if isinstance(value, dict | list) and value and rng.random() < 0.85:
        keys = [*value] if isinstance(value, dict) else range(len(value))
        key = rng.choice(keys)
        kind = rng.randrange(12)
        made: Any = dict(value) if isinstance(value, dict) else list(value)
        if kind == 0:
            del made[key]
        elif kind == 1 and isinstance(made, dict):
            made[rng.choice((*TEXTS, *keys))] = made.pop(key)
        elif kind == 1:
            made[key:key] = [made[key]] * rng.choice((1, 1, 2, 500))
        elif kind == 2:
            made[key] = made[rng.choice(keys)]
        elif kind == 3 and isinstance(made, list):
            rng.shuffle(made)
        else:
            made[key] = change_value(made[key], rng, others)
        return made
    if isinstance(value, str) and value[:1] in ("{", "[") and rng.random() < 0.9:
        return change_json(value.encode(), (), rng).decode("utf-8", "surrogatepass")
    if isinstance(value, str) and rng.random() < 0.4:
        return change_bytes(value.encode(), [], rng).decode("latin-1")
    if isinstance(value, int | float) and rng.random() < 0.5:
        return rng.choice((value + 1, value - 1, -value, 2 * value, float(value) / 3, str(value)))
    return rng.choice((*VALUES, *others))


def change_lines(content: bytes, others: Pool, rng: Random) -> bytes:
    """One line changed, left out, repeated or moved."""
    lines = content.splitlines(keepends=True)
    place, kind = rng.randrange(len(lines)), rng.randrange(5)
    if kind == 0:
        del lines[place]
    elif kind == 1:
        lines[place:place] = [lines[place]] * rng.choice((1, 1000))
    elif kind == 2:
        rng.shuffle(lines)
    else:
        lines[place] = change(lines[place].rstrip(b"\n"), (), rng) + b"\n"
    return b"".join(lines)


def change_npy(content: bytes, others: Pool, rng: Random) -> bytes:
    """The header's dtype, order or shape changed, or the numbers; now and then both fit."""
    size = struct.unpack("<H", content[8:10])[0]
    header, numbers = ast.literal_eval(content[10 : 10 + size].decode()), content[10 + size :]
    kind = rng.randrange(6)
    if kind == 0:
        header["descr"] = rng.choice(DTYPES)
    elif kind == 1:
        shape = [*header["shape"]] or [1]
        width = max(1, len(numbers) // max(1, math.prod(shape)))
        shape[rng.randrange(len(shape))] = rng.choice((0, 1, 2, 3, 4, 5, 7, 9, 64, 1000))
        header["shape"], size = tuple(shape), width * math.prod(shape)
        numbers = (numbers + bytes(min(size, MOST_BYTES)))[:size]
    elif kind == 2:
        shape = [*header["shape"], 1]
        shape[rng.randrange(len(shape))] = rng.choice(SIDES)
        header["shape"] = tuple(shape[: rng.choice((len(shape) - 1, len(shape)))])
    elif kind == 3:
        header["fortran_order"] = rng.choice((True, False, 1, None, "yes"))
    elif kind == 4:
        numbers = change_bytes(numbers, (), rng)
    text = repr(header)
    if kind == 5:
        text = change_bytes(text.encode(), (), rng).decode("latin-1")
    text += " " * (-(len(text) + 11) % 64) + "\n"
    return content[:8] + struct.pack("<H", len(text) % 2**16) + text.encode("latin-1") + numbers


def change_safetensors(content: bytes, others: Pool, rng: Random) -> bytes:
    """A tensor or the text changed so that all fits, or the header's JSON, or the numbers."""
    size = int.from_bytes(content[:8], "little")
    header, numbers = content[8 : 8 + size], content[8 + size :]
    kind = rng.random()
    if kind < 0.05:
        return content[: 8 + size] + change_bytes(numbers, (), rng)
    if kind < 0.35:
        made = change_json(header, (), rng)
        told = len(made) if rng.random() < 0.9 else rng.choice(WHOLE) % 2**64
        return told.to_bytes(8, "little") + made + numbers
    found = json.loads(header)
    text = found.pop("__metadata__", None)
    if text and (kind < 0.7 or not found):
        longest = max(text, key=lambda name: len(text[name]))
        chosen = longest if rng.random() < 0.8 else rng.choice([*text])
        value = change_value(text[chosen], rng)
        text = {**text, chosen: value if isinstance(value, str) else json.dumps(value)}
    tensors = {name: (part, numbers[slice(*part["data_offsets"])]) for name, part in found.items()}
    if found and kind > 0.6:
        tensors = change_tensors(tensors, rng)
    held, packed = {} if text is None else {"__metadata__": text}, b""
    for name, (part, inner) in tensors.items():
        held[name] = {**part, "data_offsets": [len(packed), len(packed) + len(inner)]}
        packed += inner
    made = json.dumps(held).encode("utf-8", "surrogatepass")
    return len(made).to_bytes(8, "little") + made + packed


def change_tensors(tensors: dict[str, Any], rng: Random) -> dict[str, Any]:
    """One left out, renamed, added, exchanged, reshaped, or with other numbers; its bytes fit."""
    made, name, kind = dict(tensors), rng.choice([*tensors]), rng.randrange(7)
    part, inner = made[name]
    if kind == 0:
        del made[name]
    elif kind == 1:
        made[change_bytes(name.encode(), (), rng).decode("latin-1")] = made.pop(name)
    elif kind == 2:
        made[rng.choice((name + "2", name.replace("0", "1"), *NAMES))] = made[name]
    elif kind == 3:
        made[name] = made[rng.choice([*made])]
    elif kind == 4:
        number = rng.choice((math.nan, math.inf, 3e38, 1e-45, 0.0, -1.0))
        extreme = struct.pack("<f", number)
        made[name] = part, (extreme * len(inner))[: len(inner)]
    else:
        width = max(1, len(inner) // max(1, math.prod(part["shape"])))
        shape = [*part["shape"], 1][: len(part["shape"]) + rng.randrange(2)] or [1]
        shape[rng.randrange(len(shape))] = rng.choice((0, 1, 2, 3, 4, 5, 7, 9, 64, 1000))
        size = width * math.prod(shape)
        if size <= MOST_BYTES:
            made[name] = {**part, "shape": shape}, (inner + bytes(size))[:size]
    return made


def change_zip(content: bytes, others: Pool, rng: Random, whole: bool = False) -> bytes:
    """A member changed, left out, renamed, repeated or exchanged; or a number of the directory.

    Args:
        whole: Leave the directory alone, and every name once.
    """
    if not whole and rng.random() < 0.25:
        marks = [m.start() for m in re.finditer(b"PK\x01\x02|PK\x03\x04", content)]
        start, (place, width) = rng.choice(marks), rng.choice(ZIP_FIELDS)
        put = (rng.choice((*WHOLE, 8, 12, 14, 93)) % 2 ** (8 * width)).to_bytes(width, "little")
        return content[: start + place] + put + content[start + place + width :]
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        held = [(info.filename, archive.read(info)) for info in archive.infolist()]
        packing = {info.compress_type for info in archive.infolist()}.pop()
    held = change_members(held, others, rng)
    packing = packing if rng.random() < 0.95 or whole else rng.choice((0, 8, 12, 14))
    made = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(made, "w", packing) as archive:
        warnings.simplefilter("ignore")  # of names that are there twice
        for name, inner in dict(held).items() if whole else held:
            archive.writestr(zipfile.ZipInfo(name), inner, packing)
    return made.getvalue()


def change_members(
    held: list[tuple[str, bytes]], others: Pool, rng: Random
) -> list[tuple[str, bytes]]:
    """The files of an archive, one of them changed."""
    place, kind = rng.randrange(len(held)), rng.randrange(16)
    name, inner = held[place]
    made = list(held)
    if kind == 0:
        del made[place]
    elif kind == 1:
        made[place] = (
            rng.choice((*NAMES, change_bytes(name.encode(), (), rng).decode("latin-1")))[
                :400
            ].replace("\x00", "?"),
            inner,
        )
    elif kind == 2:
        made.append(held[place])
    elif kind == 3:
        made[place] = name, rng.choice(held)[1]
    elif kind == 4:
        made.append((rng.choice(NAMES), rng.choice((inner, b""))))
    else:
        made[place] = name, change(inner, (), rng)[:MOST_BYTES]
    return made or [("x", b"")]


def change_tar(content: bytes, others: Pool, rng: Random) -> bytes:
    """A member changed, or a field of a header, whose checksum is put right mostly."""
    if rng.random() < 0.5:
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            places = [member.offset for member in archive.getmembers()]
        start, (place, width) = rng.choice(places), rng.choice(TAR_FIELDS)
        block = bytearray(content[start : start + 512])
        if place == 156:
            block[place] = rng.choice(TAR_TYPES)
        elif width in (8, 12) and place < 150:
            number = b"%o" % rng.choice(WHOLE) if rng.random() < 0.6 else rng.randbytes(width)
            block[place : place + width] = number[-width:].rjust(width, b"0")
        else:
            put = rng.choice((*NAMES, "train", "train/cat")).encode()[:width]
            block[place : place + width] = put.ljust(width, b"\x00")
        if rng.random() < 0.9:
            block[148:156] = b" " * 8
            block[148:156] = b"%06o\x00 " % sum(block)
        return content[:start] + bytes(block) + content[start + 512 :]
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        members = [member for member in archive.getmembers() if member.isreg()]
        held = [(each.name, archive.extractfile(each).read()) for each in members]  # type: ignore[union-attr]
    made = io.BytesIO()
    kind = rng.choice((tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT))
    with tarfile.open(fileobj=made, mode="w", format=kind) as archive:
        for name, inner in change_members(held, others, rng):
            info = tarfile.TarInfo(name)
            info.size = len(inner)
            archive.addfile(info, io.BytesIO(inner))
    return made.getvalue()


def change_packed(content: bytes, others: Pool, rng: Random) -> bytes:
    """What a compressed file unpacks to changed, and packed again."""
    mark = next(mark for mark in PACKERS if content.startswith(mark))
    unpack, pack = PACKERS[mark]
    with unpack(io.BytesIO(content)) as file:
        return pack(change(file.read(MOST_BYTES), (), rng))


def change_png(content: bytes, others: Pool, rng: Random) -> bytes:
    """A chunk changed, repeated, left out or put in, or the pixels within; checksums fit."""
    chunks, place = [], 8
    while place + 8 <= len(content):
        size = int.from_bytes(content[place : place + 4])
        chunks.append((content[place + 4 : place + 8], content[place + 8 : place + 8 + size]))
        place += size + 12
    chosen, kind = rng.randrange(len(chunks)), rng.randrange(6)
    name, inner = chunks[chosen]
    if kind == 0:
        del chunks[chosen]
    elif kind == 1:
        chunks.insert(chosen, chunks[rng.randrange(len(chunks))])
    elif kind == 2:
        chunks.insert(chosen, (rng.choice(CHUNKS), rng.randbytes(rng.randrange(30))))
    elif name == b"IDAT" and kind < 5:
        chunks[chosen] = name, zlib.compress(change_bytes(zlib.decompress(inner), (), rng))
    else:
        chunks[chosen] = name, change_bytes(inner, (), rng)
    made = content[:8]
    for name, inner in chunks:
        check = zlib.crc32(name + inner).to_bytes(4)
        made += len(inner).to_bytes(4) + name + inner + check
    return made


def change_request(content: bytes, others: Pool, rng: Random) -> bytes:
    """The line, a header, a parameter or the body of a request changed; its length told anew."""
    head, _, body = content.partition(b"\r\n\r\n")
    lines, kind = head.split(b"\r\n"), rng.randrange(6)
    if kind == 0:
        lines.insert(rng.randrange(1, len(lines) + 1), rng.choice(HEADERS).encode())
    elif kind == 1 and len(lines) > 1:
        del lines[rng.randrange(1, len(lines))]
    elif kind == 2:
        put = str(rng.choice(VALUES))[:5000].encode("utf-8", "replace")
        lines[0] = re.sub(rb"=[^& ]*", lambda m: b"=" + put.replace(b" ", b"+"), lines[0], count=1)
    elif kind == 3:
        place = rng.randrange(len(lines))
        lines[place] = change_bytes(lines[place], (), rng)
    elif kind == 4:
        method = rng.choice((b"GET", b"POST", b"HEAD", b"OPTIONS", b"PUT", b"TRACE", b"X"))
        lines[0] = method + b" " + lines[0].partition(b" ")[2]
    elif body:
        body = change(body, (), rng)
        lines = [each for each in lines if not each.lower().startswith(b"content-length")]
        lines.append(b"Content-Length: %d" % len(body))
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def _is_json(content: bytes) -> bool:
    return content[:1] in (b"{", b"[") and content.rstrip()[-1:] in (b"}", b"]")


PACKERS: dict[bytes, tuple[Any, Callable[[bytes], bytes]]] = {
    b"\x1f\x8b": (gzip.open, gzip.compress),
    b"BZh": (bz2.open, bz2.compress),
    b"\xfd7zXZ\x00": (lzma.open, lzma.compress),
}
STRUCTURES: tuple[tuple[Callable[[bytes], bool], Callable[[bytes, Pool, Random], bytes]], ...] = (
    (lambda content: _is_json(content) and b"\n{" not in content, change_json),
    (lambda content: _is_json(content) and b"}\n{" in content, change_lines),
    (lambda content: content[:6] == b"\x93NUMPY", change_npy),
    (lambda content: content[8:9] == b"{", change_safetensors),
    (lambda content: content[:4] == b"PK\x03\x04", change_zip),
    (lambda content: content[257:262] == b"ustar", change_tar),
    (lambda content: content.startswith(tuple(PACKERS)), change_packed),
    (lambda content: content[:4] == b"\x89PNG", change_png),
    (lambda content: b" HTTP/1." in content[:2000], change_request),
)
