"""For the site: docstrings as Griffe reads them.

An example that stands without a heading becomes a section, and `a, b: text` an entry for each name.
"""

import re
from typing import Any

from griffe import Extension, Object

# A prompt and the lines up to an empty one; further examples may follow.
_EXAMPLE = re.compile(r"(?m)^>>> (?:.+\n?)*(?:\n+>>> (?:.+\n?)*)*")
_NAMES = re.compile(r"(?m)^ {4}(?P<names>\w+(?:,\s+\w+)+): (?P<text>.+(?:\n {8}.+)*)", re.ASCII)


def readable(text: str) -> str:
    """The docstring with a heading for its examples, and an entry for each argument.

    >>> readable("Add.\\n\\n>>> 1 + 1\\n2")
    'Add.\\n\\nExamples:\\n    >>> 1 + 1\\n    2'
    >>> readable("Args:\\n    a, b: Numbers.")
    'Args:\\n    a: Numbers.\\n    b: Numbers.'
    """

    def entries(match: re.Match[str]) -> str:
        names = re.split(r",\s+", match["names"])
        return "\n".join(f"    {name}: {match['text']}" for name in names)

    def section(match: re.Match[str]) -> str:
        lines = ["Examples:", *(f"    {line}".rstrip() for line in match[0].rstrip().split("\n"))]
        return "\n".join(lines) + ("\n" if match[0].endswith("\n") else "")

    return _EXAMPLE.sub(section, _NAMES.sub(entries, text))


class Readable(Extension):
    """Applies `readable` to every docstring."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rewrite one object's docstring."""
        if obj.docstring:
            obj.docstring.value = readable(obj.docstring.value)
