"""Settings: frozen dataclasses that check their fields, with the types of sizes and rates.

Settings are pydantic dataclasses in strict mode. Ranges are declared with the types; what pydantic
finds wrong is raised as `ValueError` in the form of all errors: `name=value, but expected …`.
"""

import functools
from dataclasses import field
from typing import Annotated, Any, TypeVar, dataclass_transform

from pydantic import AfterValidator, ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass
from pydantic_core import PydanticCustomError

from convattn.files import brief

Class = TypeVar("Class")
STRICT = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)
MAX_PROBLEMS, MAX_NAME = 8, 100  # of all that is wrong, and of a setting's name
LIMITS = {"ge": "at least", "le": "at most", "gt": "more than", "lt": "less than"}
PLAINER = {  # pydantic's words → ours
    "Input should be ": "",
    "Tuple should have ": "",
    "a valid integer": "an integer",
    " after validation, not 0": "",
    "Unexpected keyword argument": "no setting of that name",
}


def _odd(value: int) -> int:
    if value % 2 == 0:
        raise PydanticCustomError("odd", "an odd number: an even kernel has no centre")
    return value


# What a file of settings may ask for is bounded, so that it takes neither hours nor all memory to
# read: models are built layer by layer. Nobody has trained larger ones.
MAX_LAYERS, MAX_STAGES, MAX_WIDTH, MAX_SIDE = 256, 16, 2**18, 1024

Count = Annotated[int, Field(ge=1)]
Layers = Annotated[int, Field(ge=1, le=MAX_LAYERS)]
Width = Annotated[int, Field(ge=1, le=MAX_WIDTH)]
Side = Annotated[int, Field(ge=1, le=MAX_SIDE)]
Natural = Annotated[int, Field(ge=0)]
Stages = Annotated[tuple[Layers, ...], Field(min_length=1, max_length=MAX_STAGES)]
Widths = Annotated[tuple[Width, ...], Field(min_length=1, max_length=MAX_STAGES)]
Sides = Annotated[tuple[Side, ...], Field(min_length=1, max_length=MAX_STAGES)]
Odd = Annotated[int, Field(ge=1, le=MAX_SIDE), AfterValidator(_odd)]
Positive = Annotated[float, Field(gt=0)]
NonNegative = Annotated[float, Field(ge=0)]
Rate = Annotated[float, Field(ge=0, lt=1)]
Fraction = Annotated[float, Field(ge=0, le=1)]
Alpha = Annotated[float, Field(ge=0, le=1000)]  # of a beta distribution; 0 for none


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def settings(cls: type[Class]) -> type[Class]:
    """A frozen dataclass whose fields are checked against their types, without conversions.

    Raises:
        ValueError: From its constructor, for what is out of range.

    >>> @settings
    ... class Sizes:
    ...     width: Count = 4
    >>> Sizes(width=0)
    Traceback (most recent call last):
    ValueError: width=0, but expected at least 1
    """
    checked_class: Any = dataclass(cls, frozen=True, config=STRICT)
    construct = checked_class.__init__

    @functools.wraps(construct)
    def checked(self: Any, *args: Any, **named: Any) -> None:
        try:
            construct(self, *args, **named)
        except ValidationError as error:
            raise ValueError(explained(error)) from None

    checked_class.__init__ = checked
    return checked_class


def explained(error: ValidationError) -> str:
    """What pydantic found wrong, in the form of all errors."""
    problems = [_explained(problem) for problem in error.errors(include_url=False)]
    more = f" and {len(problems) - MAX_PROBLEMS} more" if len(problems) > MAX_PROBLEMS else ""
    return "; ".join(problems[:MAX_PROBLEMS]) + more


def _explained(problem: Any) -> str:
    name, kind = ".".join(map(str, problem["loc"]))[:MAX_NAME], problem["type"]
    if kind == "value_error":  # raised by a __post_init__, and in our form
        return str(problem["ctx"]["error"])
    if kind.startswith("union_tag"):
        tag = problem["ctx"].get("tag")
        tags = problem["ctx"].get("expected_tags", "the name of a kind of model")
        return f"{name}.kind={brief(tag)}, but expected {tags}"
    if kind == "missing":
        return f"{name} is missing"
    expected = problem["msg"]
    for theirs, ours in PLAINER.items():
        expected = expected.replace(theirs, ours)
    for limit, words in LIMITS.items():
        if limit in problem.get("ctx", {}):
            expected = f"{words} {problem['ctx'][limit]:.12g}"
    return f"{name or 'settings'}={brief(problem['input'])}, but expected {expected}"
