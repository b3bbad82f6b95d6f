"""What a proof file may say: the commands that the proofs need, and none besides.

The scan reads a source without Coq. Where a source can change how Coq reads what follows, or take
back what stands before, a scan and Coq may see different theorems; so a command that is not known
to be harmless is refused. A lemma or theorem is stated, then follow ``Proof.``, tactics and
``Qed.``, which the scan can tell apart by their first letter.
"""

import re
from collections.abc import Iterator

from convattn.ledger.coq.failure import Failure
from convattn.ledger.coq.lexing import Sentence, blank, sentences
from convattn.ledger.coq.words import WORDS, remedy_for

_ALLOWED = re.compile(
    r"(?:From\s+\S+\s+)?Require\b|(?:Import|Export|Section|End|Arguments)\b|Open\s+Scope\b|"
    r"Implicit\s+Types?\b|(?:Variables?|Hypothesis|Hypotheses)\b|(?:Lemma|Theorem)\b|"
    r"Set\s+Implicit\s+Arguments\s*\.|Unset\s+(?:Strict\s+Implicit|Printing\s+Implicit\s+Defensive)"
    r"\s*\.|(?:Definition|Fixpoint|Record|Canonical|Let|Notation)\b(?=.*:=)|"
    r"Module\s+\w+\s*:=[\w\s.]*\Z",
    re.DOTALL,
)
_LOCAL = re.compile(r"\ALocal\s+(?=(?:Open|Definition|Fixpoint|Notation|Lemma|Theorem)\b)")
_STATED = re.compile(r"(?:Lemma|Theorem)\b")
_BULLETS = re.compile(r"[-+*{}\s]*")
_ENDS = re.compile(r"(?:Qed|Defined|Admitted|Abort)\b")
_IN_SECTION = re.compile(r"(Hypothesis|Hypotheses|Variables?|Context)\b")
_OPEN = "outside a section this is an axiom; open a Section, or prove it"
_SECTION = re.compile(r"(Section|End)\s+([\w']+)")
_SPELLINGS = {
    '"': "leave strings out: a notation may change how the rest of the file is read",
    "(*": "put a space before the comment, so that it begins one whatever stands there",
    ":(": "put a space behind the colon, so that no quotation of a plugin begins here",
}
_SPELLED = re.compile(r'(")|\w(:[({\[])')
_GLUED = re.compile(r"\S\(\*")
_REMEDIES = {
    "outside": "leave it out: only the commands listed in docs/proofs.md are known to be harmless",
    "stated": "write 'Proof.' after the statement, alone",
    "proof": "only tactics and bullets may stand between 'Proof.' and 'Qed.'",
}


def refused(file: str, text: str) -> Iterator[Failure]:
    """Whatever in a source may not be there.

    Args:
        file: Its path under ``proofs/coq/``.
        text: Its content.

    Example:
        >>> [str(failure.found) for failure in refused("p/a.v", "Timeout 9 Module M.")]
        ["'Timeout'"]
    """
    yield from _misspelt(file, text)
    code = blank(text, strings=True)
    named: list[int] = []
    for match in WORDS.finditer(code):
        named.append(match.start())
        line = code.count("\n", 0, match.start()) + 1
        yield Failure(file, line, f"'{' '.join(match[0].split())}'", remedy_for(match[0]))
    stage = "outside"
    for sentence, within in in_sections(text):
        before, command = stage, _LOCAL.sub("", sentence.text, count=1)
        if stage == "proof":
            command = _BULLETS.sub("", sentence.text, count=1)
            harmless = re.match(r"[a-z]|Qed\s*\.", command)
            stage = "outside" if _ENDS.match(command) else "proof"
        elif stage == "stated":
            harmless = re.fullmatch(r"Proof\s*\.", sentence.text)
            stage = "outside" if _ENDS.match(command) else "proof"
        else:
            harmless = _ALLOWED.match(command)
            stage = "stated" if _STATED.match(command) else "outside"
            if (word := _IN_SECTION.match(command)) and not within:
                yield Failure(file, sentence.line, f"'{word[1]}'", _OPEN)
                continue
        if not harmless and not any(sentence.start <= place < sentence.end for place in named):
            found = re.match(r"[\w']+|#\[[^\]]*\]", command)
            words = found[0] if found else command[:20]
            yield Failure(file, sentence.line, f"'{words}'", _REMEDIES[before])


def in_sections(text: str) -> Iterator[tuple[Sentence, tuple[str, ...]]]:
    """Every sentence, with the names of the sections that are open before it."""
    within: tuple[str, ...] = ()
    for sentence in sentences(text):
        yield sentence, within
        if found := _SECTION.match(sentence.text):
            within = (*within, found[2]) if found[1] == "Section" else within[:-1]


def _misspelt(file: str, text: str) -> Iterator[Failure]:
    """Where Coq might see other comments, strings and sentences than the scan."""
    code = blank(text, strings=True)
    places = {
        (code.count("\n", 0, m.start()) + 1, '"' if m[1] else ":(") for m in _SPELLED.finditer(code)
    }
    places |= {(text.count("\n", 0, m.start()) + 1, "(*") for m in _GLUED.finditer(text)}
    for line, mark in sorted(places):
        yield Failure(file, line, f"'{mark}'", _SPELLINGS[mark])
