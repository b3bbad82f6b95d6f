"""Writes docs/identities.md: what the checker demands of a certificate of the kind `identity`.

    python scripts/list_identities.py > docs/identities.md

The page is what the statements are read from; `tests/convattn_check/test_check_formulas.py`
compares it with the checker.
"""

from itertools import groupby

from convattn_check.formulas import FORMULAS, Identity

HEAD = """# The identities

What a certificate of the kind [`identity`](certificates.md#kind-identity) may say, word for word,
from the checker's own tables (`src/convattn_check/formulas/`): `make ledger` writes this page, and
a test compares it with the checker.

Each identity has tensors with the kinds of their entries, definitions, in which an index that
stands only on the right is summed over, and the pairs that are equal or differ. Sizes are free,
from 2 on, but for those that are given. [Kind `identity`](certificates.md#kind-identity) says what
the kinds and layouts mean.
"""


def page() -> str:
    """The whole page."""
    sections = [HEAD]
    for claim, named in groupby(FORMULAS.items(), lambda item: item[0][0]):
        sections.append(f"\n## {claim}\n")
        sections += [section(name, identity) for (_, name), identity in named]
    return "".join(sections)


def section(name: str, identity: Identity) -> str:
    """One identity: its name, its sentence, and its formulas."""
    tensors = identity.tensors.items()
    lines = [f"{tensor}[{''.join(axes)}]: {words(kind)}" for tensor, (axes, kind) in tensors]
    lines += ["", *identity.definitions, ""]
    lines += [f"{one} = {other}" for one, other in identity.equal]
    lines += [f"{one} ≠ {other}" for one, other in identity.differ]
    lines += [f"size of {index}: {size}" for index, size in identity.sizes.items()]
    lines += [f"{one} < {other}" for one, other in identity.fewer]
    lines += [
        f"shifts of {grid}: {', '.join(map(str, of))}" for grid, of in identity.shifts.items()
    ]
    lines += [f"layout: {how}({', '.join(of)})" for how, *of in identity.layout]
    text = "\n".join(lines)
    return f"\n### {name}\n\n{identity.meaning}.\n\n```text\n{text}\n```\n"


def words(kind: object) -> str:
    """A kind of entries, or the very numbers."""
    return kind if isinstance(kind, str) else ", ".join(map(str, kind))  # type: ignore[call-overload]


if __name__ == "__main__":
    print(page(), end="")
