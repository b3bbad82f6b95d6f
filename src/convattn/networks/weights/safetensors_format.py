"""The safetensors format: a JSON header, and the bytes of every array.

The library of that name checks that header and bytes fit together; what it lets pass is checked
here: names that occur twice.
"""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from convattn.networks.weights.refusal import WeightsRefused

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
    """The arrays of a safetensors file, and its metadata. Formats that NumPy has not stay bytes.

    Raises:
        WeightsRefused: As described above.
    """
    from safetensors import SafetensorError, deserialize

    try:
        parts = deserialize(content)
    except SafetensorError as error:
        raise WeightsRefused(
            f"{name} is no whole safetensors file: {error}; was the download or the copy "
            "interrupted?"
        ) from error
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length], object_pairs_hook=lambda p: _unique(p, name))
    arrays = {}
    for label, part in parts:
        if part["dtype"] not in FORMATS:  # raw bytes, whose dtype carries the format's name
            arrays[label] = np.frombuffer(part["data"], [(part["dtype"], "V1")])
            continue
        array = np.frombuffer(part["data"], _dtype(FORMATS[part["dtype"]]))
        arrays[label] = array.reshape(part["shape"])
    return dict(sorted(arrays.items())), header.get("__metadata__") or {}


def write_safetensors(arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> bytes:
    """The content of a safetensors file.

    >>> arrays, metadata = read_safetensors(write_safetensors({"a": np.ones(2)}, {}), "file")
    >>> arrays["a"].tolist(), metadata
    ([1.0, 1.0], {})
    """
    from safetensors.numpy import save

    held = {label: np.asarray(array, order="C") for label, array in arrays.items()}
    return save(held, dict(metadata) or None)


def _unique(pairs: list[tuple[str, Any]], name: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise WeightsRefused(f"{name} holds {key!r} twice, so it is not known which one counts")
        found[key] = value
    return found


def _dtype(name: str) -> np.dtype:
    if name != "bfloat16":
        return np.dtype(name).newbyteorder("<")
    from ml_dtypes import bfloat16

    return np.dtype(bfloat16)
