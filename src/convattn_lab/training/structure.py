"""What a checkpoint must have in common with the run that goes on from it.

Of the model that is its static structure, as a digest: classes, sizes, rates, functions.
"""

import dataclasses
import enum
import functools
import hashlib
from collections.abc import Mapping, Sequence, Set
from typing import Any

import jax
import numpy as np
from flax import nnx

from convattn_lab.training.examples import TrainingExamples
from convattn_lab.training.settings import TrainingSettings

FREE = ("devices", "steps_per_call", "snapshot_every", "checkpoint_minutes", "keep_checkpoints")
PLAIN = (str, bytes, bool, int, float, complex, type(None), type(Ellipsis), slice, np.generic)


def identity_of(
    settings: TrainingSettings, examples: TrainingExamples, structure: nnx.GraphDef
) -> dict[str, Any]:
    """All that decides the result, in a form that JSON keeps.

    Of the settings all but those that may change from one training session to the next: they decide
    how a run is carried out. Of the model its static structure: its arrays are in the checkpoint.

    >>> sorted(set(dataclasses.asdict(TrainingSettings())) & set(FREE)) == sorted(FREE)
    True
    """
    decisive = dataclasses.asdict(settings)
    for name in FREE:
        del decisive[name]
    model = {"model": digest_of_structure(structure)}
    return {**decisive, **model, **examples.identity()}


def differences(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """The names under which two identities differ.

    >>> differences({"a": 1, "b": 2}, {"a": 1, "b": 3, "c": None})
    ['b', 'c']
    """
    missing = object()
    names = sorted({*one, *other})
    return [name for name in names if one.get(name, missing) != other.get(name, missing)]


def digest_of_structure(structure: nnx.GraphDef) -> str:
    """The SHA-256 of a model's static structure; the same in every process.

    Numbers, strings, arrays and what is made of them count with their values, classes and functions
    with their names, functions also with what they enclose. Of other objects only the class counts.

    >>> one, other = nnx.Dropout(0.25), nnx.Dropout(0.5)
    >>> digest_of_structure(nnx.graphdef(one)) == digest_of_structure(nnx.graphdef(other))
    False
    """
    return hashlib.sha256(describe(structure).encode()).hexdigest()


def describe(value: Any, within: frozenset[int] = frozenset()) -> str:
    """A text that tells values apart and holds no address.

    Args:
        within: The identities of the objects that hold this one, so that no ring is followed.

    >>> describe({"rate": (0.5, jax.nn.relu), "dtype": np.dtype("float32")})
    "dict{'dtype': dtype float32, 'rate': tuple[0.5, relu]}"
    """
    if isinstance(value, PLAIN):
        return repr(value)
    if isinstance(value, enum.Enum):
        return str(value)
    if isinstance(value, np.dtype):
        return f"dtype {value.name}"
    if isinstance(value, np.ndarray | jax.Array):
        array = np.ascontiguousarray(value)
        content = hashlib.sha256(array.data).hexdigest()
        return f"array {array.dtype.name}{list(array.shape)} {content}"
    if id(value) in within:
        return "ring"
    nested = functools.partial(describe, within=within | {id(value)})
    kind = type(value).__qualname__
    if isinstance(value, functools.partial):
        return f"partial[{nested(value.func)}, {nested(value.args)}, {nested(value.keywords)}]"
    if (name := getattr(value, "__qualname__", None)) is not None:
        cells = getattr(value, "__closure__", None) or ()
        return name + (f"[{', '.join(nested(cell.cell_contents) for cell in cells)}]" * bool(cells))
    if dataclasses.is_dataclass(value):
        compared = [field.name for field in dataclasses.fields(value) if field.compare]
        return f"{kind}({nested({name: getattr(value, name) for name in compared})})"
    if isinstance(value, Mapping):
        items = sorted(f"{nested(key)}: {nested(item)}" for key, item in value.items())
        return f"{kind}{{{', '.join(items)}}}"
    if isinstance(value, Set):
        return f"{kind}{{{', '.join(sorted(nested(item) for item in value))}}}"
    if isinstance(value, Sequence):
        return f"{kind}[{', '.join(nested(item) for item in value)}]"
    return kind
