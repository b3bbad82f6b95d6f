"""Options of `experiments/analyse.py` that take whole numbers, or are left out."""

from typing import Annotated, Any, Literal

import tyro
from tyro.constructors import PrimitiveConstructorSpec


def whole_numbers(count: int | Literal["*"], metavar: str) -> PrimitiveConstructorSpec[Any]:
    """How an option reads so many whole numbers; None is only what it is when it is left out.

    Args:
        count: 1 for a number, more for a tuple, `"*"` for a tuple of any length.
        metavar: What help calls them.
    """

    def read(words: list[str]) -> int | tuple[int, ...]:
        numbers = tuple(_whole_number(word, metavar) for word in words)
        return numbers[0] if count == 1 else numbers

    return PrimitiveConstructorSpec(
        nargs=count,
        metavar=metavar,
        instance_from_str=read,
        is_instance=lambda value: True,
        str_from_instance=lambda value: [""] * (1 if count == "*" else count),
    )


def _whole_number(word: str, metavar: str) -> int:
    try:
        return int(word)
    except ValueError:
        raise ValueError(f"got {word!r}, but expected whole numbers: {metavar}") from None


UNSAID = tyro.conf.arg(help_behavior_hint="")  # the help text says what holds without the option
Query = Annotated[tuple[int, int] | None, whole_numbers(2, "ROW COLUMN"), UNSAID]
Indices = Annotated[tuple[int, ...], whole_numbers("*", "INDEX [INDEX …]"), UNSAID]
Epochs = Annotated[tuple[int, ...] | None, whole_numbers("*", "EPOCH [EPOCH …]"), UNSAID]
Epoch = Annotated[int | None, whole_numbers(1, "EPOCH"), UNSAID]
Layer = Annotated[int | None, whole_numbers(1, "LAYER"), UNSAID]
Count = Annotated[int | None, whole_numbers(1, "N"), UNSAID]
