"""NumPy's files (`.npy`, `.npz`) and safetensors: their bytes to arrays and text, and back.

The library of safetensors checks that header and bytes fit together; what it lets pass is checked
here: names that occur twice. Of a `.npy` file the header is looked at before anything is allocated;
of an archive the sizes that it claims, before anything is unpacked.
"""

import io
import json
import re
import zipfile
from collections import Counter
from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from convattn.files import brief, most_unpacked, parse_json
from convattn.networks.weights.pickles import refused_archive


class WeightsRefused(ValueError):
    """A file of weights cannot be used; the message says which, why and what to do."""


METADATA = "metadata"
MAX_AXES = 64
REMEDY = "write the file anew"
_BFLOAT16_KEY = "bfloat16 arrays"
HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
_PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # as NumPy packs; others unpack at one go


def read_npy(content: bytes, name: str) -> np.ndarray:
    """The array of a `.npy` file, as a view of its bytes."""
    stream = io.BytesIO(content)
    try:
        version = np.lib.format.read_magic(stream)
        shape, fortran, dtype = HEADERS[version](stream)
    except Exception as error:  # a header is parsed as Python: a damaged one raises anything
        raise WeightsRefused(
            f"{name} is not a valid .npy file ({_said(error)}), but expected format 1.0 or 2.0, as "
            "numpy.save writes it; was the download or the copy interrupted?"
        ) from error
    if dtype.hasobject:
        raise WeightsRefused(
            f"{name} holds pickled objects, and reading them runs the program in them; save "
            "plain arrays of numbers"
        )
    if dtype.subdtype is not None:
        raise WeightsRefused(
            f"{name} holds arrays within an array ({str(dtype)[:200]}), but expected plain "
            "numbers; save it again with numpy.save"
        )
    start = stream.tell()
    if prod(shape) * dtype.itemsize != len(content) - start:
        raise WeightsRefused(
            f"{name} is not a valid .npy file: it holds {len(content) - start:,} bytes of numbers, "
            f"but expected those of {str(dtype)[:200]} {str(shape)[:200]}; was the download "
            "or the copy interrupted?"
        )
    try:
        return np.ndarray(shape, dtype, content, start, order="F" if fortran else "C")
    except (ValueError, TypeError, OverflowError) as error:  # no numbers, and sizes of any length
        raise WeightsRefused(
            f"{name} is not a valid .npy file ({_said(error)}), but expected numbers of a shape "
            "that an array can have; save it again with numpy.save"
        ) from error


def read_npz(content: bytes, name: str) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """The arrays of a `.npz` archive, and the text under `metadata` if this library wrote it.

    NumPy has no bfloat16: where the metadata says so, a 16-bit integer array holds the bits.
    """
    try:
        archive = zipfile.ZipFile(io.BytesIO(content))
    except Exception as error:  # whatever a damaged directory makes of zipfile
        raise WeightsRefused(
            f"{name} is a damaged .npz archive ({_said(error)}), but expected a whole one, as "
            "numpy.savez writes it; was the download or the copy interrupted?"
        ) from error
    members = archive.namelist()
    if pickled := refused_archive(archive, len(content), name):
        raise WeightsRefused(pickled)
    twice = [member for member, count in Counter(members).items() if count > 1]
    if twice:
        raise WeightsRefused(
            f"{name} holds {brief(twice[0])} twice, so it is not known which one counts; save the "
            "arrays again, each under a name of its own"
        )
    unpacked, most = sum(info.file_size for info in archive.infolist()), most_unpacked(len(content))
    if unpacked > most:
        raise WeightsRefused(
            f"{name} unpacks to {unpacked:,} bytes, but expected at most {most:,} of "
            f"{len(content):,}; save it without compression, as numpy.savez does"
        )
    arrays: dict[str, np.ndarray] = {}
    for member in members:
        if not member.endswith(".npy"):
            raise WeightsRefused(
                f"{name} holds {brief(member)}, which is no array; expected an archive of .npy "
                "files as numpy.savez writes it"
            )
        info, where = archive.getinfo(member), f"{name}: {member[:200]}"
        if info.compress_type not in _PACKED:
            raise WeightsRefused(
                f"{where} is compressed with method {info.compress_type}, but expected "
                "none or deflate, as numpy.savez and numpy.savez_compressed write"
            )
        try:
            with archive.open(member) as file:
                member_content = file.read(info.file_size)
        except Exception as error:  # whatever damaged bytes make of zipfile and zlib
            raise WeightsRefused(
                f"{where} is damaged ({_said(error)}), but expected a whole member of the archive; "
                "was the download or the copy interrupted?"
            ) from error
        arrays[member.removesuffix(".npy")] = read_npy(member_content, where)
    return arrays, _take_metadata(arrays, name)


def write_npz(arrays: dict[str, np.ndarray], metadata: dict[str, str]) -> bytes:
    """The content of a `.npz` archive that `read_npz` reads back, bfloat16 included.

    >>> content = write_npz({"a": np.ones(2)}, {"made by": "hand"})
    >>> read_npz(content, "file")[1]
    {'made by': 'hand'}
    """
    if METADATA in arrays:
        raise ValueError(f"an array may not be called {METADATA!r}, the name of the text")
    narrow = [label for label, array in arrays.items() if array.dtype.name == "bfloat16"]
    stored = {k: a.view(np.uint16) if k in narrow else a for k, a in arrays.items()}
    text = json.dumps({**metadata, _BFLOAT16_KEY: narrow} if narrow else metadata, sort_keys=True)
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **{**stored, METADATA: np.array(text)})
    return buffer.getvalue()


