"""The surface of Coq's language: comments, strings and sentences.

Comments nest, and strings count within them: ``(* "*)" *)`` is one comment. A comment separates, so
that ``Adm(* *)itted`` is two words. A sentence ends at a full stop before white space.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_SPECIAL = re.compile(r'\(\*|\*\)|"')
_END = re.compile(r"(?:(?<!\.)\.|(?<=\.\.)\.)(?=\s|\Z)")
_PREFIX = re.compile(
    r"(?:\s+|#\[[^\]]*\]|(?:Local|Global|Polymorphic|Monomorphic|Cumulative|NonCumulative|Private|"
    r"Program|Time|Fail|Succeed)\b)*"
)


@dataclass(frozen=True)
class Sentence:
    """One sentence.

    Attributes:
        line: The line, from 1, on which it begins.
        start: Where it begins in the text.
        end: Where the full stop ends.
        text: The sentence without comments, with every string empty.
        command: The same without attributes and words such as ``Local``.
    """

    line: int
    start: int
    end: int
    text: str
    command: str


def blank(text: str, strings: bool = False) -> str:
    """The text with its comments overwritten by spaces; lines and positions stay as they are.

    Args:
        text: A Coq source.
        strings: Whether to overwrite what stands within strings, too.

    Example:
        >>> blank("Adm(* (* *) *)itted.").split()
        ['Adm', 'itted.']
        >>> blank('Notation "(* x" := 1. (* "*)" *)').rstrip()
        'Notation "(* x" := 1.'
    """
    kept: list[str] = []
    depth, quoted, place = 0, False, 0
    for match in _SPECIAL.finditer(text):
        mark, start = match[0], match.start()
        if start < place:
            continue
        if quoted:
            if mark == '"':
                kept.append(_hide(text[place:start], depth > 0 or strings))
                kept.append(" " if depth else mark)
                place, quoted = match.end(), False
            continue
        if mark == "*)" and not depth:
            continue
        kept.append(_hide(text[place:start], depth > 0))
        if mark == '"':
            quoted = True
            kept.append(" " if depth else mark)
        else:
            depth += 1 if mark == "(*" else -1
            kept.append("  ")
        place = match.end()
    kept.append(_hide(text[place:], depth > 0 or (quoted and strings)))
    return "".join(kept)


def sentences(text: str) -> Iterator[Sentence]:
    """The sentences of a source, in order.

    Args:
        text: A Coq source.

    Example:
        >>> [s.text for s in sentences("Lemma a : x.1 = y. (* no. *) Proof. by []. Qed.")]
        ['Lemma a : x.1 = y.', 'Proof.', 'by [].', 'Qed.']
        >>> [s.command for s in sentences("#[local] Local Hint Resolve a.")]
        ['Hint Resolve a.']
    """
    code, place = blank(text, strings=True), 0
    for match in _END.finditer(code):
        piece = code[place : match.end()]
        start = place + len(piece) - len(piece.lstrip())
        sentence = piece.strip()
        prefix = _PREFIX.match(sentence)
        command = sentence[prefix.end() :] if prefix else sentence
        yield Sentence(code.count("\n", 0, start) + 1, start, match.end(), sentence, command)
        place = match.end()


def _hide(text: str, hidden: bool) -> str:
    return re.sub(r"[^\n]", " ", text) if hidden else text
