"""What is in the folder of a checkpoint, and whether that is what was saved."""

import contextlib
import hashlib
import json
from pathlib import Path
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp

from convattn.lab.training.state import TrainState, named_leaves

ARRAYS, RECORD, SEAL = "arrays", "record", "seal"
# What Orbax, and the reading below, raise for files that are missing, cut off or changed.
DAMAGE = (ValueError, LookupError, TypeError, AttributeError, FileNotFoundError)
# TensorStore raises ValueError for everything; its message begins with the kind of the failure.
UNREAD = (
    "ABORTED",
    "CANCELLED",
    "DEADLINE_EXCEEDED",
    "INTERNAL",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "UNAUTHENTICATED",
    "UNAVAILABLE",
    "UNKNOWN",
)


class OtherModel(ValueError):
    """A checkpoint is whole, but of another model or optimiser."""


def read_checkpoint(folder: Path, like: TrainState) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays and the record of one checkpoint, after its digest was checked.

    Raises:
        OtherModel: If it was made with other settings; one of `DAMAGE` if it is damaged; `OSError`
            if it could not be read, so that nothing is known of it.
    """
    try:
        return _read(folder, like)
    except ValueError as problem:
        if str(problem).startswith(tuple(f"{kind}: " for kind in UNREAD)):
            raise OSError(f"{folder} could not be read: {problem}") from problem
        raise


def _read(folder: Path, like: TrainState) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    alone = {"multiprocessing_options": this_process_alone()}
    handler: Any = ocp.JsonCheckpointHandler(**alone)
    with contextlib.closing(ocp.Checkpointer(handler, **alone)) as reader:
        record = reader.restore(folder / RECORD)
    if record.pop(SEAL) != seal_of(record):
        raise ValueError("its record was changed")
    expected = {name: np.zeros(leaf.shape, leaf.dtype) for name, leaf in named_leaves(like)}
    if record["layout"] != layout(expected):
        raise OtherModel(
            f"{folder} holds the parameters of another model or optimiser; take the settings that "
            "it was made with, or another folder"
        )
    handler = ocp.StandardCheckpointHandler(**alone)
    with contextlib.closing(ocp.Checkpointer(handler, **alone)) as reader:
        template = {name: array for name, array in expected.items() if array.size}
        found = reader.restore(folder / ARRAYS, args=ocp.args.StandardRestore(template))
    arrays = {**expected, **found}
    if digest(arrays) != record["sha256"]:
        raise ValueError(f"the SHA-256 of its arrays is {digest(arrays)}, not {record['sha256']}")
    return arrays, record


def this_process_alone() -> ocp.options.MultiprocessingOptions:
    """Orbax waits for no other process: of several that train together, one writes and reads."""
    index = jax.process_index()
    return ocp.options.MultiprocessingOptions(primary_host=index, active_processes={index})


def seal_of(record: dict[str, Any]) -> str:
    """The SHA-256 of a record.

    >>> seal_of({"a": 1, "b": 2}) == seal_of({"b": 2, "a": 1})
    True
    """
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()


def layout(arrays: dict[str, np.ndarray]) -> str:
    """The SHA-256 of names, types and shapes."""
    lines = (f"{name}:{array.dtype.str}:{array.shape};" for name, array in sorted(arrays.items()))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def digest(arrays: dict[str, np.ndarray]) -> str:
    """The SHA-256 of named arrays: their layout and their bytes.

    >>> digest({"a": np.zeros(2)}) == digest({"a": np.zeros((2, 1))})
    False
    """
    total = hashlib.sha256(layout(arrays).encode())
    for name in sorted(arrays):
        total.update(np.ascontiguousarray(arrays[name]).data)
    return total.hexdigest()
