"""What files say, as far as that is the same in every run; a file that is damaged says nothing."""

import io
import json
import re
import struct
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

VARYING = re.compile(r"second|start|sittings|when|pid")  # names of figures that differ by run


def read_parts(paths: Sequence[Path]) -> list[tuple[Any, str]]:
    """What each file and checkpoint says, without what differs by run, or how it is damaged."""
    found: list[tuple[Any, str]] = []
    for path in paths:
        try:
            found.append((read_checkpoint(path) if path.is_dir() else read_whole(path), ""))
        except Exception as problem:
            found.append((None, repr(problem)[:300]))
    return found


def read_whole(path: Path) -> Any:
    """What a file holds, without what differs by run.

    Raises:
        Exception: Of any kind, if it is damaged.
    """
    content = path.read_bytes()
    if "tfevents" in path.name:
        return read_events(content)
    return READERS[path.suffix](content)


def read_events(content: bytes) -> None:
    """A log of TensorBoard; the last record may be cut off, as its readers know."""
    place = 0
    while place + 12 <= len(content):
        (size,) = struct.unpack_from("<Q", content, place)
        if size > len(content):
            raise ValueError(f"a record of {size} bytes at {place}")
        place += 16 + size


def read_svg(content: bytes) -> None:
    """A picture; the numbers in it are not compared."""
    ElementTree.fromstring(content)


def read_png(content: bytes) -> None:
    """A picture."""
    from PIL import Image

    Image.open(io.BytesIO(content)).load()


def read_html(content: bytes) -> str:
    """A page; the numbers in it are not compared."""
    text = content.decode()
    if not (text.startswith("<!doctype html>") and text.rstrip().endswith("</html>")):
        raise ValueError("no whole page")
    return re.sub(r"[\d.:e+-]+", "#", text)


def read_layer(content: bytes) -> dict[str, Any]:
    """A layer of attention, which the library can load."""
    from safetensors.numpy import load

    from convattn.networks.weights.stored_layer import load_layer

    with tempfile.NamedTemporaryFile(suffix=".safetensors") as file:
        file.write(content)
        file.flush()
        load_layer(Path(file.name))
    return {name: array.tobytes() for name, array in load(content).items()}


def read_arrays(content: bytes) -> dict[str, bytes]:
    """A file of arrays."""
    with np.load(io.BytesIO(content), allow_pickle=False) as found:
        return {name: found[name].tobytes() for name in found.files}


def read_text(content: bytes) -> str:
    """A text that is not empty."""
    if not content:
        raise ValueError("empty")
    return content.decode()


READERS: dict[str, Callable[[bytes], Any]] = {
    ".json": lambda content: timeless(json.loads(content)),
    ".jsonl": lambda content: [timeless(json.loads(line)) for line in content.splitlines()],
    ".html": read_html,
    ".npz": read_arrays,
    ".png": read_png,
    ".safetensors": read_layer,
    ".svg": read_svg,
    "": read_text,
}


def timeless(found: Any) -> Any:
    """What JSON holds, without what differs by run."""
    if isinstance(found, dict):
        return {name: timeless(each) for name, each in found.items() if not VARYING.search(name)}
    return [timeless(each) for each in found] if isinstance(found, list) else found


def read_checkpoint(folder: Path) -> str:
    """The SHA-256 of a checkpoint's arrays, after it was checked.

    Raises:
        Exception: Of any kind, if it is damaged.
    """
    import orbax.checkpoint as ocp

    from convattn.lab.training.checkpoints import ARRAYS, RECORD, SEAL, digest, seal_of

    record = ocp.Checkpointer(ocp.JsonCheckpointHandler()).restore(folder / RECORD)
    if record.pop(SEAL) != seal_of(record):
        raise ValueError("its record was changed")
    arrays = ocp.Checkpointer(ocp.StandardCheckpointHandler()).restore(folder / ARRAYS)
    found = digest({name: np.asarray(array) for name, array in arrays.items()})
    if found != record["sha256"]:
        raise ValueError(f"the SHA-256 of its arrays is {found}, not {record['sha256']}")
    return found
