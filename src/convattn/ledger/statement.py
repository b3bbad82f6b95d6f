"""The four sections of a proof file's docstring.

A section opens with its name at the start of a line, followed by a full stop, a colon or nothing::

    Lemma 1: one head per tap.

    Printed. What the paper says.

    Verified. What is true, in the same notation.

    Repair. What had to change, or "Nothing to repair." in place of the section.

    Proof. Why it is true.
"""

import inspect
import re
from dataclasses import dataclass

_HEADING = re.compile(
    r"(?:#+\s*)?(?:\*\*)?(?P<name>Printed|Verified|Repair|Nothing to repair|Proof)(?:\*\*)?"
    r"(?:[.:](?:\*\*)?(?:\s+(?P<text>\S.*)?)?)?\s*"
)
_UNDERLINE = re.compile(r"[-=~^]{3,}\s*")


@dataclass(frozen=True)
class Statement:
    """A proof file's docstring, taken apart.

    Attributes:
        title: What stands before the first section.
        printed: What the paper says.
        verified: What was verified.
        repair: What had to be changed; starts with "Nothing to repair." if nothing had.
        proof: Why it is true.
    """

    title: str
    printed: str
    verified: str
    repair: str
    proof: str


def parse_statement(docstring: str | None) -> Statement:
    """Take a proof file's docstring apart.

    Args:
        docstring: The module's docstring.

    Raises:
        ValueError: If the docstring is missing, or a section is missing, empty or there twice.

    Example:
        >>> text = '''Softmax rows sum to one.
        ...
        ... Printed. They do.
        ...
        ... Verified. They do, if one score is finite.
        ...
        ... Repair: ask for one finite score.
        ...
        ... Proof. The denominator is then positive.'''
        >>> parse_statement(text).repair
        'ask for one finite score.'
    """
    if not docstring or not docstring.strip():
        raise ValueError(
            "the file has no docstring, but expected one with the sections Printed, Verified, "
            "Repair (or Nothing to repair) and Proof"
        )
    title: list[str] = []
    sections: dict[str, list[str]] = {}
    current = title
    for line in inspect.cleandoc(docstring).splitlines():
        heading = _HEADING.fullmatch(line)
        if heading:
            name = heading["name"]
            if name in sections:
                raise ValueError(f"the docstring has the section {name!r} twice")
            current = sections[name] = [heading["text"] or ""]
        elif not (_UNDERLINE.fullmatch(line) and current is not title and not any(current)):
            current.append(line)
    texts = {name: "\n".join(lines).strip() for name, lines in sections.items()}
    if "Repair" in texts and "Nothing to repair" in texts:
        raise ValueError("the docstring has both 'Repair' and 'Nothing to repair': keep one")
    if "Nothing to repair" in texts:
        texts["Repair"] = f"Nothing to repair. {texts['Nothing to repair']}".strip()
    missing = [name for name in ("Printed", "Verified", "Repair", "Proof") if not texts.get(name)]
    if missing:
        raise ValueError(
            f"the docstring lacks {' and '.join(missing)}, or leaves it empty: a section opens "
            "with its name at the start of a line, such as 'Printed. ...'; 'Nothing to repair.' "
            "may stand for Repair"
        )
    return Statement(
        title="\n".join(title).strip(),
        printed=texts["Printed"],
        verified=texts["Verified"],
        repair=texts["Repair"],
        proof=texts["Proof"],
    )