def _take_metadata(arrays: dict[str, np.ndarray], name: str) -> dict[str, str]:
    """Remove the text from the arrays, and give bfloat16 arrays their dtype back."""
    stored = arrays.get(METADATA)
    if stored is None or stored.dtype.kind != "U" or stored.shape:
        return {}
    del arrays[METADATA]
    try:
        metadata = parse_json(str(stored))
    except ValueError as error:
        raise WeightsRefused(
            f"{name}: metadata is no JSON ({_said(error)}), but expected an object; {REMEDY}"
        ) from error
    if not isinstance(metadata, dict):
        raise WeightsRefused(
            f"{name}: metadata is {type(metadata).__name__}, but expected an object; {REMEDY}"
        )
    narrow = metadata.pop(_BFLOAT16_KEY, [])
    if not isinstance(narrow, list) or not all(isinstance(label, str) for label in narrow):
        raise WeightsRefused(
            f"{name}: metadata has {_BFLOAT16_KEY!r}={brief(narrow)}, but expected a list of "
            f"names; {REMEDY}"
        )
    if narrow:
        from ml_dtypes import bfloat16

        for label in narrow:
            if label not in arrays or arrays[label].dtype != np.uint16:
                raise WeightsRefused(
                    f"{name}: metadata says that {brief(label)} holds the bits of bfloat16 "
                    f"numbers, but expected an array of uint16 of that name; {REMEDY}"
                )
            arrays[label] = arrays[label].view(bfloat16)
    if any(not isinstance(value, str) for value in metadata.values()):
        other = next(key for key, value in metadata.items() if not isinstance(value, str))
        raise WeightsRefused(
            f"{name}: metadata has {brief(other)}={brief(metadata[other])}, but expected text; "
            f"{REMEDY}"
        )
    return metadata


FORMATS = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U64": "uint64",
    "U32": "uint32",
    "U16": "uint16",
    "U8": "uint8",
    "BOOL": "bool",
    "C64": "complex64",
}


def read_safetensors(content: bytes, name: str) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """The arrays of a safetensors file, and its metadata. Formats that NumPy has not stay bytes."""
    from safetensors import SafetensorError, deserialize

    try:
        tensors = deserialize(content)
    except SafetensorError as error:
        raise WeightsRefused(
            f"{name} is not a valid safetensors file ({_said(error)}), but expected a header whose "
            "offsets fit the bytes behind it; was the download or the copy interrupted?"
        ) from error
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length], object_pairs_hook=lambda p: _unique(p, name))
    arrays = {}
    for label, tensor in tensors:
        if tensor["dtype"] not in FORMATS:  # raw bytes, whose dtype carries the format's name
            arrays[label] = np.frombuffer(tensor["data"], [(tensor["dtype"], "V1")])
            continue
        if len(tensor["shape"]) > MAX_AXES:
            raise WeightsRefused(
                f"{name}: {brief(label)} has {len(tensor['shape'])} axes, but expected at most "
                f"{MAX_AXES}, as NumPy does; save it with fewer"
            )
        array = np.frombuffer(tensor["data"], _dtype(FORMATS[tensor["dtype"]]))
        arrays[label] = array.reshape(tensor["shape"])
    return dict(sorted(arrays.items(), key=by_number)), header.get("__metadata__") or {}


def by_number(item: tuple[str, object]) -> list[tuple[int, str]]:
    """A key to sort named things by, the second before the tenth; the file keeps no order.

    >>> sorted({"layer 10": 0, "layer 2": 0, "b": 0}.items(), key=by_number)
    [('b', 0), ('layer 2', 0), ('layer 10', 0)]
    """
    return [
        (int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", item[0])
    ]


def write_safetensors(arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> bytes:
    """The content of a safetensors file: the same bytes for the same arrays and metadata.

    The library writes metadata in another order each time; here it is sorted.

    >>> arrays, metadata = read_safetensors(write_safetensors({"a": np.ones(2)}, {}), "file")
    >>> arrays["a"].tolist(), metadata
    ([1.0, 1.0], {})
    """
    from safetensors.numpy import save

    contiguous = {label: np.asarray(array, order="C") for label, array in arrays.items()}
    content = save(contiguous, dict(metadata) or None)
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    if "__metadata__" in header:
        header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + content[start:]


def _said(error: Exception) -> str:
    """What a library said of damaged bytes, which may be any of them, on one line, cut short."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 200 else f"{text[:200]}…"


def _unique(pairs: list[tuple[str, Any]], name: str) -> dict[str, Any]:
    mapping: dict[str, Any] = {}
    for key, value in pairs:
        if key in mapping:
            raise WeightsRefused(
                f"{name} holds {brief(key)} twice, so it is not known which one counts; save the "
                "arrays again, each under a name of its own"
            )
        mapping[key] = value
    return mapping


def _dtype(name: str) -> np.dtype:
    if name != "bfloat16":
        return np.dtype(name).newbyteorder("<")
    from ml_dtypes import bfloat16

    return np.dtype(bfloat16)
