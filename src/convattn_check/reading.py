"""Reading: canonical JSON, and strict access to its fields and numbers.

Everything that this module lets through is an object, list, string or integer of bounded size;
there are no floats, and ``true`` is not the integer 1. The bounds only keep a hostile file from
taking hours; nothing that is proved depends on them.
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import NoReturn, TypeVar

from convattn_check.reject import Reject, show

LARGEST_FILE = 500_000  # bytes; exact sums of long fractions grow with its square
MOST_DIGITS = 4_000  # of an integer, of a numerator, of a denominator; Python converts up to 4,300
LARGEST_SIDE = 64  # of a kernel and of a patch, a stride and a dilation
LARGEST_POSITION = 4_096  # of an exponent, an alpha, the ring, an image's side
LARGEST_ENTRY = 10**18  # of a kernel or a matrix that is eliminated
_ANY = 10**MOST_DIGITS
_RATIONAL = re.compile(r"(0|-?[1-9][0-9]*)(?:/([1-9][0-9]*))?")

Item = TypeVar("Item")


def canonical(value: object) -> str:
    """The only way to write a JSON value here: keys sorted, no spaces, ASCII.

    >>> canonical({"b": [1, "1/2"], "a": None})
    '{"a":null,"b":[1,"1/2"]}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def parse(text: str | bytes) -> object:
    r"""The JSON value whose canonical text, and a newline, is exactly `text`.

    Since the text is compared with what we would have written, a repeated key, a space or a -0
    cannot hide.

    >>> parse('{"a":[1,2]}\n')
    {'a': [1, 2]}
    """
    if not isinstance(text, str | bytes):
        raise Reject("malformed", f"got {type(text).__name__}, expected text or bytes")
    if len(text) > LARGEST_FILE:
        raise Reject("range", f"the file is longer than {LARGEST_FILE} bytes")
    if not text.isascii():
        raise Reject("encoding", "the file holds bytes beyond ASCII (a byte order mark, perhaps)")
    string = text if isinstance(text, str) else text.decode()
    try:
        value = json.loads(
            string, parse_int=_integer, parse_float=_not_an_integer, parse_constant=_not_an_integer
        )
        written = canonical(value) + "\n"
    except RecursionError:
        raise Reject("malformed", "the JSON is nested too deeply") from None
    except ValueError as error:
        raise Reject("malformed", f"this is not JSON: {error}") from None
    if written != string:
        raise Reject(
            "canonical",
            f"the {len(string)} bytes are not the canonical text of what they say ({len(written)} "
            "bytes): keys sorted and given once, no spaces, one newline at the end",
        )
    return value


def _integer(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise Reject("range", f"a number has {len(digits)} digits, expected up to {MOST_DIGITS}")
    return int(digits)


def _not_an_integer(number: str) -> NoReturn:
    raise Reject("malformed", f"the number {show(number)} is not an integer; rationals are 'p/q'")


def fields(value: object, where: str, names: Iterable[str]) -> dict[str, object]:
    """An object with exactly these fields."""
    expected = [*names]
    if not isinstance(value, dict):
        raise Reject("malformed", f"{where} is {show(value)}, expected an object with {expected}")
    missing = [name for name in expected if name not in value]
    unknown = [name for name in value if name not in expected]
    if missing or unknown:
        raise Reject("malformed", f"{where} lacks {missing} and has the unknown {show(unknown)}")
    return value


def string(value: object, where: str, options: Iterable[str] = ()) -> str:
    """A string that is not empty; one of the options if there are any."""
    allowed = list(options)
    if not isinstance(value, str) or not value or (allowed and value not in allowed):
        raise Reject("malformed", f"{where} is {show(value)}, expected {allowed or 'a text'}")
    return value


def integer(value: object, where: str, low: int = -_ANY, high: int = _ANY) -> int:
    """An integer, low ≤ value ≤ high."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise Reject("malformed", f"{where} is {show(value)}, expected an integer")
    if not low <= value <= high:
        raise Reject("range", f"{where} is {show(value)}, expected {show(low)} to {show(high)}")
    return value


def rational(value: object, where: str) -> Fraction:
    """A rational, written "p" or "p/q" in lowest terms with q > 1 and the sign on p.

    >>> rational("-2/3", "weight")
    Fraction(-2, 3)
    """
    match = _RATIONAL.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise Reject("malformed", f"{where} is {show(value)}, expected a rational 'p' or 'p/q'")
    result = Fraction(_integer(match[1]), _integer(match[2] or "1"))
    if str(result) != value:
        raise Reject("malformed", f"{where} is {show(value)}, expected lowest terms, 'p' not 'p/1'")
    return result


def array(
    value: object, where: str, read: Callable[[object, str], Item], length: int | None = None
) -> list[Item]:
    """A list, of the given length if there is one, each item read by `read`."""
    if not isinstance(value, list) or (length is not None and len(value) != length):
        size = "a list" if length is None else f"a list of length {length}"
        actual = f"{len(value)} items" if isinstance(value, list) else show(value)
        raise Reject("malformed", f"{where} is {actual}, expected {size}")
    return [read(item, f"{where}[{index}]") for index, item in enumerate(value)]


def integers(
    value: object, where: str, length: int | None, low: int = -_ANY, high: int = _ANY
) -> list[int]:
    """A list of integers, each low ≤ item ≤ high."""
    return array(value, where, lambda item, at: integer(item, at, low, high), length)


def entries(value: object, where: str, length: int) -> list[int]:
    """A list of integers of up to 18 digits."""
    return integers(value, where, length, -LARGEST_ENTRY, LARGEST_ENTRY)


def matrix(value: object, where: str, height: int, width: int) -> list[list[int]]:
    """A matrix of such integers, row by row."""
    return array(value, where, lambda row, at: entries(row, at, width), height)


def items(value: object, where: str, length: int | None = None) -> list[object]:
    """A list of anything."""
    return array(value, where, lambda item, _: item, length)


def position(value: object, where: str, last: Sequence[int]) -> list[int]:
    """Indices, each from 0 to the last one of its axis."""
    indices = items(value, where, len(last))
    return [integer(index, where, 0, high) for index, high in zip(indices, last, strict=True)]


def rationals(value: object, where: str, length: int | None = None) -> list[Fraction]:
    """A list of rationals."""
    return array(value, where, rational, length)


def sides(value: object, where: str, axes: int | None, high: int = LARGEST_SIDE) -> tuple[int, ...]:
    """A size for each axis, at least 1; one or two axes if their number is not yet known."""
    sizes = tuple(integers(value, where, axes, 1, high))
    if not 1 <= len(sizes) <= 2:
        raise Reject("malformed", f"{where} has {len(sizes)} axes, expected 1 or 2")
    return sizes


def same(value: object, expected: object) -> bool:
    """Whether two JSON values are written alike; unlike ``==``, which holds 1 and true equal.

    >>> same([1], [1]), same([True], [1])
    (True, False)
    """
    return canonical(value) == canonical(expected)
