"""The statements of the theorems, and which definition or lemma uses which, read from the sources.

A name counts as used where its identifier stands in a statement, a proof or a definition, outside
comments, and the name is the file's own or that of a file it imports. Nothing is compiled, so a
bound variable that is spelled like an item counts too.
"""

import re
from dataclasses import dataclass

from convattn_ledger.coq.rules import names, required, scan
from convattn_ledger.coq.sources import Project, sentences
from convattn_ledger.locations import coq_directory

_STARTS = re.compile(
    r"(?:Local\s+)?(?P<kind>Definition|Fixpoint|Record|Canonical|Lemma|Theorem|Let|Notation)\s+"
    r"(?P<name>[\w']+)"
)
_IDENTIFIER = re.compile(r"[A-Za-z_][\w']*")


@dataclass(frozen=True)
class Item:
    """Something that a source defines or proves.

    Attributes:
        file: The file, under ``proofs/coq/``.
        line: The line on which it begins.
        name: Its name, without the file's.
        kind: The command, such as ``Lemma``.
        text: The first sentence: a definition, or a statement without its proof.
        uses: File and name of each item that it uses, the proof included.
        fields: Of a record, its fields and its constructor.
    """

    file: str
    line: int
    name: str
    kind: str
    text: str
    uses: tuple[tuple[str, str], ...]
    fields: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, str]:
        """File and name."""
        return self.file, self.name


def statement(file: str) -> str:
    """The theorem of a file, from ``Theorem`` to the full stop, without comments.

    Args:
        file: The file, under ``proofs/coq/``.

    Example:
        >>> statement("checker/rank.v").partition(" ")[0]
        'Theorem'
    """
    source = coq_directory() / file
    if not source.is_file():
        raise ValueError(f"file={file!r}, but expected a theorem such as 'sharpened/finite.v'")
    theorem, failures = scan(file, source.read_text("utf-8"))
    if theorem is None:
        reason = failures[0] if failures else "it is no file of theorems"
        raise ValueError(f"file={file!r}, but expected a theorem; {reason}")
    return theorem.text


def items(project: Project) -> dict[tuple[str, str], Item]:
    """Every item of the sources, by its file and name, in the order of the files."""
    visible = {file: _visible(project, file) for file in project.files}
    return {item.key: item for file in project.files for item in _items(project, file, visible)}


def _visible(project: Project, file: str) -> dict[str, tuple[str, str]]:
    """What files that import this one see of it: from the short name to the item."""
    visible = {}
    for sentence in sentences(project.text(file)):
        start = _STARTS.match(sentence.text)
        if start and start["kind"] != "Let" and not sentence.text.startswith("Local"):
            visible[start["name"]] = (file, start["name"])
    for item in names(project, file):
        if item.visible and item.name not in visible:
            visible[item.name] = (file, item.name)
    return visible


def _items(
    project: Project, file: str, visible: dict[str, dict[str, tuple[str, str]]]
) -> list[Item]:
    scope: dict[str, tuple[str, str]] = {}
    for other in required(project, file):
        scope |= visible[other]
    items: list[Item] = []
    fields: dict[int, list[str]] = {}
    for part in names(project, file):
        if part.kind == "Record":
            fields.setdefault(part.line, []).append(part.name)
    fields = {line: names[1:] for line, names in fields.items()}  # the first is the record's own
    open_item: tuple[int, str, str, str] | None = None
    used: dict[tuple[str, str], None] = {}

    def close() -> None:
        if open_item is not None:
            line, name, kind, text = open_item
            own = {(file, name)}
            uses = tuple(use for use in used if use not in own)
            items.append(Item(file, line, name, kind, text, uses, tuple(fields.get(line, ()))))

    for sentence in sentences(project.text(file)):
        start = _STARTS.match(sentence.text)
        if start:
            close()
            open_item = (sentence.line, start["name"], start["kind"], sentence.text)
            used = {}
            scope[start["name"]] = (file, start["name"])
        for match in _IDENTIFIER.finditer(sentence.text):
            if open_item is not None and match[0] in scope:
                used[scope[match[0]]] = None
    close()
    return items
