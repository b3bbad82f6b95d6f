"""The schema of a record, made from a document that says what each part must hold.

A document is a JSON object as a record is one. Where the record may hold any value of a type, the
document has the type, with conditions if need be; where it must hold one value, that value.
"""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, ValidationError, create_model
from pydantic_core import PydanticCustomError

from convattn.lab.settings import explained

MOST_TOLD = 16  # reasons: all of those that the smallest run has
READING = ConfigDict(strict=True, allow_inf_nan=False)


def mismatches(record: Any, document: Mapping[str, Any]) -> list[str]:
    """Where a record is not what a document says; what the record holds beside it is passed over.

    Args:
        record: Anything that was read as JSON.
        document: What its parts must be.

    >>> mismatches({"seed": "0", "images": {"test": 500}}, {"seed": int, "images": {"test": 10}})
    ["seed='0', but expected an integer; images.test=500, but expected 10"]
    """
    try:
        part(document).model_validate(record)
    except ValidationError as error:
        return [explained(error, "record", MOST_TOLD)]
    return []


def such_that(words: str, holds: Callable[[Any], bool]) -> Any:
    """A condition for `Annotated`, with the words that say what is expected."""

    def checked(value: Any) -> Any:
        if not holds(value):
            raise PydanticCustomError("condition", "{words}", {"words": words})
        return value

    return AfterValidator(checked)


def equal(expected: Any) -> Any:
    """The type of what is equal to a value; JSON's true is not 1."""

    def holds(value: Any) -> bool:
        return value == expected and isinstance(value, bool) == isinstance(expected, bool)

    return Annotated[Any, such_that(repr(expected), holds)]


def part(document: Mapping[str, Any]) -> Any:
    """The type of a JSON object that is what a document says."""
    fields: dict[str, Any] = {name: (_type(held), ...) for name, held in document.items()}
    return create_model("Part", __config__=READING, **fields)


def _type(held: Any) -> Any:
    if isinstance(held, dict):
        return part(held)
    # A type, or what `Annotated` or a subscript makes of one.
    return held if isinstance(held, type) or hasattr(held, "__origin__") else equal(held)
