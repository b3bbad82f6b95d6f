"""Settings on their way through JSON, and what differs between two of them."""

import functools
import json
from collections.abc import Collection
from typing import Any

from pydantic import TypeAdapter, ValidationError

from convattn.settings import explained


@functools.cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def to_json(settings: Any) -> dict[str, Any]:
    """All of some settings, as JSON can hold them."""
    kind: Any = type(settings)
    return _adapter(kind).dump_python(settings, mode="json")


def from_json(kind: Any, stored: Any, *, later: Collection[str] = ()) -> Any:
    """The settings that `to_json` was given.

    Args:
        kind: Of the settings.
        stored: What was read from a file.
        later: Dotted names of fields that did not exist at first; where they are missing, their
            defaults are what was done. Today's other defaults need not be what a run had.

    Raises:
        ValueError: For values out of range, and unknown or missing fields.
    """
    try:
        settings = _adapter(kind).validate_json(json.dumps(stored))
        missing = sorted({*flattened(to_json(settings))} - {*flattened(stored), *later})
        problem = f"{', '.join(missing)} missing" if missing else ""
    except ValidationError as error:
        problem = explained(error)
    if problem:
        raise ValueError(
            f"these are not the settings of a run: {problem}; they come from another version, or "
            "the file was damaged: take that version, or begin a run of its own"
        )
    return settings


def flattened(document: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Every field of a JSON object by its dotted name.

    >>> flattened({"training": {"seed": 0}, "seeds": [1]})
    {'training.seed': 0, 'seeds': [1]}
    """
    flat: dict[str, Any] = {}
    for name, value in document.items():
        nested = isinstance(value, dict)
        flat |= flattened(value, f"{prefix}{name}.") if nested else {f"{prefix}{name}": value}
    return flat


def changed_fields(one: Any, other: Any) -> list[str]:
    """The dotted names under which two settings differ.

    >>> from convattn_lab.training.settings import TrainingSettings
    >>> changed_fields(TrainingSettings(), TrainingSettings(seed=1))
    ['seed']
    """
    left, right = flattened(to_json(one)), flattened(to_json(other))
    names = [*left, *(name for name in right if name not in left)]
    absent = object()
    return [name for name in names if left.get(name, absent) != right.get(name, absent)]
