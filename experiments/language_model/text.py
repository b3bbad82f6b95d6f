"""A text of bytes, divided into contiguous parts, and cut into windows.

The bundled text is the reference of the Python language, as `pydoc` shows it. It differs between
Python versions, so whoever reports a figure also reports the version and the SHA-256.
"""

import hashlib
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import UInt8

from convattn.files import read_file
from convattn.operators.integers import as_integer

Windows = UInt8[np.ndarray, "count length_and_one"]


@dataclass(frozen=True)
class Text:
    """A text as bytes, with its name.

    >>> Text("abc", b"abcd").metadata()["sha256"][:8]
    '88d4266f'
    """

    name: str
    content: bytes

    def metadata(self) -> dict[str, Any]:
        """What is put on record: name, size, SHA-256."""
        digest = hashlib.sha256(self.content).hexdigest()
        return {"name": self.name, "bytes": len(self.content), "sha256": digest}


def read_text(path: str | Path | None = None) -> Text:
    """The bytes of a file, or the reference of the Python language.

    Args:
        path: Any file; None for the topics of `pydoc`, in the order of their names, in UTF-8.

    Raises:
        ValueError: For a file that is empty or cannot be read, and where Python came without
            `pydoc_data`.

    >>> len(read_text().content) > 100_000
    True
    """
    if path is not None:
        try:
            content = read_file(Path(path))
        except OSError as error:
            raise ValueError(f"{path} cannot be read ({error}); give a file of text") from error
        if not content:
            raise ValueError(f"{path} is empty, but expected a text to train on")
        return Text(Path(path).name, content)
    try:
        from pydoc_data.topics import topics
    except ImportError as error:
        raise ValueError(
            "this Python came without pydoc_data, which holds the bundled text; give a file with "
            "--text.source"
        ) from error
    joined = "\n".join(topics[name] for name in sorted(topics))
    return Text(f"pydoc_data.topics of Python {platform.python_version()}", joined.encode())


def split_text(
    content: bytes, *, validation: float = 0.1, test: float = 0.1
) -> tuple[bytes, bytes, bytes]:
    """The first part to train on, the next for validation, the last for testing.

    Args:
        validation, test: Their fractions, rounded to whole bytes; validation may be 0.

    Returns:
        Three parts that make up the content.

    Raises:
        ValueError: For fractions that leave a part empty.

    >>> split_text(b"abcdefghij", validation=0.2, test=0.1)
    (b'abcdefg', b'hi', b'j')
    """
    if not (0 <= validation < 1 and 0 < test < 1 and validation + test < 1):
        raise ValueError(
            f"validation={validation} and test={test}, but expected fractions whose sum is below "
            "1, that of the test above 0"
        )
    sizes = [round(fraction * len(content)) for fraction in (validation, test)]
    first, second = len(content) - sum(sizes), len(content) - sizes[1]
    if first <= 0 or not sizes[1] or (validation and not sizes[0]):
        raise ValueError(
            f"validation={validation} and test={test} of {len(content)} bytes leave a part empty; "
            "take a longer text"
        )
    return content[:first], content[first:second], content[second:]


def windows_of(content: bytes, length: int) -> Windows:
    """Windows of length + 1 bytes, each beginning with the last one of the one before.

    So each byte but the first is predicted once, but for a rest that fills no window.

    Raises:
        ValueError: For a part that fills none.

    >>> windows_of(b"abcdefg", 2).tobytes()
    b'abccdeefg'
    """
    length = as_integer(length, "length", 1)
    count = (len(content) - 1) // length
    if count < 1:
        raise ValueError(
            f"a part of {len(content)} bytes fills no window of {length} + 1; take a longer text "
            "or a smaller length"
        )
    symbols = np.frombuffer(content, np.uint8)
    indices = length * np.arange(count)[:, None] + np.arange(length + 1)
    return symbols[indices]
