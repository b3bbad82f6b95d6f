"""What a proof file may say, the theorem that it proves, and the names that it defines.

The scan reads a source without Coq. Where a source can change how Coq reads what follows, or take
back what stands before, a scan and Coq may see different theorems; so only the commands that the
proofs need are allowed. What Coq's kernel says about axioms is asked besides.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from convattn_ledger.coq.sources import (
    Failure,
    Project,
    Sentence,
    blank,
    comments,
    reached,
    sentences,
)

SUPPORT = ("foundation", "bridge")
_QUALIFIED = r"[A-Za-z_][\w']*(?:\.[A-Za-z_][\w']*)*"
_ALLOWED = re.compile(
    # plain names alone: else Coq might require a file that `required` does not see
    rf"(?:(?:From\s+{_QUALIFIED}\s+)?Require(?:\s+(?:Import|Export))?|Import|Export)"
    rf"(?:\s+{_QUALIFIED})+\s*\.\Z|"
    r"(?:Section|End|Arguments)\b|Open\s+Scope\b|"
    r"Implicit\s+Types?\b|(?:Variables?|Hypothesis|Hypotheses)\b|(?:Lemma|Theorem)\b|"
    r"Set\s+Implicit\s+Arguments\s*\.|Unset\s+(?:Strict\s+Implicit|Printing\s+Implicit\s+Defensive)"
    r"\s*\.|(?:Definition|Fixpoint|Record|Canonical|Let|Notation)\b(?=.*:=)|"
    r"Module\s+\w+\s*:=\s*[\w.]+\s+\w[\w\s.]*\Z",  # a functor's, no other name of a module
    re.DOTALL,
)
_LOCAL = re.compile(r"\ALocal\s+(?=(?:Open|Definition|Fixpoint|Notation|Lemma|Theorem)\b)")
_BULLETS = re.compile(r"[-+*{}\s]*")
_ENDS = re.compile(r"(?:Qed|Defined|Admitted|Abort)\b")
_IN_SECTION = re.compile(r"(?:Let|Hypothesis|Hypotheses|Variables?|Context)\b")
_SECTION = re.compile(r"(Section|End)\s+([\w']+)")
_CLAIM = re.compile(r"[A-Z]\d*\.\w+")
_THEOREM = re.compile(r"Theorem\s+([^\s:({\[@]+)")
_DEFINED = re.compile(r"(Definition|Fixpoint|Record|Notation|Canonical|Lemma|Let)\s+([\w']+)")
_WITHIN_RECORD = re.compile(r"(?::=|[{;])\s*([\w']+)(?=\s*(?:\{|:))")
_REQUIRE = re.compile(r"(?:From\s+(\S+)\s+)?Require\s+(?:Import\s+|Export\s+)?(.*)\.", re.DOTALL)
_LOADED = re.compile(
    r"(?P<command>(?:From\s+(?P<root>\S+)\s+)?Require(?:\s+(?:Import|Export))?|Import|Export)"
    r"\s+(?P<modules>.*)\.",
    re.DOTALL,
)
_SPELLED = {
    '"': (r'"', "leave strings out: a notation may change how the rest of the file is read"),
    ":(": (r"\w:[({\[]", "put a space behind the colon, so that no quotation of a plugin begins"),
    "not ASCII": (r"[^\x00-\x7f]", "take a name in ASCII: two letters may look the same"),
}
_REMEDIES = {
    "outside": "leave it out: only the commands listed in docs/proofs.md are known to be harmless",
    "stated": "write 'Proof.' after the statement, alone",
    "proof": "only tactics and bullets may stand between 'Proof.' and 'Qed.'",
}


@dataclass(frozen=True)
class Theorem:
    """The theorem of a file.

    Attributes:
        file: The file, under ``proofs/coq/``.
        name: The theorem's name, which is the file's.
        line: The line on which it begins.
        text: Its statement from ``Theorem`` to the full stop, without comments.
        claims: The ids of the claims that may name it, with which the file's first comment begins.
        comments: The words of each comment of the file.
    """

    file: str
    name: str
    line: int
    text: str
    claims: tuple[str, ...] = ()
    comments: tuple[str, ...] = ()

    @property
    def statement(self) -> str:
        """The statement on one line."""
        return " ".join(self.text.split())


@dataclass(frozen=True)
class Name:
    """A name that a file defines.

    Attributes:
        file: The file.
        line: The line.
        name: The name, without that of the file.
        kind: The command that defines it.
        visible: Whether files that require this one see it.
    """

    file: str
    line: int
    name: str
    kind: str
    visible: bool


def holds_a_theorem(file: str) -> bool:
    """Whether a file under ``proofs/coq/`` is one of theorems, and not what these stand on."""
    return file.endswith(".v") and PurePosixPath(file).parts[0] not in SUPPORT


def scan(file: str, text: str) -> tuple[Theorem | None, list[Failure]]:
    """Look through a source: its theorem, if it must have one and has, and what is wrong.

    Example:
        >>> scan("p/one.v", "Theorem one : 1 = 1. Proof. Admitted.")[1][0].found
        "'Admitted'"
        >>> scan("p/one.v", "(* Admitted *) Theorem one : 1 = 1. Proof. by []. Qed.")[0].statement
        'Theorem one : 1 = 1.'
    """
    failures = [*_misspelt(file, text), *_refused(file, text)]
    if not holds_a_theorem(file):
        return None, failures
    name = PurePosixPath(file).stem
    theorems = [
        (sentence, match[1], within)
        for sentence, within in _in_sections(text)
        if (match := _THEOREM.match(_LOCAL.sub("", sentence.text)))
    ]
    if len(theorems) != 1:
        names = ", ".join(f"'{named}'" for _, named, _ in theorems) or "none"
        remedy = f"expected exactly one, 'Theorem {name}'; the others are lemmas, or other files"
        line = theorems[1][0].line if theorems else 0
        return None, [*failures, Failure(file, line, f"theorems: {names}", remedy)]
    ((sentence, named, within),) = theorems
    if within:
        where = f"Theorem {named} within Section {within[-1]}"
        remedy = "close that first, so that the statement stands alone"
        failures.append(Failure(file, sentence.line, where, remedy))
    if named != name or not sentence.text.startswith("Theorem"):
        said = f"'{' '.join(sentence.text.split()[:4])} ...'"
        remedy = f"expected 'Theorem {name}', named as the file and without attributes"
        return None, [*failures, Failure(file, sentence.line, said, remedy)]
    lines = blank(text)[sentence.start : sentence.end].splitlines()
    whole = "\n".join(line.rstrip() for line in lines if line.strip())
    begun = comments(text)
    words = tuple(comment for _, comment in begun)
    claims = claims_of(words[0]) if words and not text[: begun[0][0]].strip() else ()
    return Theorem(file, name, sentence.line, whole, claims, words), failures


def claims_of(comment: str) -> tuple[str, ...]:
    """The ids of claims with which a comment begins, with commas between them.

    Example:
        >>> claims_of("S.finite, B19.sac (amended): one head more than S.kernel.")
        ('S.finite', 'B19.sac')
    """
    claims = []
    for word in comment.split():
        if not (match := _CLAIM.fullmatch(word.rstrip(",:."))):
            break
        claims.append(match[0])
        if not word.endswith(","):
            break
    return tuple(claims)


def names(project: Project, file: str) -> Iterator[Name]:
    """Whatever a file defines."""
    for sentence in sentences(project.text(file)):
        command = _LOCAL.sub("", sentence.text)
        if not (defined := _DEFINED.match(command)):
            continue
        kind, name = defined[1], defined[2]
        declared = [name]
        if kind == "Record":
            declared += _WITHIN_RECORD.findall(command)
            if re.search(r":=\s*\{", command):
                declared.append(f"Build_{name}")
        elif kind == "Fixpoint":
            declared += re.findall(r"\bwith\s+([\w']+)", command)
        visible = kind not in ("Lemma", "Let") and command == sentence.text
        yield from (Name(file, sentence.line, each, kind, visible) for each in declared)


def required(project: Project, file: str) -> list[str]:
    """The files of the project that a file requires itself."""
    files = []
    for sentence in sentences(project.text(file)):
        if match := _REQUIRE.match(sentence.text):
            root = f"{match[1]}." if match[1] else ""
            for module in match[2].split():
                files += [
                    file
                    for file in project.files
                    if (full := project.qualified(file)).startswith(root)
                    and f".{full}".endswith(f".{module}")
                ]
    return files


def closure(project: Project) -> dict[str, frozenset[str]]:
    """All that each file requires, directly or not."""
    direct = {file: required(project, file) for file in project.files}
    return {file: frozenset(reached(direct, file)) for file in project.files}


def library_lines(project: Project, files: Iterable[str]) -> list[str]:
    """What these files require and import of libraries, each line once, the requirements first."""
    texts = [sentence.text for file in files for sentence in sentences(project.text(file))]
    ours = {match[1] for text in texts if (match := re.match(r"Module\s+(\w+)", text))}
    lines = set()
    for text in texts:
        if match := _LOADED.match(text):
            words = match["modules"].split()
            modules = [m for m in words if m not in ours and not m.startswith(project.prefix)]
            if modules and project.prefix not in (match["root"] or ""):
                command = " ".join(match["command"].split()).replace("Export", "Import")
                lines.add(f"{command} {' '.join(modules)}.")
    return sorted(lines, key=lambda line: ("Require" not in line, line))


def shadowing(project: Project, requires: dict[str, frozenset[str]]) -> list[Failure]:
    """Names of ``foundation/``, or of a file that is required, that a file defines again."""
    defined = {file: list(names(project, file)) for file in project.files}
    visible = {
        file: {item.name for item in items if item.visible} for file, items in defined.items()
    }
    foundation = {file for file in project.files if file.startswith("foundation/")}
    failures = []
    for file in project.files:
        above = sorted((foundation | requires[file]) - {file})
        owners = {name: other for other in above for name in visible[other]}
        failures += [
            Failure(
                file, item.line, f"'{item.name}', which {owners[item.name]} defines", "rename it"
            )
            for item in defined[file]
            if item.name in owners
        ]
    return failures


def _misspelt(file: str, text: str) -> Iterator[Failure]:
    """Where Coq might see other names, comments, strings and sentences than a reader."""
    code = blank(text)
    for mark, (pattern, remedy) in _SPELLED.items():
        for line in sorted(
            {code.count("\n", 0, m.start()) + 1 for m in re.finditer(pattern, code)}
        ):
            yield Failure(file, line, f"'{mark}'" if mark != "not ASCII" else mark, remedy)
    for match in re.finditer(r"\S\(\*", text):
        line = text.count("\n", 0, match.start()) + 1
        yield Failure(file, line, "'(*'", "put a space before the comment, so that it begins one")


def _refused(file: str, text: str) -> Iterator[Failure]:
    """The sentences that are not known to be harmless."""
    stage = "outside"
    for sentence, within in _in_sections(text):
        before, command = stage, _LOCAL.sub("", sentence.text)
        if stage == "proof":
            command = _BULLETS.sub("", sentence.text, count=1)
            harmless = re.match(r"[a-z]|Qed\s*\.", command)
            stage = "outside" if _ENDS.match(command) else "proof"
        elif stage == "stated":
            harmless = re.fullmatch(r"Proof\s*\.", sentence.text)
            stage = "outside" if _ENDS.match(command) else "proof"
        else:
            harmless = _ALLOWED.match(command)
            stage = "stated" if re.match(r"(?:Lemma|Theorem)\b", command) else "outside"
            if (word := _IN_SECTION.match(command)) and not within:
                remedy = "outside a section this is an axiom; open a Section, or prove it"
                if word[0] == "Let":
                    remedy = "outside a section, write Definition"
                yield Failure(file, sentence.line, f"'{word[0]}'", remedy)
                continue
        if not harmless:
            match = re.match(r"[\w']+|#\[[^\]]*\]", command)
            words = match[0] if match else command[:20]
            yield Failure(file, sentence.line, f"'{words}'", _REMEDIES[before])


def _in_sections(text: str) -> Iterator[tuple[Sentence, tuple[str, ...]]]:
    """Every sentence, with the names of the sections that are open before it."""
    within: tuple[str, ...] = ()
    for sentence in sentences(text):
        yield sentence, within
        if match := _SECTION.match(sentence.text):
            within = (*within, match[2]) if match[1] == "Section" else within[:-1]
