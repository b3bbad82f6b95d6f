"""An unpickler for dictionaries of plain values and byte arrays, which runs nothing.

A pickle is a program whose only way to the outside is to name a Python object ("global") and to
call it. Three things stand against that here:

1. the instructions are listed first, and one that isn't needed refuses the file; neither may a
   memo index be larger than the file, for which an unpickler would allocate a table, nor tuples be
   nested without end;
2. the globals that a NumPy array of bytes needs are replaced by stand-ins that only note what they
   were called with, and every other global is refused, so that nothing real is ever called; and
   all the bytes that they make are no more than the file's;
3. an array is made of its noted bytes at the end, after type, shape and length were checked.

A hostile file can therefore waste time, but not run code.
"""

import io
import math
import pickle
import pickletools
from typing import Any

import numpy as np

from convattn.ledger.images.integrity import DataIntegrityError

RECONSTRUCT, ARRAY, TYPE, ENCODE = "_reconstruct", "ndarray", "dtype", "encode"
GLOBALS = {
    ("numpy.core.multiarray", "_reconstruct"): RECONSTRUCT,
    ("numpy._core.multiarray", "_reconstruct"): RECONSTRUCT,  # since NumPy 2
    ("numpy", "ndarray"): ARRAY,
    ("numpy", "dtype"): TYPE,
    ("_codecs", "encode"): ENCODE,  # how Python 3 writes bytes in protocol 2
}
INSTRUCTIONS = frozenset(
    (
        # the file and its stack
        *("PROTO", "FRAME", "STOP", "MARK", "POP", "POP_MARK", "DUP"),
        # the memo
        *("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE", "GET", "BINGET", "LONG_BINGET"),
        # plain values
        *("NONE", "NEWTRUE", "NEWFALSE", "INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1"),
        *("FLOAT", "BINFLOAT", "STRING", "BINSTRING", "SHORT_BINSTRING", "BINBYTES"),
        *("SHORT_BINBYTES", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE"),
        # containers
        *("EMPTY_LIST", "LIST", "APPEND", "APPENDS", "EMPTY_DICT", "DICT", "SETITEM", "SETITEMS"),
        *("EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3"),
        # arrays
        *("GLOBAL", "STACK_GLOBAL", "REDUCE", "BUILD"),
    )
)
MOST_TUPLES = 16  # an array takes six to eight; in thousands, nested, they overflow the C stack
_REMEDY = "it is no official CIFAR file: don't trust where it comes from"


class _StoredArray:
    """The bytes of an array, its shape and its order, as they stand in the file."""

    __slots__ = ("state",)

    def __init__(self) -> None:
        self.state: tuple[Any, ...] | None = None

    def __setstate__(self, state: Any) -> None:
        self.state = state if isinstance(state, tuple) else ()


class _StoredType:
    """A NumPy type, of which only the code is kept: the bytes have no byte order."""

    __slots__ = ("code",)

    def __init__(self, code: Any) -> None:
        self.code = code

    def __setstate__(self, state: Any) -> None:
        pass


class _Allowance:
    """How many bytes may still be made of text: each was written once, so no more than the file."""

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left


class _StandIn:
    """Takes a global's place: calling it checks the arguments and notes them, and does no more."""

    __slots__ = ("allowance", "file", "kind")

    def __init__(self, kind: str, file: str, allowance: _Allowance) -> None:
        self.kind, self.file, self.allowance = kind, file, allowance

    def __call__(self, *arguments: Any) -> Any:
        match self.kind, arguments:
            case "_reconstruct", (_StandIn(kind="ndarray"), (0,), b"b" | "b"):
                return _StoredArray()
            case "dtype", (bytes() | str() as code, *_):
                return _StoredType(code)
            case "encode", (str() as text, "latin1"):
                self.allowance.left -= len(text)
                if self.allowance.left < 0:
                    raise DataIntegrityError(
                        f"{self.file}: makes more bytes of its texts than the whole file has; "
                        + _REMEDY
                    )
                return text.encode("latin1")
        raise DataIntegrityError(
            f"{self.file}: calls {self.kind} with arguments that a plain array doesn't need; "
            + _REMEDY
        )

    def __setstate__(self, state: Any) -> None:
        raise DataIntegrityError(f"{self.file}: changes {self.kind}; {_REMEDY}")


class _Unpickler(pickle.Unpickler):
    """Finds stand-ins instead of globals."""

    def __init__(self, content: bytes, file: str) -> None:
        # Strings of Python 2 stay bytes, as the pixels must.
        super().__init__(io.BytesIO(content), encoding="bytes")
        self.file = file
        self.allowance = _Allowance(len(content))

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in GLOBALS:
            raise DataIntegrityError(
                f"{self.file}: asks for {module}.{name}, but only plain values and NumPy arrays of "
                f"bytes are read; {_REMEDY}"
            )
        return _StandIn(GLOBALS[module, name], self.file, self.allowance)


def load_dictionary(content: bytes, file: str) -> dict[str, Any]:
    """The dictionary in a pickle, of plain values and uint8 arrays.

    Args:
        content: the pickle's bytes.
        file: its name, for messages.

    Returns:
        The dictionary with its keys as text. Arrays at its top level are read-only NumPy arrays;
        byte strings, as Python 2 wrote all its text, stay bytes.

    Raises:
        DataIntegrityError: it is cut short, no dictionary, or holds anything else.

    >>> load_dictionary(pickle.dumps({"labels": [1, 2]}, protocol=2), "batch")
    {'labels': [1, 2]}
    >>> try:
    ...     load_dictionary(pickle.dumps({"run": print}, protocol=2), "batch")
    ... except DataIntegrityError as error:
    ...     print(str(error).partition(',')[0])
    batch: asks for __builtin__.print
    """
    try:
        _refuse_other_instructions(content, file)
        loaded = _Unpickler(content, file).load()
    except DataIntegrityError:
        raise
    # Whatever a malformed pickle makes an unpickler stumble over: its documentation names no list.
    except Exception as error:
        raise DataIntegrityError(
            f"{file}: can't be read as a pickle ({type(error).__name__}: {error}); it may be cut "
            "short: copy or download it again"
        ) from error
    if not isinstance(loaded, dict):
        raise DataIntegrityError(
            f"{file}: holds a {type(loaded).__name__}, but a dictionary was expected; is it "
            "another data set?"
        )
    return {_text(key, file): _plain(value, file) for key, value in loaded.items()}


def _refuse_other_instructions(content: bytes, file: str) -> None:
    tuples = 0
    for opcode, argument, position in pickletools.genops(content):
        if opcode.name not in INSTRUCTIONS:
            raise DataIntegrityError(
                f"{file}: the pickle instruction {opcode.name} at byte {position} isn't needed for "
                f"plain values and arrays; {_REMEDY}"
            )
        if opcode.name.endswith("PUT") and not 0 <= int(argument or 0) <= len(content):
            raise DataIntegrityError(
                f"{file}: the memo index {argument} at byte {position} is larger than the file; "
                + _REMEDY
            )
        tuples += "TUPLE" in opcode.name
        if tuples > MOST_TUPLES:
            raise DataIntegrityError(
                f"{file}: makes more than {MOST_TUPLES} tuples, which no array needs; {_REMEDY}"
            )


def _text(key: Any, file: str) -> str:
    if isinstance(key, bytes):
        return key.decode("latin1")
    if isinstance(key, str):
        return key
    raise DataIntegrityError(
        f"{file}: a key of the dictionary is a {type(key).__name__}, but text was expected; is it "
        "another data set?"
    )


def _plain(value: Any, file: str) -> Any:
    return _array(value, file) if isinstance(value, _StoredArray) else value


def _array(stored: _StoredArray, file: str) -> np.ndarray:
    match stored.state:
        case (
            1,
            tuple() as shape,
            _StoredType(code=b"u1" | "u1"),
            0 | 1 as columns_first,
            bytes(),
        ):
            content = stored.state[4]
        case _:
            raise DataIntegrityError(
                f"{file}: holds an array of another type than uint8, or without its bytes; is it "
                "another data set?"
            )
    if any(type(size) is not int or size < 0 for size in shape):
        raise DataIntegrityError(f"{file}: an array has the shape {shape}; sizes were expected")
    if math.prod(shape) != len(content):
        raise DataIntegrityError(
            f"{file}: an array of shape {shape} has {len(content):,} bytes, but "
            f"{math.prod(shape):,} were expected; it was changed: download it again"
        )
    flat = np.frombuffer(content, np.uint8)
    return flat.reshape(shape, order="F" if columns_first else "C")
