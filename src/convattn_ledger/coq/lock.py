"""What the statements mean, held by a lock: each statement in full, and the definitions it reaches.

A theorem can be made empty without touching its proof, by another definition of a word that it
uses; and it can be told otherwise, by another comment above it or by what a claim says that it
covers. ``definitions.lock.json`` holds every statement, as Coq prints it, and its SHA-256 with
nothing implicit; that of every definition of the project, and of every lemma's statement, that a
statement reaches through others; the comments of its file; what each claim that names it says that
it covers; and the libraries that Coq has loaded. It is written by ``convattn prove --lock`` alone,
so that every change of a meaning is a diff that somebody reads.
"""

import json
import textwrap
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from convattn_ledger.coq.kernel import QUALIFIED, WIDTH, Kernel
from convattn_ledger.coq.rules import Theorem, library_lines, names
from convattn_ledger.coq.sources import LOCK, Failure, Project, digest, reached

SCHEMA = 2
_REMEDY = "read the diff of the sources; if it is meant, run convattn prove --lock"


def definitions(
    project: Project, files: Collection[str], but: Collection[str] = ("Lemma", "Let", "Notation")
) -> dict[str, tuple[str, int]]:
    """Every definition of these files: its full name, and its file and line.

    Args:
        project: The sources.
        files: Some of its files.
        but: The commands that are left out.
    """
    return {
        project.qualified(file, item.name): (file, item.line)
        for file in sorted(files)
        for item in names(project, file)
        if item.kind not in but
    }


def meanings(
    project: Project,
    kernel: Kernel,
    theorems: Sequence[Theorem],
    files: Collection[str],
    covers: Mapping[str, Mapping[str, str]],
) -> dict[str, Any]:
    """The content of a lock for these theorems, without the libraries.

    Args:
        project: The sources.
        kernel: Coq, which has compiled them.
        theorems: The theorems.
        files: Their files, and all that these require.
        covers: For each file, what each claim says that it covers.
    """
    known = definitions(project, files)
    full = {item.file: project.qualified(item.file, item.name) for item in theorems}
    proved = definitions(project, files, but=("Let", "Notation")).keys() - known.keys()
    printed = kernel.printed(list(full.values()), list(known))
    while True:  # of a lemma that they reach the statement counts: a match does not show it
        tokens = {name: set(QUALIFIED.findall(text)) for name, text in printed.items()}
        reached_lemmas = set().union(*tokens.values()) & proved - printed.keys()
        if not reached_lemmas:
            break
        printed |= kernel.printed(sorted(reached_lemmas), [])
    uses = {name: names & printed.keys() - {name} for name, names in tokens.items()}
    ours = {t for names in tokens.values() for t in names if t.startswith(f"{project.prefix}.")}
    if unknown := sorted(ours - printed.keys()):
        raise RuntimeError(f"a statement reaches {unknown[0]}, which is no definition of a source")
    definitions_of = {file: sorted(reached(uses, name)) for file, name in full.items()}
    readable = kernel.readable(library_lines(project, files), list(full.values()))
    used = sorted(set().union(*definitions_of.values()))
    return {
        "schema": SCHEMA,
        "definitions": {name: digest(printed[name].encode()) for name in used},
        "theorems": {
            item.file: {
                "sha256": digest(printed[full[item.file]].encode()),
                "statement": readable[full[item.file]],
                "definitions": definitions_of[item.file],
                "comments": [textwrap.wrap(comment, WIDTH) for comment in item.comments],
                "covers": dict(sorted(covers.get(item.file, {}).items())),
            }
            for item in sorted(theorems, key=lambda item: item.file)
        },
    }


def read_lock(project: Project) -> dict[str, Any] | None:
    """The lock that stands with the sources; ``None`` if there is none that can be read."""
    try:
        lock = json.loads(project.sources[LOCK])
        tables = [lock[name] for name in ("theorems", "definitions", "libraries")]
        readable = lock["schema"] == SCHEMA and all(isinstance(table, dict) for table in tables)
        return lock if readable else None
    except (KeyError, TypeError, ValueError):
        return None


def written(lock: dict[str, Any]) -> bytes:
    """A lock as a file."""
    return (json.dumps(lock, indent=1, ensure_ascii=False) + "\n").encode()


def compare(
    project: Project, current: dict[str, Any], theorems: Sequence[Theorem], whole: bool
) -> list[Failure]:
    """How the statements and definitions differ from the lock.

    Args:
        project: The sources, with their lock.
        current: What `meanings` returned.
        theorems: The theorems.
        whole: Whether these are all theorems, so that the lock may have no others.
    """
    lock = read_lock(project)
    if lock is None:
        remedy = "take it from the last commit, or run convattn prove --lock"
        return [Failure(LOCK, 0, "the lock of the definitions is not there, or not valid", remedy)]
    failures = []
    locations = definitions(project, project.files, but=("Let", "Notation"))
    for name, value in current["definitions"].items():
        if lock["definitions"].get(name) != value:
            file, line = locations[name]
            change = "has changed" if name in lock["definitions"] else "is new"
            failures.append(
                Failure(file, line, f"the meaning of '{name}' {change} since the lock", _REMEDY)
            )
    for item in theorems:
        entry, locked = current["theorems"].get(item.file), lock["theorems"].get(item.file)
        if entry is None or entry == locked:
            continue
        what = "the statement is not in the lock"
        if isinstance(locked, dict):
            # of some files alone, other notations are loaded: the digest is of none
            keys = [key for key in entry if entry[key] != locked.get(key)]
            parts = dict.fromkeys("statement" if key == "sha256" else key for key in keys)
            if keys == ["statement"] and not whole:
                continue
            what = f"not as in the lock: {', '.join(f'the {part}' for part in parts)}"
        failures.append(Failure(item.file, item.line, what, _REMEDY))
    if whole:
        gone = sorted(lock["theorems"].keys() - {item.file for item in theorems})
        failures += [Failure(LOCK, 0, f"it holds {file}, no theorem", _REMEDY) for file in gone]
    return failures
